"""A table on an object store cloned by copies that the store makes. Owns which files a clone has there.

A store has no links: what readers need is copied, the base files of the current slices and of those that readers in the
environment have consumed, not the older ones; to a reader it is a table whose history was cleaned. The properties come
last, without which there is no table. The caller holds the table's lock and has chosen a folder that nobody else uses.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from sqlmesh_like.errors import RetryableError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.change_log import NotLoggedError, log_of
from sqlmesh_like.hudi.recovery.store_drop import MARK, PROPERTIES
from sqlmesh_like.hudi.recovery.store_move import AT_WORK
from sqlmesh_like.hudi.stores.commit_guard import require_locks
from sqlmesh_like.hudi.stores.server_copies import copy_files, file_sizes, require_copies, require_copyable
from sqlmesh_like.hudi.timeline import TIMELINE, Timeline
from sqlmesh_like.hudi.writer.commit_encoding import PARTITION_FILE
from sqlmesh_like.secrets import scrub_text

_INSTANT = re.compile(r"\d{14,17}")
_NOT_CLONED = (*AT_WORK, ".hoodie/metadata/", ".hoodie/.sml_changes/")
"""Beside writers' folders that of Hudi's metadata table, and that of change logs, which commits name one by one."""


def clone_on_store(uri: str, frontier: str, target: str, read: Collection[str] = ()) -> None:
    """Make the table `target` with the rows and the history of another as of a frontier.

    `read`: earlier frontiers from which readers will follow it. Raises RetryableError where history is removed
    meanwhile, or the locks of the call no longer hold.
    """
    timeline = Timeline(uri)
    limit = None if timeline.frontier == frontier else frontier.partition("_")[0]
    listed = file_sizes(uri)
    paths = {*_data_files(timeline, frontier, limit, read, listed), *_timeline_files(timeline, limit, listed)}
    paths |= {path for path in listed if _is_of_table(path)}
    sizes = {path: listed[path] for path in paths if path in listed}
    if gone := paths - sizes.keys():
        raise RetryableError(f"{scrub_text(uri)}/{min(gone)} is gone, and cannot be copied")
    require_copyable(uri, sizes)
    properties = [path for path in PROPERTIES if path in sizes]
    copy_files(uri, target, sorted(paths.difference(properties)))
    fault_point("clone.built")
    now = Timeline(uri)
    if (now.names, {*now.history_names}) != (timeline.names, {*timeline.history_names}):
        raise RetryableError(
            f"another call has changed {scrub_text(uri)} while it was cloned", hint="run the same again"
        )
    require_locks(target)
    copy_files(uri, target, properties)
    require_copies(target, sizes)
    fault_point("clone.end")


def _data_files(
    timeline: Timeline, frontier: str, limit: str | None, read: Collection[str], listed: Collection[str]
) -> Iterable[str]:
    """Base files and change logs, with the files by which readers know their partitions."""
    newest = limit or max(instant.requested for instant in timeline.commit_instants)
    slices = [*timeline.slices_at(newest).values(), *timeline.slices_at(frontier.partition("_")[0]).values()]
    earlier = [each for each in read if each < frontier and timeline.holds(each)]
    for each in earlier:
        slices += [file for file in timeline.slices(each).values() if file.path in listed]
    for file in slices:
        yield file.path
        place = f"{file.partition}/{PARTITION_FILE}" if file.partition else PARTITION_FILE
        if place in listed:
            yield place
    if earlier:
        for commit in timeline.between(min(earlier), frontier):
            try:
                yield from (file.path for file in log_of(commit).files if file.path in listed)
            except NotLoggedError:
                continue


def _timeline_files(timeline: Timeline, limit: str | None, listed: Collection[str]) -> Iterable[str]:
    """Completed instants up to one, without savepoints, which are promises about the other table; older history."""
    unfinished = frozenset(timeline.unfinished)
    for name in timeline.names:
        match = _INSTANT.match(name)
        if match and ".savepoint" not in name and match[0] not in unfinished and not (limit and match[0] > limit):
            yield f"{TIMELINE}/{name}"
    yield from (path for path in listed if path.startswith(f"{TIMELINE}/history/"))


def _is_of_table(path: str) -> bool:
    """Whether a file says what the table is."""
    is_inside = path.startswith(".hoodie/") and not path.startswith((*_NOT_CLONED, f"{TIMELINE}/"))
    return is_inside and path != MARK and not path.endswith(".crc")
