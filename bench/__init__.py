"""Benchmarks: where this program wins and where it loses, as ratios within one run.

`python -m bench` (or `make bench`) runs the suites, each a module with `run(Options) -> SuiteResult`; `report` turns
results into JSON, Markdown and plots. A suite times the same work done twice on this machine, by `sml` and by something
else, in turns; seconds are shown only for context.
"""
