"""The lake for a command that writes nothing. Owns which tables a `duckdb` target computes for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from sqlmesh_like.app.lakes.environment_lake import require_environments
from sqlmesh_like.app.lakes.lake import Lake, clock
from sqlmesh_like.app.lakes.release_lake import reading_lake
from sqlmesh_like.app.lakes.release_tables import require_releases
from sqlmesh_like.app.loading.loaded import Loaded


@contextmanager
def read_session(loaded: Loaded, read: Callable[[Lake], Collection[str]], at: str | None = None) -> Iterator[Lake]:
    """Open a lake for reading, at a release as `reading_lake` does, and stop its engine afterwards.

    `read` returns the unique ids of what will be read; on a `duckdb` target it is called with a lake without rows.
    Raises what `read` raises, ProjectError where a fixture is missing, NodeError where a table cannot be computed.
    """
    loaded.reporter.phase("reading tables")
    if at is not None:
        require_releases(loaded)
    if loaded.invocation.environment is not None:
        require_environments(loaded)
    lake: Lake
    if loaded.target.type == "spark":
        lake = reading_lake(loaded, at)
    else:
        from sqlmesh_like.app.lakes.duck_lake import compute_lake  # a command on a Spark target need not import DuckDB

        lake = compute_lake(loaded, read, clock(None))
    try:
        yield lake
    finally:
        lake.engine.stop()
