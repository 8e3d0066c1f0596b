"""Many events of a key → its row: newest by order and position, deletes, moves between partitions.

`merge_sql` is the rule; `tombstones` remembers deletes, `unchanged_value_backfill` fills what an event leaves out,
`unsure_placement` finds rows whose place is in doubt, `defaults` and `counts` say what is filled and reported.
"""
