"""The application: what a command or a call of the Python API does, from its request to its result.

A request (`invocation`) is loaded into a project as its files are (`loading`), its tables are opened as a lake
(`lakes`), and an operation works on both (`operations`) and returns a value; meanwhile it reports to a listener
(`reporter`). Nothing here parses arguments or prints: `cli` does, and `api` is its equivalent for Python.
`setup` prepares a machine and a project.
"""
