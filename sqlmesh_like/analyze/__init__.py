"""SQL → `QueryFacts`: relational algebra with types, names and lineage, or the reason why there is none. No engine.

`binding` reads one SELECT, clause by clause, into the nodes of `algebra.relation`; `expressions` knows Spark's types
and functions; `name_resolution` and `illegal_clauses` report what is wrong with the text, `query_analysis` collects
the facts after `pushdown`; `text_lineage` traces columns through a text.
"""
