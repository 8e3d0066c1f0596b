"""Files that tools read: dbt's manifest, run results, catalog and sources, and our compiled SQL.

Most modules own the format of one file or of a part of it; `state` reads those of an earlier call, `compare` finds the
differences between two manifests, and `change_impact` which tables they rebuild.
"""
