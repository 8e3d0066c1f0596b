"""A table put in the place of another one on an object store, which moves nothing: the store copies its files.

Data files are copied first, as those of a commit in flight on the table that is there, which no reader sees and whoever
comes after a crash removes. Then that table is dropped; until the properties of the new one are there, which come last,
there is none: old files would be rows of the new timeline, which begins after them. The caller holds the locks of both.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlmesh_like.errors import RetryableError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.missing_files import data_file
from sqlmesh_like.hudi.reading.recent_timelines import forget_timelines
from sqlmesh_like.hudi.recovery.store_drop import MARK, PROPERTIES, drop_on_store, finish_drop
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.commit_guard import require_locks
from sqlmesh_like.hudi.stores.conditional_file import ConditionalFile
from sqlmesh_like.hudi.stores.server_copies import copy_files, file_sizes, require_copies, require_copyable
from sqlmesh_like.hudi.stores.store_client import delete_files, put_content
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.store_commit import finish_commits, open_store_commit
from sqlmesh_like.plan.side_by_side import side_by_side
from sqlmesh_like.secrets import scrub_text

AT_WORK = tuple(f".hoodie/{name}/" for name in (".temp", ".sml_writer", ".heartbeat", ".locks"))
"""Folders of writers at work, which no copy of a table has."""


class OccupiedError(RetryableError):
    """A folder is no table and has files."""


def take_place_on_store(uri: str, source: str | None) -> None:
    """Put a copy of a table in the place of the one at `uri`, if there is one. None: that is done, but for the mark.

    Raises OccupiedError where files of anybody are there, RetryableError where the locks no longer hold.
    """
    finish_drop(uri)
    if source is None:
        return
    listed = file_sizes(source)
    sizes = {path: size for path, size in listed.items() if not path.startswith(AT_WORK) and path != MARK}
    require_copyable(source, sizes)
    ahead: frozenset[str] = frozenset()
    if Timeline(uri).exists:
        ahead = _copy_ahead(source, uri, sizes)
        drop_on_store(uri, ahead)
    if left := [path for path in file_sizes(uri) if not path.startswith(".hoodie/") and path not in ahead]:
        raise OccupiedError(f"{scrub_text(uri)} is not a table, and has files, e.g. {left[0]}")
    require_locks(uri)
    put_content(f"{uri}/{MARK}", b"")  # until there are properties, all of it is to be removed
    copied = {path: size for path, size in sizes.items() if path not in PROPERTIES}
    copy_files(source, uri, sorted(copied.keys() - ahead))
    require_copies(uri, copied)
    fault_point("promotion.copied")
    require_locks(uri)
    properties = PROPERTIES[-1]
    if ConditionalFile(f"{uri}/{properties}").replace(folder(source).read(properties), None) is None:
        raise RetryableError(f"another writer has made {scrub_text(uri)}")
    fault_point("promotion.moved")
    delete_files(uri, [MARK])
    forget_timelines([uri])


def _copy_ahead(source: str, uri: str, sizes: Mapping[str, int]) -> frozenset[str]:
    """Copy the data files that readers of the table at `uri` do not see there; return which these are.

    To Hudi, files of earlier instants than those on the timeline are of archived commits. Raises RetryableError where
    a copy is not whole, having removed all.
    """
    timeline = finish_commits(uri)
    if timeline.unfinished or not timeline.commit_instants:
        return frozenset()
    begin = max(timeline.commit_instants[0].requested, timeline.archived_until)
    taken, there = {name[:17] for name in timeline.names}, frozenset(folder(uri).files())
    files = {path: file for path in sizes.keys() - there if (file := data_file(path)) is not None and file.is_base}
    ahead = sorted(path for path, file in files.items() if file.instant > begin and file.instant not in taken)
    if not ahead:
        return frozenset()
    commit = open_store_commit(timeline, timeline.frontier)
    try:
        side_by_side(lambda path: commit.mark(path, is_new=True), ahead)
        copy_files(source, uri, ahead)
        require_copies(uri, {path: sizes[path] for path in ahead})
    except BaseException:
        commit.abandon(ahead)
        raise
    fault_point("promotion.ahead")
    return frozenset(ahead)
