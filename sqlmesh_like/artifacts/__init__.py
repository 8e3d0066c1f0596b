"""Files that tools read: dbt's manifest, run results, catalog and sources, and our compiled SQL.

Each module owns the format of one file; `state` reads an earlier folder of them, `compare` finds the differences and
`change_impact` what they rebuild.
"""
