"""`QueryFacts` → `Classification`: the sound strategies of a query, each with reasons.

Pure rules, no cost, no engine. `rules` is the catalogue of rule ids; `strategy` asks them in order; `aggregates` says
which calls can be merged, `clock` what follows from `current_date` and the like.
"""
