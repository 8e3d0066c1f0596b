"""What an edit of a query changes in its table, from both queries.

`changed_rows`: the rows that enter and leave, as a program; `edited_columns`: all rows, of stored columns and computed
ones; `joined_rows`: all rows, of stored ones and further relations. They compare relations: `same_columns` says where
two have the same rows, `implied_conditions` which filters include others, `join_tree` what is joined and how.
`key_parts` reads what row keys were made of.
"""
