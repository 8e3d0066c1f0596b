"""One module an operation: a loaded project in, a value out, and a listener told on the way.

`run_nodes` is common to run, seed, test, snapshot and build, with `hooks` and `run_results`.
"""
