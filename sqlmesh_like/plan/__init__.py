"""What a run would do: graph + selection + history + compiled models → `PlannedModel`. Reads commits, needs no JVM.

`graph` orders nodes, `selector` and `selector_methods` select them; `catalog` knows where tables are, `history` what
their commits say (a port, implemented by `hudi`); `planner` compiles a model against the lake, `model_plan` decides
with `cost` between the sound strategies; `fingerprint` says when a table is of another query, `edits` what
becomes of it then; `checks` examines models before anything runs.
"""
