"""Many events of a key → its row: the newest by order and position, deletes, moves between partitions.

`merge_sql` is the rule; `tombstones` remembers deletes, `unchanged_value_backfill` fills what an event leaves out,
`unsure_placement` finds rows whose location is uncertain, `defaults` and `counts` decide what is filled and reported.
"""
