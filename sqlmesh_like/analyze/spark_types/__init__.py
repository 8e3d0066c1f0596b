"""Spark's types: their names, to which others each is converted, and what operators and aggregates make of them.

A type is its text in Spark's short spelling (`decimal(10,2)`). Nothing here knows a query; `functions` says which
function takes and returns which of them, `expressions` walks over trees.
"""
