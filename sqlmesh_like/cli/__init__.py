"""The command line: flags → calls of the layers below → lines, JSON and exit codes.

`app` knows the commands, each is a module in `commands/`; `context` loads the project (through `project_cache`) and
the selection; `wiring` puts catalog, planner and engine together; `run_service` is common to run, seed, test and build,
`watch_loop` to watch; `printing` and `run_log` print.
"""
