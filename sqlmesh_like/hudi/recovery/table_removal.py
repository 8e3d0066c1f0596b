"""Removal of whole tables from a warehouse. Owns the order that survives a crash, and the names of tables set aside.

A table leaves its schema by one rename, into `_sml/dropped` of the warehouse, and is deleted there: readers see all of
it or nothing. On a store, where nothing can be moved, its properties are deleted first, without which there is no
table, and a note in that folder has its name. What a crash leaves is deleted by the next call.
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

from sqlmesh_like.errors import MachineError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.storage import folder, local_path
from sqlmesh_like.hudi.stores.commit_guard import require_locks
from sqlmesh_like.hudi.stores.store_client import delete_files, put_content
from sqlmesh_like.hudi.stores.table_lease import LOCK_FOLDER
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import is_store

_ASIDE = "__sml_broken_"
_DROPPED = "_sml/dropped"
_PROPERTIES = (".hoodie/hoodie.properties.backup", ".hoodie/hoodie.properties")
"""By each of them a folder is a table."""


def remove_table(warehouse: str, uri: str) -> None:
    """Remove a table's folder. The caller holds the lake's lock. Raises MachineError where the folder cannot be moved,
    having changed nothing, or cannot be deleted after that."""
    if is_store(uri):
        _remove_from_store(warehouse.rstrip("/"), uri.rstrip("/"))
        return
    source, dropped = Path(folder(uri).path), _dropped(warehouse)
    target = dropped / f"{source.parent.name}.{source.name}.{datetime.now(UTC):%Y%m%d%H%M%S%f}"
    try:
        dropped.mkdir(parents=True, exist_ok=True)
        source.rename(target)
    except OSError as error:
        hint = "check the permissions of the warehouse; nothing of the table was changed"
        raise MachineError(f"{uri} cannot be moved to {dropped}: {error.strerror}", hint=hint) from error
    fault_point("drop.moved")
    _delete(target)
    fault_point("drop.end")


def set_aside(uri: str) -> str:
    """Move a table's folder beside it and return the new address: files that may contain rows stay until somebody
    removes them. The caller holds the table's lock."""
    aside = f"{uri}{_ASIDE}{datetime.now(UTC):%Y%m%d%H%M%S%f}"
    folder(uri).fs.mv(folder(uri).path, folder(aside).path, recursive=True)
    return aside


def tables_set_aside(uri: str) -> list[Path]:
    """The folders on this machine to which a table was moved by `set_aside`."""
    place = local_path(uri)
    return sorted(place.parent.glob(f"{place.name}{_ASIDE}*"))


def delete_remains(warehouse: str) -> None:
    """Delete what interrupted removals left. The caller holds the lake's lock. Raises MachineError."""
    if is_store(warehouse):
        _finish_on_store(warehouse.rstrip("/"))
        return
    dropped = _dropped(warehouse)
    for path in sorted(dropped.iterdir()) if dropped.is_dir() else ():
        _delete(path)


def _dropped(warehouse: str) -> Path:
    return Path(folder(warehouse).path) / _DROPPED


def _remove_from_store(warehouse: str, uri: str) -> None:
    """The same on a store. Raises RetryableError where the locks of the call no longer hold."""
    require_locks(uri)
    note = f"{_DROPPED}/{uri.removeprefix(f'{warehouse}/').replace('/', '.')}"
    put_content(f"{warehouse}/{note}", b"")
    fault_point("drop.noted")
    delete_files(uri, _PROPERTIES)
    fault_point("drop.moved")
    _delete_below(uri)
    delete_files(warehouse, [note])
    fault_point("drop.end")


def _finish_on_store(warehouse: str) -> None:
    for name in folder(f"{warehouse}/{_DROPPED}").names():
        schema, _, table = name.partition(".")
        uri = f"{warehouse}/{schema}/{table}"
        if schema and table and not Timeline(uri).exists:  # else it had not begun: the table is whole
            _delete_below(uri)
        delete_files(warehouse, [f"{_DROPPED}/{name}"])


def _delete_below(uri: str) -> None:
    """Delete the files of a table without properties, but for the lock of the call that deletes them."""
    delete_files(uri, [path for path in folder(uri).files() if not path.startswith(LOCK_FOLDER)])


def _delete(path: Path) -> None:
    try:
        shutil.rmtree(path)
    except OSError as error:
        hint = "check its permissions; the next `sml clean --orphans` tries again"
        raise MachineError(f"{path} cannot be deleted: {error.strerror}", hint=hint) from error
