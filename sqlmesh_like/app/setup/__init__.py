"""Preparation of a machine and a project before the first run, and cleaning up.

`new_project` creates a project, `doctor` checks project and machine, `dependencies` fetches `packages` (extracted by
`archive`) and jars and creates Java's class archive, `clean` removes files that commands wrote.
"""
