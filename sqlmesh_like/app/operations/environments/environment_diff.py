"""Rows of an environment's table compared with production's. Owns which states are compared, and by which key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlmesh_like.app.lakes.environment_lake import find_environment, in_environment
from sqlmesh_like.app.lakes.lake import require_built
from sqlmesh_like.app.lakes.release_lake import production_lake
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.operations.environments.members import production_state
from sqlmesh_like.errors import UsageError
from sqlmesh_like.names import TableName

if TYPE_CHECKING:
    from sqlmesh_like.duckdb.table_comparison import RowsByKey


@dataclass(frozen=True)
class EnvironmentDiff:
    """A table of an environment beside production's; `production` and `own` are the commits that were compared."""

    environment: str
    table: TableName
    production: str
    own: str
    rows: RowsByKey


def diff_environment(loaded: Loaded, name: str, model: str, limit: int) -> EnvironmentDiff:
    """Compare a table of an environment with production's, as readers see it, by key. Starts no JVM.

    Raises UsageError where the environment has no such table, or its rows can be read by Spark alone; NodeError where
    production has none.
    """
    from sqlmesh_like.duckdb.table_comparison import rows_by_key

    environment, production = find_environment(loaded, name), production_lake(loaded)
    place = production.catalog.find(model)
    if place.unique_id not in environment.tables:
        own_tables = ", ".join(sorted(entry.table for entry in environment.tables.values())) or "no table"
        message = f"{place.table} is read from production in the environment {name!r}"
        raise UsageError(message, hint=f"it has {own_tables}")
    before = production_state(production, place.unique_id)
    require_built(place, before)
    own = in_environment(production, environment)
    after = own.catalog.state(place.unique_id)
    require_built(own.catalog.places[place.unique_id], after)
    loaded.reporter.phase(f"comparing {place.table}")
    keys = {each.unique_id: each.config.unique_key for each in loaded.rendered.models}
    rows = rows_by_key(before, after, keys.get(place.unique_id, ()), limit)
    if rows is None:
        hint = f"sml show {place.table.identifier} -e {name} and without -e show rows of both"
        raise UsageError(f"only Spark can read {place.table} on one of the two sides", hint=hint)
    assert before.frontier is not None and after.frontier is not None
    return EnvironmentDiff(name, place.table, before.frontier, after.frontier, rows)
