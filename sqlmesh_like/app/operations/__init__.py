"""One module per operation: it takes a loaded project, returns a value, and reports to a listener meanwhile.

`run_nodes` is common to run, seed, test, snapshot and build, with `hooks` and `run_results`.
"""
