"""Where each node's table is stored. Owns unique id → table and path; reads only through `History`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from sqlmesh_like.errors import ProjectError, nearest
from sqlmesh_like.names import NodeId, TableName, is_store
from sqlmesh_like.plan.history import History, TableState
from sqlmesh_like.plan.side_by_side import side_by_side
from sqlmesh_like.project.nodes import ParsedProject, Target
from sqlmesh_like.project.reading.values import holds_secret
from sqlmesh_like.render.rendered import RenderedProject


@dataclass(frozen=True)
class TablePlace:
    """A table: its name, the folder that holds it and the format of its files."""

    unique_id: NodeId
    table: TableName
    uri: str
    format: str = "hudi"


@dataclass(frozen=True)
class Catalog:
    """All tables of a project under one target, by unique id. Views are not included.

    `borrowed` are tables of another warehouse, which are read but never written or cleaned.
    """

    places: dict[str, TablePlace]
    history: History
    borrowed: frozenset[str] = frozenset()

    def defer_missing(self, unique_ids: Iterable[str], elsewhere: Mapping[str, str]) -> Catalog:
        """Return a catalog that reads those of these tables that do not exist from folders in `elsewhere`."""
        candidates = (unique_id for unique_id in unique_ids if unique_id in self.places and unique_id in elsewhere)
        borrowed = frozenset(
            unique_id
            for unique_id in candidates
            if elsewhere[unique_id] != self.places[unique_id].uri and not self.state(unique_id).exists
        )
        moved = {unique_id: replace(self.places[unique_id], uri=elsewhere[unique_id]) for unique_id in borrowed}
        return replace(self, places={**self.places, **moved}, borrowed=borrowed)

    def state(self, unique_id: str) -> TableState:
        """The current state of a table; `missing` if there is none."""
        place = self.places[unique_id]
        return self.history.state(place.uri, place.format)

    def states(self, unique_ids: Iterable[str]) -> dict[str, TableState]:
        """The current states of those that are tables; on a store they are listed side by side."""
        wanted = [unique_id for unique_id in unique_ids if unique_id in self.places]
        if any(is_store(self.places[unique_id].uri) for unique_id in wanted):
            return dict(zip(wanted, side_by_side(self.state, wanted), strict=True))
        return {unique_id: self.state(unique_id) for unique_id in wanted}

    def keep(self, unique_ids: Iterable[str]) -> AbstractContextManager[None]:
        """See `History.keep`."""
        known = [self.places[unique_id] for unique_id in unique_ids if unique_id in self.places]
        return self.history.keep(place.uri for place in known if place.format == "hudi")

    def find(self, name: str) -> TablePlace:
        """Return the table with this id, `schema.identifier`, `source.table` or name.

        A model takes precedence over a source of the same name. Raises ProjectError that suggests the nearest name.
        """
        known: dict[str, TablePlace] = {}
        for place in sorted(self.places.values(), key=lambda place: place.unique_id.kind == "source"):
            unique_id = place.unique_id
            for spelling in (unique_id, str(place.table), unique_id.qualified_name, unique_id.short_name):
                known.setdefault(spelling, place)
        wanted = name.removeprefix("source:")
        if wanted not in known:
            raise ProjectError(f"no table {name!r} in this project", hint=nearest(wanted, known))
        return known[wanted]


def build_catalog(project: ParsedProject, rendered: RenderedProject, target: Target, history: History) -> Catalog:
    """Return the tables of all sources, seeds, models and stored test failures.

    Raises ProjectError for a name that cannot be a folder name, or is to be in a metastore and cannot.
    """
    places: dict[str, TablePlace] = {}
    if target.catalog == "hive":
        _require_registrable(project, rendered)
    for unique_id, table, location, form in _tables(project, rendered):
        places[unique_id] = TablePlace(unique_id, table, location or _uri(target, table), form)
    return Catalog(places, history)


def locations(project: ParsedProject, rendered: RenderedProject, target: Target) -> dict[str, str]:
    """Return the location of each table by unique id, for artifacts: none that holds a secret.

    Empty if the target has no lake.
    """
    if target.type != "spark":
        return {}
    locations_by_id = {
        unique_id: location or _uri(target, table)
        for unique_id, table, location, _ in _tables(project, rendered)
        if location or table.is_path_safe()
    }
    return {unique_id: uri for unique_id, uri in locations_by_id.items() if not holds_secret(uri)}


def _tables(project: ParsedProject, rendered: RenderedProject) -> Iterator[tuple[NodeId, TableName, str | None, str]]:
    """Unique id, name, explicit location and format of every table."""
    for source in project.sources:
        yield from ((table.unique_id, table.table, table.location, table.format) for table in source.tables)
    yield from ((seed.unique_id, seed.table, None, "hudi") for seed in rendered.seeds)
    yield from ((test.unique_id, test.table, None, "hudi") for test in rendered.tests if test.table is not None)
    for model in rendered.models:
        if model.config.materialized in ("incremental", "table", "snapshot"):
            yield model.unique_id, model.table, None, "hudi"


def _require_registrable(project: ParsedProject, rendered: RenderedProject) -> None:
    """Raise ProjectError for a table of this project that Hive's metastore does not take under its name.

    Source: `validateName` and the columns TBLS.TBL_NAME and DBS.NAME of Hive's metastore; names of columns may have
    any letters (`LONGEST_COLUMN` of them).
    """
    read = {table.unique_id for source in project.sources for table in source.tables if table.ingest is None}
    for unique_id, table, _, _ in _tables(project, rendered):
        if unique_id not in read and not all(map(_IN_METASTORE.fullmatch, (table.schema, table.identifier))):
            key = "identifier" if unique_id.kind == "source" else "alias"
            hint = f"give {unique_id.qualified_name} another {key}, and its schema such a name"
            limits = "it takes up to 128 ASCII letters, digits and underscores"
            raise ProjectError(f"Hive's metastore cannot have a table {table}: {limits}", hint=hint)


_IN_METASTORE = re.compile(r"[A-Za-z0-9_]{1,128}")


def _uri(target: Target, table: TableName) -> str:
    if not table.is_path_safe():
        raise ProjectError(f"{table} cannot be a folder name", hint="use letters, digits, underscores, dots, hyphens")
    return f"{target.warehouse.rstrip('/')}/{table.schema}/{table.identifier}"
