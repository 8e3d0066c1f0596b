"""The tables of a lake and where they are, without what computes them: enough for a call that plans and reads no rows.

Owns opening them; `lake` adds an engine and a planner.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.errors import UsageError
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.plan.catalog import Catalog, build_catalog
from sqlmesh_like.render.table_inputs import TableInputs


@dataclass(frozen=True)
class LakeTables:
    """One project's tables under one target."""

    loaded: Loaded
    catalog: Catalog

    @cached_property
    def reads(self) -> TableInputs:
        """Which tables the project's nodes read."""
        return TableInputs(self.loaded.rendered, self.catalog.places)


TablesT = TypeVar("TablesT", bound=LakeTables)


def require_lake(loaded: Loaded) -> None:
    """Raises UsageError where the target is not a Spark target."""
    if loaded.target.type != "spark":
        hint = "choose a target of type spark with -t"
        raise UsageError(f"the target {loaded.target.name!r} has no lake: its type is {loaded.target.type}", hint=hint)


def open_tables(loaded: Loaded, writes: Collection[str] = ()) -> LakeTables:
    """Return the tables of a Spark target.

    With `--defer`, tables that do not exist are read where `--defer-state` or `--state` has them, except those that
    the call `writes`. Raises UsageError for other targets.
    """
    require_lake(loaded)
    catalog = build_catalog(loaded.project, loaded.rendered, loaded.target, LakeHistory())
    if not loaded.invocation.defer:
        return LakeTables(loaded, catalog)
    state = loaded.deferred_state
    if state is None:
        raise UsageError("--defer needs --state PATH", hint="give the folder of the manifest.json to read tables from")
    graph = loaded.graph
    wanted = frozenset(catalog.places) if not writes else frozenset[str]().union(*map(graph.ancestors, writes))
    locations = state.locations(loaded.target.warehouse)
    return LakeTables(loaded, catalog.defer_missing(wanted.difference(writes), locations))
