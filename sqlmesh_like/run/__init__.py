"""`PlannedModel` → results, in order. Owns the ports that an engine and a publisher implement; imports none of them.

`executor` runs the nodes that `schedule` hands out to threads; `ports` is what it needs from the engine; `tests` are
data tests, `unit_tests` and `unit_cases` unit tests, `fixtures` their rows; `seeds` reads CSV files; `retention` says
how much history consumers still need; `result` is the outcome of each node.
"""
