"""Releases: for each table of a lake, the commit that belongs together with those of all others.

`wholeness` says which commits do, after a run; `release` is the value, one small object of a lake, which `release_file`
replaces as a whole; `released_history` shows tables at the commits of one release, to whoever reads them.
"""
