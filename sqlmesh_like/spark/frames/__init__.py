"""Data frames, whatever their table: caching, fetching, comparing, keys by content, types that were promoted.

`cached_frame` keeps what is read several times, `local_frame` fetches few rows; `partition_paths` finds the partitions
of a change, `comparison` the rows in which two frames differ.
"""
