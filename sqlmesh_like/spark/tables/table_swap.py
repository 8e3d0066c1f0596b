"""Replacing a table whose types or partitions change: built beside, then swapped by two renames. Owns their recovery.

The names on disk are the journal: `<table>__sml_new` is a table being built, `<table>__sml_old` the one it replaces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlmesh_like.errors import NodeError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.spark.tables.hudi_table import HudiTable

_NEW, _OLD = "__sml_new", "__sml_old"


def replace_table(table: HudiTable, build: Callable[[HudiTable], None]) -> None:
    """Build the new table beside the old one and swap them.

    Raises NodeError on stores without an atomic rename, and where the old table has a savepoint, which would be lost.
    """
    if not folder(table.uri).is_local and not table.uri.startswith("hdfs://"):
        hint = f"delete {table.uri} or give the model another alias, then run again"
        raise NodeError(f"{table.name} changes its types or partitions, which cannot be done in place here", hint=hint)
    recover(table.uri)
    if saved := Timeline(table.uri).savepointed:
        hint = f"delete it if it is not needed: `sml savepoint delete TABLE {saved[-1]}`"
        raise NodeError(f"{table.uri} has the savepoint {saved[-1]}, which a new table would not have", hint=hint)
    build(replace(table, uri=table.uri + _NEW))
    fault_point("swap.built")
    _move(table.uri, table.uri + _OLD)
    fault_point("swap.old_aside")
    _move(table.uri + _NEW, table.uri)
    fault_point("swap.new_in_place")
    _remove(table.uri + _OLD)
    fault_point("swap.end")


def recover(uri: str) -> bool:
    """Finish or undo a swap that a crash interrupted. Returns whether a table was moved to `uri`."""
    new, old = uri + _NEW, uri + _OLD
    has_new, has_old = folder(new).exists(), folder(old).exists()
    # A crash between the two renames: the new table was complete before the first.
    is_complete = has_new and Timeline(new).frontier is not None
    is_moved = not folder(uri).exists() and (is_complete or has_old)
    if is_moved:
        _move(new if is_complete else old, uri)
    _remove(new)
    _remove(old)
    return is_moved


def _move(source: str, target: str) -> None:
    folder(source).fs.mv(folder(source).path, folder(target).path, recursive=True)


def _remove(uri: str) -> None:
    if folder(uri).exists():
        folder(uri).fs.rm(folder(uri).path, recursive=True)
