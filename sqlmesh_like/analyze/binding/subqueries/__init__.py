"""Subqueries as joins: the binder hands a condition or an item, and gets a wider relation with the expression over it.

`predicate_subqueries` reads EXISTS and IN, `scalar_subqueries` values, `asking_groups` what groups ask, `row_queries`
which queries have the same rows; `correlation` and `correlated_groups` tell the names of both queries apart,
`match_flags` turns matches into values.
"""
