"""Parts of a table that are computed alone, each a range of values of the first partition column.

`partition_range` is such a range, `restriction` the query whose inputs are restricted to it.
"""
