"""`QueryFacts` → `Classification`: the sound strategies of a query, each with reasons.

Pure rules, no cost, no engine. `rules` is the catalogue of rule ids; `strategy` applies them in order; `aggregates`
says which calls can be merged, `clock` how `current_date` and the like affect it.
"""
