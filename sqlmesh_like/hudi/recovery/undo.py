"""Commits removed from a table, the newest first, to restore an earlier state. Owns the order that survives a crash.

A commit to remove is first made to look as if it had been interrupted: its files are marked, then it is in flight
again, so that after a crash the next writer, this one or Hudi's, removes it. Its metadata, which may be broken, is not
read: the name of a data file, base or log, tells which commit wrote it.

Of a merge-on-read table the log files of later commits are deleted, as Hudi's restore does (table version 8 on). A
compaction after the frontier is taken off too, and the base and log files that it had merged count again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlmesh_like.errors import NodeError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.reading.recent_timelines import forget_timelines
from sqlmesh_like.hudi.recovery.clean_limits import lower_clean_limits
from sqlmesh_like.hudi.recovery.commit_files import files_by_writer, missing_of_commit
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.open_commit import OpenCommit, note_undone, settled_timeline
from sqlmesh_like.hudi.writer.whole_files import unlink
from sqlmesh_like.names import is_store

_SERVICES = (".clean", ".rollback", ".restore", ".indexing")
"""Suffixes of actions that are kept where they completed: they wrote no row, and the files that they removed are gone.

The plan of one that did not complete is taken off: it is about commits that are, and Hudi would still execute it.
"""
_NAME = re.compile(r"(?P<requested>\d{17})(?:_(?P<completed>\d{17}))?\.(?P<rest>.+)")


@dataclass(frozen=True)
class UndoneInstant:
    """An action to undo: its requested time, and the names of its files on the timeline."""

    requested: str
    names: tuple[str, ...]

    @property
    def completed(self) -> tuple[str, ...]:
        """Names of the files that mark it as completed."""
        return tuple(name for name in self.names if name[17] == "_")

    @property
    def action(self) -> str:
        """E.g. `commit`, which names of files leave out in some states."""
        return next((part for name in self.names for part in name.split(".")[1:-1]), "commit")

    @property
    def is_service(self) -> bool:
        """Whether it is a service that did not complete: no commit."""
        return all(_is_service(name[17:]) for name in self.names)


def instants_after(timeline: Timeline, frontier: str) -> tuple[UndoneInstant, ...]:
    """The actions to undo for a table to return to a frontier, the newest first. Reads no commit."""
    limit, by_instant = frontier.split("_")[0], dict[str, list[str]]()
    kept = {instant.requested for instant in timeline.completed if _is_service(f".{instant.action}")}
    for name in timeline.names:
        match = _NAME.fullmatch(name)
        if match and match["requested"] > limit and match["requested"] not in kept:
            by_instant.setdefault(match["requested"], []).append(name)
    return tuple(UndoneInstant(at, tuple(sorted(names))) for at, names in sorted(by_instant.items(), reverse=True))


def require_undoable(timeline: Timeline, frontier: str) -> None:
    """Raise NodeError where a table cannot be returned to a frontier.

    As in Hudi, a savepointed commit is never taken off: its savepoint has to be deleted first.
    """
    uri = timeline.uri
    if later := [instant for instant in timeline.savepointed if instant > frontier.split("_")[0]]:
        hint = f"delete it first if it is not needed: `sml savepoint delete TABLE {later[-1]}`"
        raise NodeError(f"{uri} has the savepoint {later[-1]}, which is after {frontier}", hint=hint)
    if not (timeline.folder.is_local or (is_store(uri) and timeline.is_cow)):
        hint = "Hudi's own procedures can: create_savepoint, then rollback_to_savepoint"
        raise NodeError(f"{uri} is merge-on-read on a store, or out of reach: it cannot be brought back", hint=hint)
    has_commits = any(not instant.is_service for instant in instants_after(timeline, frontier))
    if has_commits and timeline.has_metadata_table:
        raise NodeError(f"{uri} has a metadata table of Hudi's, which would go on naming what is taken off it")
    if gone := missing_of_commit(timeline, frontier.split("_")[0]):
        hint = "cleaning keeps what consumers still need and ten commits more; choose a later commit"
        raise NodeError(f"{len(gone)} data files of {uri} as of {frontier} are gone, e.g. {gone[0]}", hint=hint)


def undo(timeline: Timeline, frontier: str) -> Sequence[str]:
    """Return a table to a frontier. Returns the undone instants. The caller holds the lake's locks.

    Raises NodeError, before any change, where that cannot be done.
    """
    require_undoable(timeline, frontier)
    timeline = settled_timeline(timeline.uri)
    instants = instants_after(timeline, frontier)
    files = files_by_writer(timeline)
    if is_store(timeline.uri):
        _take_off_store(timeline.uri, instants, files)
    else:
        _take_off_disk(Path(timeline.folder.path), instants, files)
    # The last step: until it is done, readers refuse the table rather than lack a file.
    lower_clean_limits(Timeline(timeline.uri), frontier.split("_")[0])
    return [instant.requested for instant in instants]


def _take_off_store(uri: str, instants: Sequence[UndoneInstant], files: Mapping[str, Sequence[str]]) -> None:
    from sqlmesh_like.hudi.writer.store_removal import note_undone_on_store, take_off  # needs obstore

    if instants:
        note_undone_on_store(uri, instants[0].requested)
    for instant in instants:
        take_off(uri, instant.requested, instant.completed, files.get(instant.requested, ()))
    forget_timelines([uri])


def _take_off_disk(root: Path, instants: Sequence[UndoneInstant], files: Mapping[str, Sequence[str]]) -> None:
    if instants:
        note_undone(root, instants[0].requested)
    for instant in instants:
        _take_off(OpenCommit(root, instant.requested), instant, files.get(instant.requested, ()))


def _take_off(commit: OpenCommit, instant: UndoneInstant, files: Sequence[str]) -> None:
    commit.own_folder.mkdir(parents=True, exist_ok=True)
    for path in files:
        commit.mark(path, is_new=True)
    fault_point("rollback.marked")
    for name in instant.completed:
        unlink(commit.timeline / name)
    fault_point("rollback.in_flight")
    commit.abandon()
    fault_point("rollback.undone")


def _is_service(suffix: str) -> bool:
    return suffix.startswith(_SERVICES)
