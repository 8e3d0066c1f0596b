"""Tables on a store that an erasure drops because they have to be built anew. Owns the note that they are to be.

On a disk such a table is set aside, and found there by whoever goes on after a crash. On a store nothing can be moved:
a note in the warehouse comes before the drop, and goes when all models are right again.
"""

from __future__ import annotations

from sqlmesh_like.hudi.recovery.store_drop import drop_on_store
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.store_client import delete_files, put_content
from sqlmesh_like.names import is_store

_NOTES = "_sml/erasure"


def drop_to_rebuild(warehouse: str, table: str, uri: str) -> None:
    """Drop a table on a store, to be built anew. The caller holds the table's locks."""
    put_content(f"{warehouse}/{_NOTES}/{table}", b"")
    drop_on_store(uri)


def tables_to_rebuild(warehouse: str) -> frozenset[str]:
    """The tables that were dropped, by their names; none on a disk."""
    return frozenset(folder(f"{warehouse}/{_NOTES}").names() if is_store(warehouse) else ())


def forget_rebuilt(warehouse: str) -> None:
    """Remove the notes: all of these tables were built anew."""
    if names := tables_to_rebuild(warehouse):
        delete_files(warehouse, [f"{_NOTES}/{name}" for name in names])
