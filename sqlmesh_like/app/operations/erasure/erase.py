"""Rows forgotten, step by step. Owns the order: a crash leaves less to do for the same call, never more.

Rows leave the source's table by an ordinary commit, models follow in an ordinary run, so that each is what its query
says; only then are earlier versions removed. Every step finds what the steps before it have done.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sqlmesh_like.app.lakes.environment_lake import require_no_environments
from sqlmesh_like.app.lakes.lake import hudi_options
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.lakes.table_locks import erasure_locks
from sqlmesh_like.app.loading.loaded import Loaded, load
from sqlmesh_like.app.operations.erasure.plan import Erasure, require_erasable, require_planned
from sqlmesh_like.app.operations.erasure.proof import (
    Proof,
    artifacts,
    is_left_in,
    names_partition,
    prove,
    searched_texts,
)
from sqlmesh_like.app.operations.run_nodes import RunRequest, run_nodes
from sqlmesh_like.app.reporter import RunListener
from sqlmesh_like.cdc.tables.letters_of_keys import OPEN, letters_of_keys
from sqlmesh_like.errors import NodeError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.erasure.byte_search import Needles, find_texts
from sqlmesh_like.hudi.erasure.delete_rows import delete_rows
from sqlmesh_like.hudi.erasure.old_versions import remove_old_versions
from sqlmesh_like.hudi.erasure.row_match import RowMatch
from sqlmesh_like.hudi.erasure.tables_to_rebuild import drop_to_rebuild, forget_rebuilt
from sqlmesh_like.hudi.recovery.table_removal import delete_table, set_aside, tables_set_aside
from sqlmesh_like.hudi.recovery.table_swap import remains, remove
from sqlmesh_like.hudi.services.timeline_files import remove_files
from sqlmesh_like.hudi.storage import folder, local_path
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import KEY, NodeId, is_store
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.publish.freed_space import drop_freed_space


@dataclass(frozen=True)
class Erased:
    """The outcome: numbers of deleted rows by table, of removed files, and what the search found."""

    rows: Mapping[str, int]
    files: int
    proof: Proof


def erase(erasure: Erasure, listener: RunListener, notify: Callable[[str], None]) -> Erased:
    """Forget the rows of an erasure, and search for what is left.

    Raises NodeError where a model fails, RetryableError where another process is writing: the same call continues.
    """
    try:
        return _erase(erasure, listener, notify)
    finally:
        erasure.lake.engine.stop()


def _erase(erasure: Erasure, listener: RunListener, notify: Callable[[str], None]) -> Erased:
    with _lock_warehouse(erasure) as erasure:
        require_planned(erasure)  # it was planned without locks, and somebody had time to answer
        require_erasable(erasure)
        rows = _delete(erasure)
    for table, count in rows.items():
        if count or table == str(erasure.place.table):
            notify(f"{count} row{'s' * (count != 1)} deleted in {table}")
    _update_models(erasure, listener, notify)
    fault_point("erasure.models")
    with _lock_warehouse(erasure) as erasure:
        require_planned(erasure, has_run=True)  # nor were others kept out while models ran
        _remove_copies(erasure)
        _compact(erasure)
        files = 0
        for uri in erasure.uris:
            files += remove_old_versions(uri)
            fault_point("erasure.table")
        for destination in erasure.destinations:
            drop_freed_space(destination)
        # Files below the target folder that have one of the texts: commands write them again.
        with_texts = find_texts(artifacts(erasure), Needles(erasure.texts), erasure.loaded.target_folder)
        paths = {each.path for each in with_texts}
        for path in paths:
            Path(path).unlink(missing_ok=True)
        files += len(paths)
        fault_point("erasure.artifacts")
        erasure.loaded.reporter.phase("searching the files")
        return Erased(rows, files, prove(erasure))


@contextmanager
def _lock_warehouse(erasure: Erasure) -> Iterator[Erasure]:
    """Keep all others out: the files of the whole warehouse are searched. Raises UsageError for its environments.

    Yields a copy, which knows the tables that exist now.
    """
    changed = (*erasure.changed, *(place.uri for place in erasure.failures))
    with lake_lock(erasure.loaded, "forget", erasure_locks(erasure.loaded, changed)):
        require_no_environments(erasure.loaded)
        yield replace(erasure)


def _delete(erasure: Erasure) -> dict[str, int]:
    """Delete the rows where no query does: in the source's table, beside it, and in snapshots."""
    tombstones, dead_letters = erasure.side_tables
    named = letters_of_keys(dead_letters, erasure.table, erasure.keys, erasure.record_keys, erasure.texts)
    rows = {
        str(erasure.place.table): _delete_in(erasure, erasure.place, erasure.own_match),
        "its remembered deletes": delete_rows(tombstones, _of_keys(erasure.record_keys)),
        str(erasure.paths.dead_letters): delete_rows(dead_letters, _of_keys(named), (OPEN,)) if named else 0,
    }
    for snapshot in erasure.snapshots:
        matches = erasure.matches[snapshot.unique_id]
        rows[str(snapshot.table)] = sum(_delete_in(erasure, snapshot, match) for match in matches)
    return rows


def _delete_in(erasure: Erasure, place: TablePlace, match: RowMatch) -> int:
    """Delete rows of one table; in one that is merge-on-read, Spark does."""
    if Timeline(place.uri).is_cow:
        return delete_rows(place.uri, match)
    options = hudi_options(erasure.loaded, place.unique_id)
    return erasure.lake.engine.delete_rows(place.uri, match.columns, match.values, options)


def _compact(erasure: Erasure) -> None:
    """Merge the log files of merge-on-read tables, which keep deleted rows, and their base files do too."""
    for uri in erasure.uris:
        if erasure.lake.catalog.history.uncompacted_commits(uri):
            erasure.lake.engine.compact(uri)


def _of_keys(keys: Collection[str]) -> RowMatch:
    return RowMatch((KEY,), [(key,) for key in keys])


def _remove_copies(erasure: Erasure) -> None:
    """Remove copies of rows that nothing reads: stored failures, tables that were set aside, tables that a call which
    was cut short has built beside others, remains of exports.

    Comes after the models: a test that ran meanwhile may have stored failures, and a model is set aside until rebuilt.
    """
    warehouse = erasure.loaded.target.warehouse
    for failures in erasure.failures:
        delete_table(failures.uri)
    for place in (erasure.place, *erasure.models, *erasure.snapshots):
        for aside in tables_set_aside(place.uri):
            shutil.rmtree(aside)
        # Of a table that is not there, one of these may be all that there is.
        for left in remains(place.uri) if Timeline(place.uri).exists else ():
            remove(left)
    forget_rebuilt(warehouse)
    if is_store(warehouse):
        exports = folder(f"{warehouse}/_sml/publish")
        remove_files(exports, exports.files())
    else:
        shutil.rmtree(local_path(warehouse) / "_sml" / "publish", ignore_errors=True)


def _update_models(erasure: Erasure, listener: RunListener, notify: Callable[[str], None]) -> None:
    """Run the models downstream; those that still have the rows afterwards do not follow deletes and are rebuilt."""
    names = [place.unique_id for place in erasure.models]
    if not names:
        return
    _run_models(erasure.loaded, names, listener)
    with _lock_warehouse(erasure) as held:
        _compact(held)
    needles = searched_texts(erasure)
    left = [each for each in erasure.models if is_left_in(erasure, each, needles) or names_partition(each, needles)]
    if left:
        notify(f"{', '.join(str(place.table) for place in left)}: built anew, an update alone would keep the rows")
        with _lock_warehouse(erasure) as held:
            require_erasable(held)
            for place in left:
                # The timeline names the partitions of all commits, also after a rebuild in place.
                if names_partition(place, needles) and erasure.may_rebuild(place):
                    _clear_place(erasure, place)
                    fault_point("erasure.set_aside")
        rebuilding = replace(erasure.loaded.invocation, full_refresh=True)
        loaded = load(rebuilding, reporter=erasure.loaded.reporter, spark=erasure.loaded.spark, broken=True)
        _run_models(loaded, [place.unique_id for place in left], listener)
        _run_models(erasure.loaded, names, listener)


def _clear_place(erasure: Erasure, place: TablePlace) -> None:
    """Take a table away, so that the next run makes it anew."""
    if is_store(place.uri):
        drop_to_rebuild(erasure.loaded.target.warehouse, str(place.table), place.uri)
    else:
        set_aside(place.uri)


def _run_models(loaded: Loaded, names: Collection[NodeId], listener: RunListener) -> None:
    if not run_nodes(loaded, RunRequest("run", only=names, advances=True), listener).ok:
        raise NodeError("a model downstream failed, so old versions were kept", hint="when it is right, run this again")
