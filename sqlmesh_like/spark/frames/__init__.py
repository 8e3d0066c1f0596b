"""Data frames of any table: caching, fetching, comparing, keys by content, promoted types.

`cached_frame` caches what is read several times, `local_frame` fetches a few rows; `partition_paths` finds the
partitions of a change, `comparison` the rows in which two frames differ.
"""
