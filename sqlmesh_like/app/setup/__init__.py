"""What a machine and a project need before the first run, and after the last.

`new_project` creates one, `doctor` checks it, `dependencies` fetches `packages` (with their `archive`), jars and Java's
class archive, `clean` removes what commands wrote.
"""
