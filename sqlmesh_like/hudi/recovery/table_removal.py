"""Removal of whole tables from a warehouse. Owns the order that survives a crash, and the names of tables set aside.

A table leaves its schema by one rename, into `_sml/dropped` of the warehouse, and is deleted there: readers see all of
it or nothing. What a crash leaves in that folder is deleted by the next call. On a store see `store_drop`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from sqlmesh_like.errors import MachineError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.recovery.store_drop import drop_on_store, finish_drop
from sqlmesh_like.hudi.storage import folder, local_path
from sqlmesh_like.names import is_store

_ASIDE = "__sml_broken_"
_THREADS = 8
"""For deletion: ext4 answers the removal of a folder after one to two milliseconds, but several at once."""


def remove_table(warehouse: str, uri: str) -> None:
    """Remove a table's folder. The caller holds the lake's lock. Raises MachineError where the folder cannot be moved,
    having changed nothing, or cannot be deleted after that."""
    if is_store(uri):
        drop_on_store(uri)
        return
    source, dropped = Path(folder(uri).path), _dropped_folder(warehouse)
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


def delete_table(uri: str) -> None:
    """Delete a table whose rows nothing reads, where it is. The caller holds the table's locks."""
    if is_store(uri):
        drop_on_store(uri)
    else:
        shutil.rmtree(local_path(uri), ignore_errors=True)


def set_aside(uri: str) -> str:
    """Move a table's folder beside it and return the new address: files that may contain rows stay until somebody
    removes them. The caller holds the table's lock."""
    aside = f"{uri}{_ASIDE}{datetime.now(UTC):%Y%m%d%H%M%S%f}"
    folder(uri).fs.mv(folder(uri).path, folder(aside).path, recursive=True)
    return aside


def tables_set_aside(uri: str) -> list[Path]:
    """The folders on this machine to which a table was moved by `set_aside`; none of one on a store."""
    if is_store(uri):
        return []
    place = local_path(uri)
    return sorted(place.parent.glob(f"{place.name}{_ASIDE}*"))


def delete_remains(warehouse: str, half_dropped: Iterable[str] = ()) -> None:
    """Delete what interrupted removals left. The caller holds the lake's lock. Raises MachineError.

    `half_dropped`: tables on a store that are, or may be.
    """
    for uri in half_dropped:
        finish_drop(uri)
    if is_store(warehouse):
        return
    dropped = _dropped_folder(warehouse)
    for path in sorted(dropped.iterdir()) if dropped.is_dir() else ():
        _delete(path)


def _dropped_folder(warehouse: str) -> Path:
    return Path(folder(warehouse).path) / "_sml" / "dropped"


def _subtrees(path: Path) -> list[Path]:
    """The folders of the first level below that has as many as there are threads, or of the last level."""
    folders = [path]
    while len(folders) < _THREADS:
        below = [each for parent in folders for each in parent.iterdir() if each.is_dir() and not each.is_symlink()]
        if not below:
            break
        folders = below
    return folders


def _delete(path: Path) -> None:
    try:
        with ThreadPoolExecutor(_THREADS) as pool:
            for _ in pool.map(shutil.rmtree, _subtrees(path)):
                pass
        if path.exists():  # it may have been the only subtree
            shutil.rmtree(path)
    except OSError as error:
        hint = "check its permissions; the next `sml clean --orphans` tries again"
        raise MachineError(f"{path} cannot be deleted: {error.strerror}", hint=hint) from error
