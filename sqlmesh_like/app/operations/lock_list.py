"""Who holds which locks of the lake, and ending those of a table on a store. Owns neither taking nor keeping them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlmesh_like.app.lakes.call_locks import written_tables
from sqlmesh_like.app.lakes.lake_lock import known_holders
from sqlmesh_like.app.lakes.lake_tables import open_tables, require_lake
from sqlmesh_like.app.lakes.lock_registry import Holder
from sqlmesh_like.app.lakes.store_registry import StoreRegistry
from sqlmesh_like.app.lakes.table_locks import table_lock_name
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.source_discovery import with_discovered_tables
from sqlmesh_like.errors import NodeError, UsageError
from sqlmesh_like.hudi.stores.table_lease import Lease, end_lease
from sqlmesh_like.names import TableName, is_store


@dataclass(frozen=True)
class EndedLocks:
    """What `end_locks` has ended: calls of `sml`, and the lock that another program had on the table's own file."""

    table: TableName
    holders: tuple[Holder, ...]
    foreign: Lease | None = None


def list_holders(loaded: Loaded) -> tuple[Holder, ...]:
    """Return the calls that hold locks of the target's warehouse. Raises UsageError where the target has no lake."""
    require_lake(loaded)
    return known_holders(loaded)


def end_locks(loaded: Loaded, name: str) -> EndedLocks:
    """End all locks of the calls that hold one of a table, and the table's own lock, whoever has it.

    Such a call is refused at its next commit. Raises ProjectError for an unknown table, UsageError where locks are
    those of the operating system, which end with their process alone, and NodeError where nobody holds the table.
    """
    loaded = with_discovered_tables(loaded)
    require_lake(loaded)
    place, warehouse = open_tables(loaded).catalog.find(name), loaded.target.warehouse
    lock = table_lock_name(loaded, place.uri)
    if not is_store(warehouse):
        held = [holder for holder in known_holders(loaded) if lock in holder.locks]
        hint = (
            f"end process {held[0].process} on {held[0].host}" if held else "nobody holds it: there is nothing to end"
        )
        raise UsageError(f"locks of {warehouse} end with their process, and not before", hint=hint)
    registry = StoreRegistry(warehouse, loaded.target.store.lease_seconds)
    entries = [entry for entry in registry.entries() if lock in entry.holder.locks]
    registry.remove(*(entry.owner for entry in entries))
    for entry in entries:
        for table in written_tables(entry.holder.locks):
            end_lease(table, entry.owner)
    lease = end_lease(place.uri)
    if not entries and lease is None:
        raise NodeError(f"nobody holds a lock of {place.table}")
    return EndedLocks(place.table, tuple(entry.holder for entry in entries), lease)
