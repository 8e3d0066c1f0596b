"""Change events of databases → typed rows → many ODS Hudi tables, exactly once.

`sources` yields lines with offsets; `formats` describes each tool's events; `decode` makes typed rows of them with the
columns that `schema` decides on; `merge` reduces a batch to one row a key; `tables` writes commits that carry the
offsets; `stream` runs batch after batch. A stage imports only earlier ones; `report` counts what happened.
"""
