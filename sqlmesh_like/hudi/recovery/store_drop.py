"""A table on an object store dropped: its files deleted where they are. Owns the order that survives a crash.

Nothing can be moved there. A mark in the table comes first, then its properties go, without which there is no table to
any reader, then all else. Who finds the mark without properties deletes the rest.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.commit_guard import require_locks
from sqlmesh_like.hudi.stores.store_client import delete_files, put_content
from sqlmesh_like.hudi.stores.table_lease import LOCK_FOLDER
from sqlmesh_like.hudi.timeline import Timeline

MARK = ".hoodie/.sml_dropped"
PROPERTIES = (".hoodie/hoodie.properties.backup", ".hoodie/hoodie.properties")
"""By each of them a folder is a table."""


def drop_on_store(uri: str, keep: Collection[str] = ()) -> None:
    """Drop a table; the lock of the call stays, and so do the files `keep`, which are those of its successor.

    With such files the mark stays as well: until the successor is whole, they are to be removed. Raises RetryableError
    where the lock no longer holds.
    """
    require_locks(uri)
    put_content(f"{uri}/{MARK}", b"")
    fault_point("drop.marked")
    delete_files(uri, PROPERTIES)
    fault_point("drop.moved")
    _delete_rest(uri, keep)
    fault_point("drop.end")


def is_half_dropped(uri: str) -> bool:
    """Whether a drop of a table was cut short, or of one that is whole was begun."""
    return folder(uri).exists(MARK)


def finish_drop(uri: str) -> None:
    """Complete a drop that was cut short, or forget one that had not begun. The caller holds the table's locks."""
    if not is_half_dropped(uri):
        return
    if Timeline(uri).exists:
        delete_files(uri, [MARK])
    else:
        _delete_rest(uri)


def _delete_rest(uri: str, keep: Collection[str] = ()) -> None:
    """Delete the files of a table without properties; the mark is the last one."""
    kept = {MARK, *keep}
    paths = [path for path in folder(uri).files() if path not in kept and not path.startswith(LOCK_FOLDER)]
    delete_files(uri, paths)
    if not keep:
        delete_files(uri, [MARK])
