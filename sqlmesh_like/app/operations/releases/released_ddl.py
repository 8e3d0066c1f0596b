"""Tables of a release declared in another engine. Owns which tables; each engine's module has its statements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, assert_never

from sqlmesh_like.app.lakes.lake import open_lake
from sqlmesh_like.app.lakes.release_tables import at_release, released_places
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.operations.releases.release_list import show_release
from sqlmesh_like.errors import UsageError
from sqlmesh_like.hudi.reading.released_view import hive_table, spark_view, view_name
from sqlmesh_like.names import TableName
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.releases.release import Release

ReleaseDialect = Literal["spark", "duckdb", "hive"]
"""Engines that can read a table as of a commit."""
_HINT = "name one table: sml ddl TABLE --release"


@dataclass(frozen=True)
class ReleasedDdl:
    """Statements that declare tables in another engine as a release has them."""

    release: Release
    statements: tuple[str, ...]


def released_ddl(loaded: Loaded, name: str | None, dialect: ReleaseDialect, number: str | None) -> ReleasedDdl:
    """Declare the tables of a release (default: the current one), or one of them, in another engine. Starts no JVM.

    Raises UsageError where there is no such release, a table's files are gone, or the engine cannot read it as of one
    commit; ProjectError for an unknown table.
    """
    release = show_release(loaded, number)
    lake = at_release(open_lake(loaded), release)
    if name is not None:
        places = [lake.catalog.find(name)]
    else:
        named = (place for place in released_places(lake, release) if place.unique_id in release.tables)
        places = sorted(named, key=lambda place: str(place.table))
    if doubled := [view for view, times in Counter(view_name(each.table) for each in places).items() if times > 1]:
        raise UsageError(f"two tables would have the view {doubled[0]}", hint=_HINT)
    states = lake.catalog.states(place.unique_id for place in places)
    statements = (
        statement for place in places for statement in _statements(place.table, states[place.unique_id], dialect)
    )
    return ReleasedDdl(release, tuple(statements))


def _statements(table: TableName, state: TableState, dialect: ReleaseDialect) -> Iterator[str]:
    if state.kind not in ("cow", "mor") or state.frontier is None:
        raise UsageError(f"{table} is not a Hudi table", hint=_HINT)
    match dialect:
        case "spark":
            yield from spark_view(table, state)
        case "hive":
            yield from hive_table(table, state)
        case "duckdb":
            from sqlmesh_like.duckdb.released_view import duckdb_view  # only this dialect imports DuckDB

            yield from duckdb_view(table, state)
        case _:
            assert_never(dialect)
