"""Tables compared with a recompute of their query: `table_verification` on demand, `watch_verification` during a watch.

A sample of a table, or all of it, is compared at the frontier and clock that its own record names. Tables of sources
are compared with their database: `source_verification` on demand, `watch_comparison` during a watch.
"""
