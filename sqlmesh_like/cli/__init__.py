"""The command line: flags → one call of the application → lines, JSON and exit codes.

`app` knows the commands, each is a module in `commands/`; `context` turns flags into a call and has the printer that
they select; `run_service` is common to run, seed, test, snapshot and build; `run_log`, `ingest_log` and `printing`
print. What a command does is in the package `sqlmesh_like.app`, which the Python API uses as well.
"""
