"""A clone on an object store made its table again, by commits of that table.

The same order as on a disk (`fast_forward`): the files of all newer commits, which the store copies and no reader sees,
then for each commit request, inflight and completion, created once, with the clone's names and content. Whoever is
called again goes on from there, and removes nothing: of two calls, one of which stood still, neither undoes what the
other has done. A table of another layout takes its place (`recovery.store_move`). The caller holds the locks of both.
"""

from __future__ import annotations

from contextlib import suppress

from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.change_log import NotLoggedError, log_of
from sqlmesh_like.hudi.cloning.newer_commits import CannotPromoteError, newer_commits
from sqlmesh_like.hudi.commits import Commit, Instant
from sqlmesh_like.hudi.reading.recent_timelines import forget_timelines
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.commit_guard import require_locks
from sqlmesh_like.hudi.stores.conditional_file import ConditionalFile
from sqlmesh_like.hudi.stores.server_copies import copy_files, require_copies, require_copyable
from sqlmesh_like.hudi.timeline import TIMELINE, Timeline
from sqlmesh_like.hudi.writer.commit_encoding import PARTITION_FILE
from sqlmesh_like.hudi.writer.instant import foreign_names
from sqlmesh_like.hudi.writer.store_commit import create_completed, finish_commits
from sqlmesh_like.secrets import scrub_text


def fast_forward_on_store(uri: str, clone: Timeline) -> None:
    """Give a table the newer commits of its clone; what an interrupted call has done stays.

    Raises CannotPromoteError where another writer was there, RetryableError where the locks no longer hold.
    """
    table, clone_uri = finish_commits(uri), clone.uri
    newer = newer_commits(table, clone)
    if newer is None or not {*table.unfinished} <= {instant.requested for instant in newer}:
        raise CannotPromoteError(f"{scrub_text(uri)} is no longer as it was cloned: another writer was there")
    if not newer:
        return
    listed, commits = folder(clone_uri).sizes(), {commit.instant: commit for commit in clone.commits}
    sizes: dict[str, int] = {}
    for instant in newer:
        sizes |= _files(clone_uri, commits[instant], listed)
    _copy_data(uri, clone_uri, sizes, listed)
    fault_point("promotion.linked")
    known = {*table.names}
    for instant in newer:
        known |= _add_instant(uri, clone, instant, known)
    forget_timelines([uri])


def _files(clone_uri: str, commit: Commit, listed: dict[str, int]) -> dict[str, int]:
    """Base files and the change log of a commit, with their bytes. Raises CannotPromoteError where one is gone."""
    paths = [write.path for write in commit.writes]
    if gone := [path for path in paths if path not in listed]:
        raise CannotPromoteError(f"{scrub_text(clone_uri)}/{gone[0]} is gone")
    with suppress(NotLoggedError):
        paths += [file.path for file in log_of(commit).files if file.path in listed]
    return {path: listed[path] for path in paths}


def _copy_data(uri: str, clone_uri: str, sizes: dict[str, int], listed: dict[str, int]) -> None:
    """Copy files of commits, and those by which readers know their partitions where there are none yet."""
    require_copyable(clone_uri, sizes)
    there = folder(uri).sizes()
    partitions = {path.rpartition("/")[0] for path in sizes if not path.startswith(".hoodie/")}
    metadata = [f"{each}/{PARTITION_FILE}" if each else PARTITION_FILE for each in partitions]
    wanted = {**sizes, **{path: listed[path] for path in metadata if path in listed and path not in there}}
    if lacking := {path: size for path, size in wanted.items() if there.get(path) != size}:
        require_locks(uri)
        copy_files(clone_uri, uri, sorted(lacking))
        require_copies(uri, lacking)


def _add_instant(uri: str, clone: Timeline, instant: Instant, known: set[str]) -> set[str]:
    """Put a commit of the clone on the timeline of its table; return the names of its files.

    `known`: the names that were there before.
    """
    require_locks(uri)
    names = sorted(name for name in clone.names if name.startswith(f"{instant.requested}."))
    for name in sorted(names, key=lambda name: not name.endswith(".requested")):
        ConditionalFile(f"{uri}/{TIMELINE}/{name}").put(clone.folder.read(f"{TIMELINE}/{name}"), None)
    fault_point("promotion.requested")
    completed = f"{instant.requested}_{instant.completed}.{instant.action}"
    if foreign := foreign_names(Timeline(uri).names, instant.requested, known):
        raise CannotPromoteError(f"another writer has begun {min(foreign)} in {scrub_text(uri)}")
    create_completed(uri, completed, clone.folder.read(f"{TIMELINE}/{completed}"))
    fault_point("promotion.committed")
    return {*names, completed}
