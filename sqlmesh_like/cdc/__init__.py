"""Change events of databases → typed rows → many ODS Hudi tables, exactly once.

`sources` yields lines with offsets; `formats` describes each tool's events; `decode` turns them into typed rows with
the columns that `schema` decides on; `merge` reduces a batch to one row per key; `tables` writes commits that carry
the offsets; `stream` runs batch after batch. A stage imports only earlier ones; `report` counts what happened.
"""
