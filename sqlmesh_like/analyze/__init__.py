"""SQL → `QueryFacts`: relational algebra with types, names and lineage, or the reason why there is none. No engine.

`binder` reads one SELECT into the nodes of `relation`; `scope` and `name_resolution` resolve names, `types` infers
Spark's types; `from_clause`, `grouping`, `subqueries` … each own one clause; `pushdown` and `column_pruning` rewrite
the algebra; `lineage` and `column_lineage` trace columns; `deterministic_functions` says what may be followed
incrementally.
"""
