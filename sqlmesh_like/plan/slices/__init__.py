"""Tables that are built slice by slice, each a commit, and ranges of partitions that are computed again.

`sliced_build` is what a run knows of such a build, `cuts` where the slices begin, `sliced_plan` decides whether a build
is in slices and whether an unfinished one goes on, `backfill` plans a range of a table that exists.
"""
