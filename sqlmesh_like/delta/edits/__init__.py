"""What an edit of a query changes in its table, from both queries.

`changed_rows`: the rows that enter and leave, as a program; `edited_columns`: all rows, of stored columns and computed
ones. Both compare relations: `same_columns` says where two have the same rows, `implied_conditions` which filters
include others.
"""
