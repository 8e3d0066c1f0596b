"""What a machine and a project need before the first run, and after the last.

`new_project` begins one, `doctor` checks, `dependencies` fetches `packages` (with their `archive`), jars and Java's
class archive, `clean` removes what commands wrote.
"""
