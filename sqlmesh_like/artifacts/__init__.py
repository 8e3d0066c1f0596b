"""Files that tools read: dbt's manifest, run results, catalog and sources, and our compiled SQL.

Each module owns one file's shape; `state` reads an earlier folder of them, `compare` says what differs from it and
`change_impact` what that rebuilds.
"""
