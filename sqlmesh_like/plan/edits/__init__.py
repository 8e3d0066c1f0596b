"""An edited query over a table that exists.

`reconciliation` decides what becomes of the stored rows: they are compared with the query's, or all rows are written
again; `outline` says when the new rows follow from the stored ones.
"""
