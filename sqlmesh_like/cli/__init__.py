"""The command line: flags → calls of the layers below → lines, JSON and exit codes.

`app` knows the commands, each is a module in `commands/`; `context` loads the project (through `project_cache`) and
the selection; `lake` wires catalog, planner and engine; `run_service` is common to run, seed, test and build,
`watch_loop` to watch; `run_log`, `output` and `plan_tree` print.
"""
