"""Relational algebra: the nodes of `relation`, and what is computed or rewritten on them alone.

`column_pruning` and `relocate` rewrite; `lineage` and `column_lineage` trace keys and columns.
"""
