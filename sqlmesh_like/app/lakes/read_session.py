"""The lake for a command that writes nothing. Owns what a `duckdb` target computes so that it can be read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from sqlmesh_like.app.lakes.lake import Lake, clock, open_lake
from sqlmesh_like.app.loading.loaded import Loaded


@contextmanager
def read_session(loaded: Loaded, read: Callable[[Lake], Collection[str]]) -> Iterator[Lake]:
    """A lake to read from, its engine stopped after. `read`: unique ids of what will be, found in a lake without rows.

    Raises what `read` raises, ProjectError where a fixture is missing, NodeError where a table cannot be computed.
    """
    loaded.reporter.phase("reading tables")
    lake = open_lake(loaded) if loaded.target.type == "spark" else _computed(loaded, read)
    try:
        yield lake
    finally:
        lake.engine.stop()


def _computed(loaded: Loaded, read: Callable[[Lake], Collection[str]]) -> Lake:
    from sqlmesh_like.app.lakes.duck_lake import computed_lake  # a command on a lake need not wait for DuckDB

    return computed_lake(loaded, read, clock(None))
