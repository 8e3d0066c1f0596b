"""The command line: flags → one call of the application → lines, JSON and exit codes.

`app` lists the commands, each of which is a module in `commands/`; `context` turns flags into a loaded project and a
printer; `run_service` is common to run, seed, test, snapshot and build; `run_log`, `ingest_log` and `printing` print;
`language_server` is `sml lsp`. The work of a command is in the package `sqlmesh_like.app`, which the Python API uses as
well.
"""
