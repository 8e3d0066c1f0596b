"""Replacing a table whose types or partitions change: built beside, then swapped by two renames. Owns their recovery.

The names on disk are the journal: `<table>__sml_new` is a table being built, `<table>__sml_old` the one it replaces.
One that is built in slices is `<table>__sml_slices`, and takes its place by `take_place`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sqlmesh_like.errors import NodeError, RetryableError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import is_store
from sqlmesh_like.plan.slices.sliced_build import beside

_NEW, _OLD = "__sml_new", "__sml_old"


def replace_table(uri: str, name: str, build: Callable[[str], None]) -> None:
    """Build the new table beside the old one, at the address that `build` is given, and swap them.

    Raises NodeError on stores, where the lock of a table is in its folder and nothing is moved, and where the old table
    has a savepoint, which would be lost.
    """
    if not folder(uri).is_local:
        hint = f"delete {uri} or give the model another alias, then run again"
        raise NodeError(f"{name} changes its types or partitions, which cannot be done in place here", hint=hint)
    recover(uri)
    require_no_savepoint(uri)
    build(uri + _NEW)
    fault_point("swap.built")
    _move(uri, uri + _OLD)
    fault_point("swap.old_aside")
    _move(uri + _NEW, uri)
    fault_point("swap.new_in_place")
    remove(uri + _OLD)
    fault_point("swap.end")


def require_no_savepoint(uri: str) -> None:
    """Raises NodeError where a table has a savepoint, which a new one in its place would not have."""
    if saved := Timeline(uri).savepointed:
        hint = f"delete it if it is not needed: `sml savepoint delete TABLE {saved[-1]}`"
        raise NodeError(f"{uri} has the savepoint {saved[-1]}, which a new table would not have", hint=hint)


def create_table(uri: str, build: Callable[[str], None]) -> None:
    """Build a table where there is none beside its address, and move it there as a whole.

    `recover` has been called. Raises RetryableError where another writer was there first.
    """
    fault_point("create.begin")
    build(uri + _NEW)
    fault_point("create.built")
    if folder(uri).exists():
        remove(uri + _NEW)
        raise RetryableError(f"another writer has made {uri}")
    _move(uri + _NEW, uri)
    fault_point("create.end")


def take_place(source: str, uri: str) -> None:
    """Move a table from elsewhere on the same disk or bucket into the place of the one at `uri`, if there is one.

    Where a crash interrupts it, `recover` returns to the table that was there, and the same call completes it. On a
    store, which moves nothing, the table is copied, and there is none in between.
    """
    if is_store(uri):
        from sqlmesh_like.hudi.recovery.store_move import take_place_on_store  # needs obstore

        take_place_on_store(uri, source)
        remove(source)
        return
    if folder(source).exists():
        if folder(uri).exists():
            remove(uri + _OLD)
            _move(uri, uri + _OLD)
            fault_point("promotion.aside")
        Path(folder(uri).path).parent.mkdir(parents=True, exist_ok=True)
        _move(source, uri)
        fault_point("promotion.moved")
    remove(uri + _OLD)


def remove_beside(uri: str) -> None:
    """Remove the slices of a table that were built beside it, and what a call cut short had copied of them."""
    if is_store(uri):
        from sqlmesh_like.hudi.recovery.store_drop import finish_drop  # needs obstore

        finish_drop(uri)
    remove(beside(uri))


def remains(uri: str) -> tuple[str, ...]:
    """Where builds and swaps of a table that were cut short have left one: they have rows that no reader sees."""
    places = (beside(uri),) if is_store(uri) else (uri + _NEW, uri + _OLD, beside(uri), beside(uri) + _NEW)
    return tuple(place for place in places if folder(place).exists())


def has_remains(uri: str) -> bool:
    """Whether a table was being built, or swapped, when a process died: `recover` has to be called."""
    return folder(uri + _NEW).exists() or folder(uri + _OLD).exists()


def recover(uri: str) -> bool:
    """Finish or undo a swap that a crash interrupted. Returns whether a table was moved to `uri`.

    On a store `take_place` itself goes on, and nothing else is built beside a table.
    """
    if is_store(uri):
        return False
    new, old = uri + _NEW, uri + _OLD
    has_new, has_old = folder(new).exists(), folder(old).exists()
    # A crash between the two renames: the new table was complete before the first.
    is_complete = has_new and Timeline(new).frontier is not None
    is_moved = not folder(uri).exists() and (is_complete or has_old)
    if is_moved:
        _move(new if is_complete else old, uri)
    remove(new)
    remove(old)
    remove(beside(uri) + _NEW)  # of the first slice of a build
    return is_moved


def _move(source: str, target: str) -> None:
    folder(source).fs.mv(folder(source).path, folder(target).path, recursive=True)


def remove(uri: str) -> None:
    """Remove a table, if there is one."""
    if not folder(uri).exists():
        return
    if is_store(uri):
        from sqlmesh_like.hudi.recovery.store_drop import drop_on_store  # needs obstore

        drop_on_store(uri)
    else:
        folder(uri).fs.rm(folder(uri).path, recursive=True)
