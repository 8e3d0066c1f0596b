"""The locks that each call needs. Owns their names and modes; `lock_registry` says which modes exclude each other.

A table's lock is named as the table is. Whoever may replace a table's folder or remove its commits also excludes its
readers: a run, which builds a table anew where types change, cleaning and recovery. Ingestion only appends commits, and
readers pin theirs, so it excludes writers alone. Every call has a lock of the whole lake as well, which one takes for
itself where it cannot name its tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from sqlmesh_like.app.lakes.lake_tables import LakeTables
from sqlmesh_like.app.lakes.lock_registry import Locks, Mode
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.names import NodeId
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.project.nodes import Source
from sqlmesh_like.project.publishing import Destination
from sqlmesh_like.publish.publisher import LakePublisher, published_name
from sqlmesh_like.render.table_inputs import Reader
from sqlmesh_like.secrets import scrub_text

_OF_LAKE = "~"
"""First character of names of locks of the whole lake: they sort after tables, which a refusal rather names."""
_RUNS, _INGESTIONS = f"{_OF_LAKE}runs", f"{_OF_LAKE}ingestions"
BESIDE_INGESTION: Locks = {_RUNS: "replace"}
"""The lock of calls that cannot name their tables: hooks and templates that query the lake may use any."""
ALONE: Locks = {_RUNS: "replace", _INGESTIONS: "replace"}


def is_of_lake(name: str) -> bool:
    """Whether a lock is one of the whole lake."""
    return name.startswith(_OF_LAKE)


def run_locks(
    lake: LakeTables,
    selected: Collection[str],
    publisher: LakePublisher | None,
    *,
    has_hooks: bool = False,
) -> Locks:
    """Return the locks of a run: of the tables that it builds, that these and its tests read, and of publishing."""
    built = {unique_id for unique_id in selected if unique_id in lake.catalog.places}
    used = lake.loaded.graph.above(selected)
    return {
        **publication_locks(lake, publisher),
        _RUNS: "replace" if has_hooks or _introspective_nodes(lake) & used else "read",
        **_of_places(lake, _input_tables(lake, selected), "read"),
        **_of_places(lake, built, "replace"),
    }


def environment_locks(lake: LakeTables, name: str, selected: Collection[str]) -> Locks:
    """Return the locks of a run in an environment: of its tables as a whole; `lake`: production, which is only read."""
    cloned = {unique_id for unique_id in selected if unique_id in lake.catalog.places}
    return {
        **environment_lock(name),
        _RUNS: "replace" if _introspective_nodes(lake) & lake.loaded.graph.above(selected) else "read",
        **_of_places(lake, cloned | _input_tables(lake, selected), "read"),
    }


def environment_lock(name: str) -> Locks:
    """Return the lock of all tables of an environment."""
    return {_RUNS: "read", f"environment {name}": "replace"}


def promotion_locks(loaded: Loaded, name: str, uris: Iterable[str]) -> Locks:
    """Return the locks of making an environment's tables those of production in these folders."""
    replaced: dict[str, Mode] = {_name(loaded, uri): "replace" for uri in uris}
    return {**environment_lock(name), **replaced}


def _input_tables(lake: LakeTables, selected: Collection[str]) -> set[str]:
    """The tables that selected models and tests read."""
    rendered = lake.loaded.rendered
    readers: list[Reader] = [model for model in rendered.models if model.unique_id in selected]
    readers += [test for test in rendered.tests if test.unique_id in selected]
    return {unique_id for reader in readers for unique_id in lake.reads.of(reader)}


def _introspective_nodes(lake: LakeTables) -> set[NodeId]:
    """Nodes whose templates query the lake: they may name any table."""
    rendered = lake.loaded.rendered
    asking = {model.unique_id for model in rendered.models if model.asks_lake}
    return asking | {test.unique_id for test in rendered.tests if test.asks_lake}


def publication_locks(lake: LakeTables, publisher: LakePublisher | None) -> Locks:
    """Return the locks of publishing models, empty for None."""
    if publisher is None:
        return {}
    chosen = publisher.chosen
    models = [model for model in lake.loaded.rendered.models if model.unique_id in chosen]
    written = {_destination(to, published_name(model)) for model in models for to in chosen[model.unique_id]}
    return {_RUNS: "read", **_of_places(lake, chosen, "read"), **dict.fromkeys(written, "replace")}


def ingestion_locks(loaded: Loaded, sources: Iterable[Source]) -> Locks:
    """Return the locks of ingesting these sources."""
    locks: dict[str, Mode] = {_INGESTIONS: "read"}
    for source in sources:
        paths, tables = SourcePaths(loaded.target, source), [table for table in source.tables if table.ingest]
        uris = [paths.dead_letters_uri, *map(paths.table_uri, tables)]
        locks |= {_source(source): "append", **{_name(loaded, uri): "append" for uri in uris}}
    return locks


def log_locks(source: Source) -> Locks:
    """Return the locks of reading a source's log without writing to its tables."""
    return {_INGESTIONS: "read", _source(source): "append"}


def upkeep_locks(lake: LakeTables, places: Iterable[TablePlace], mode: Mode = "replace") -> Locks:
    """Return the locks of a service on these tables; a table of a source is not ingested meanwhile."""
    loaded, unique_ids = lake.loaded, {place.unique_id for place in places}
    ingested = [
        source
        for source in loaded.project.sources
        if source.ingest and not unique_ids.isdisjoint(table.unique_id for table in source.tables)
    ]
    of_sources: dict[str, Mode] = {_source(source): "append" for source in ingested}
    return {_RUNS: "read", **of_sources, **_of_places(lake, unique_ids, mode)}


def drop_locks(loaded: Loaded, uris: Iterable[str]) -> Locks:
    """Return the locks of dropping the tables in these folders."""
    return {_RUNS: "read", f"{_OF_LAKE}dropped": "replace", **{_name(loaded, uri): "replace" for uri in uris}}


def erasure_locks(loaded: Loaded, uris: Iterable[str]) -> Locks:
    """Return the locks of searching the whole lake and removing files of these tables.

    On a store the tables' own locks keep writers of Hudi out as well.
    """
    return {**ALONE, **{_name(loaded, uri): "replace" for uri in uris}}


def table_lock_name(loaded: Loaded, uri: str) -> str:
    """Return the name of a table's lock."""
    return _name(loaded, uri)


def _of_places(lake: LakeTables, unique_ids: Iterable[str], mode: Mode) -> dict[str, Mode]:
    return {_name(lake.loaded, lake.catalog.places[unique_id].uri): mode for unique_id in unique_ids}


def _source(source: Source) -> str:
    """The lock of an ingestion's state, which is beside its tables."""
    return f"source {source.name}"


def _destination(to: Destination, table: str) -> str:
    """A file has one writer at a time; elsewhere each table does."""
    is_one_file = to.kind == "duckdb" or (to.kind == "url" and to.place.startswith("sqlite"))
    return f"destination {to.name}" if is_one_file else f"table {table} in destination {to.name}"


def _name(loaded: Loaded, uri: str) -> str:
    """`schema.identifier` of a table below the warehouse, whichever node has it; else the path or address."""
    if not folder(uri).is_local:
        return scrub_text(uri)
    path, warehouse = Path(folder(uri).path).resolve(), Path(folder(loaded.target.warehouse).path).resolve()
    return ".".join(path.relative_to(warehouse).parts) if path.is_relative_to(warehouse) else str(path)
