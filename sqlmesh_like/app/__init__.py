"""The application: what a command, or a call of the Python API, does from its request to its result.

A request (`invocation`) is loaded into a project as its files are (`loading`), its tables are opened as a lake
(`lakes`), and an operation works on both (`operations`) and returns a value; on the way it tells a listener
(`reporter`). Nothing here parses words or prints: `cli` does, and `api` is the same for Python.
`setup` is what a machine and a project need before.
"""
