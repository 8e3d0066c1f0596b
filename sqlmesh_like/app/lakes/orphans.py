"""Tables of nodes that are gone from the project. Owns which tables these are, and dropping them. Needs no JVM.

A table is recognized by the record in its own commits, never by its path: the record names the node, and thereby the
project, that wrote it. Tables of sources have no such record, nor have tables of other writers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sqlmesh_like.app.lakes.lake import open_lake
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.lakes.table_locks import drop_locks
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.recovery.store_drop import is_half_dropped
from sqlmesh_like.hudi.recovery.table_removal import delete_remains, remove_table
from sqlmesh_like.hudi.storage import Folder, folder
from sqlmesh_like.hudi.stores.table_lease import LOCK_FOLDER
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import NodeId, TableName, is_store, is_tried_store
from sqlmesh_like.plan.history import History, TableState

_KINDS = ("model", "seed", "snapshot", "test")
"""Kinds of nodes that have tables with a record."""


@dataclass(frozen=True)
class Orphan:
    """A table whose node is no longer in the project, or is disabled. `bytes`: of its files, older ones too, but locks.

    `rows`: as its commits state them, an estimate where older ones are archived. `frontier`: its newest commit.
    """

    unique_id: NodeId
    table: TableName
    uri: str
    status: Literal["removed", "disabled"]
    frontier: str
    bytes: int
    rows: int


@dataclass(frozen=True)
class Orphans:
    """Orphans by name. `left_alone`: other tables without a node of this target, each with the reason, in words."""

    tables: tuple[Orphan, ...]
    left_alone: tuple[str, ...]


def find_orphans(loaded: Loaded) -> Orphans:
    """Return the tables that nodes of this project wrote and that no node of it has any more. Changes nothing.

    Only schemas that this target writes are taken: the same project may write others of the warehouse under another
    target. Raises UsageError where the target has no lake.
    """
    loaded = loaded.storing_failures()
    lake = open_lake(loaded)
    live = frozenset(_path(folder(place.uri)) for place in lake.catalog.places.values())
    schemas = _schemas(loaded)
    orphans: list[Orphan] = []
    left_alone: list[str] = []
    for table, place in _folders(loaded.target.warehouse):
        if _is_live(place, live):
            continue
        try:
            state = lake.catalog.history.state(place.uri)
        except NodeError as error:
            left_alone.append(f"{table} cannot be read: {error.message}")
            continue
        node = _gone_node(loaded, state)
        if node is None:
            continue
        if table.schema not in schemas:
            left_alone.append(f"{table} of {node}: no node of target {loaded.target.name!r} is in its schema")
        elif nested := _nested_table(place):
            left_alone.append(f"{table} of {node}: another table is inside its folder, {nested}")
        elif saved := Timeline(place.uri).savepointed:
            left_alone.append(
                f"{table} of {node}: it has the savepoint {saved[-1]}, which Spark's delete_savepoint ends"
            )
        else:
            orphans.append(_orphan(loaded, lake.catalog.history, table, node, state))
    return Orphans(tuple(orphans), tuple(left_alone))


def require_droppable(loaded: Loaded) -> None:
    """Raises NodeError where the target's tables cannot be dropped."""
    warehouse = loaded.target.warehouse
    if not (folder(warehouse).is_local or is_tried_store(warehouse)):
        hint = "delete the folders that `sml ls --orphans` lists with the store's own tools, while no run writes"
        text = f"{warehouse} is neither on this machine nor on S3 or HDFS: its tables are not dropped"
        raise NodeError(text, hint=hint)


def drop_orphans(loaded: Loaded, confirmed: Collection[Orphan], on_dropped: Callable[[Orphan], None]) -> None:
    """Drop those of the confirmed orphans that have not changed since; `on_dropped` is called after each.

    Raises NodeError for a remote warehouse, RetryableError where another process is writing, MachineError where a
    folder cannot be removed.
    """
    require_droppable(loaded)
    warehouse = loaded.target.warehouse
    if not folder(warehouse).exists():
        return
    half = [place.uri for _, place in _folders(warehouse) if is_half_dropped(place.uri)] if is_store(warehouse) else []
    with lake_lock(loaded, "clean --orphans", drop_locks(loaded, [*half, *(orphan.uri for orphan in confirmed)])):
        delete_remains(warehouse, half)
        for orphan in find_orphans(loaded).tables:
            if orphan in confirmed:
                loaded.reporter.phase(f"dropping {orphan.table}")
                remove_table(warehouse, orphan.uri)
                on_dropped(orphan)


def _schemas(loaded: Loaded) -> frozenset[str]:
    rendered = loaded.rendered
    tables = [model.table for model in rendered.models] + [seed.table for seed in rendered.seeds]
    tables += [test.table for test in rendered.tests if test.table is not None]
    return frozenset({loaded.target.schema, *(table.schema for table in tables)})


def _folders(warehouse: str) -> Iterator[tuple[TableName, Folder]]:
    """Hudi tables two levels below the warehouse, by name. Links are left out: their rows are somewhere else."""
    root = warehouse.rstrip("/")
    for schema in sorted(folder(root).names()):
        if schema.startswith(("_", ".")) or _is_link(f"{root}/{schema}"):
            continue
        for identifier in sorted(folder(f"{root}/{schema}").names()):
            place = folder(f"{root}/{schema}/{identifier}")
            if not _is_link(place.uri) and place.exists(".hoodie"):
                yield TableName(schema, identifier), place


def _is_link(uri: str) -> bool:
    return folder(uri).is_local and Path(folder(uri).path).is_symlink()


def _is_live(place: Folder, live: Collection[str]) -> bool:
    """Whether a folder is that of a node, contains one, or is a table that a swap left beside one."""
    path = _path(place)
    parent, _, name = path.rpartition("/")
    return f"{parent}/{name.partition('__sml_')[0]}" in live or any(f"{each}/".startswith(f"{path}/") for each in live)


def _path(place: Folder) -> str:
    """A folder's path, on this machine without links: a source may have its location through one."""
    return str(Path(place.path).resolve()) if place.is_local else place.path


def _gone_node(loaded: Loaded, state: TableState) -> NodeId | None:
    """The node of this project that wrote a table and is gone; None where there is none, or others wrote to it."""
    if state.record is None or state.is_foreign_on_top:
        return None
    node = NodeId.parse(str(state.record.unique_id))
    if not node.startswith(tuple(f"{kind}.{loaded.project.name}." for kind in _KINDS)):
        return None
    return None if node in loaded.graph.nodes else node


def _nested_table(place: Folder) -> str | None:
    inside = (path for path in place.files() if "/.hoodie/" in path and not path.startswith(".hoodie/"))
    return next((path.partition("/.hoodie/")[0] for path in inside), None)


def _orphan(loaded: Loaded, history: History, table: TableName, node: NodeId, state: TableState) -> Orphan:
    assert state.frontier is not None
    is_disabled = node in loaded.rendered.disabled or any(node == test.unique_id for test in loaded.project.tests)
    return Orphan(
        node, table, state.uri, "disabled" if is_disabled else "removed", state.frontier,
        sum(size for path, size in folder(state.uri).sizes().items() if not path.startswith(LOCK_FOLDER)),
        history.volume(state.uri, state.frontier).rows,
    )  # fmt: skip
