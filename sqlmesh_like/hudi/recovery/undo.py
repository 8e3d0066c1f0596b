"""Commits removed from a table, the newest first, to restore an earlier state. Owns the order that survives a crash.

A commit to remove is first made to look as if it had been interrupted: its files are marked, then it is in flight
again, so that after a crash the next writer, this one or Hudi's, removes it. Its metadata, which may be broken, is not
read: the name of a data file tells which commit wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlmesh_like.errors import NodeError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.instant import OpenCommit, remove_abandoned

_SERVICES = (".clean", ".rollback", ".restore", ".indexing")
"""Suffixes of actions that are kept: they wrote no row, and the files that they removed are gone."""
_NAME = re.compile(r"(?P<requested>\d{17})(?:_(?P<completed>\d{17}))?\.(?P<rest>.+)")
_DATA_FILE = re.compile(r".+_\d+-\d+-\d+_(?P<instant>\d{17})\.parquet")


@dataclass(frozen=True)
class UndoneInstant:
    """An action to undo: its requested time, and the names of its files on the timeline."""

    requested: str
    names: tuple[str, ...]

    @property
    def completed(self) -> tuple[str, ...]:
        """Names of the files that mark it as completed, a savepoint's first."""
        done = (name for name in self.names if name[17] == "_")
        return tuple(sorted(done, key=lambda name: not name.endswith(".savepoint")))


def instants_after(timeline: Timeline, frontier: str) -> tuple[UndoneInstant, ...]:
    """The actions to undo for a table to return to a frontier, the newest first. Reads no commit."""
    limit, by_instant = frontier.split("_")[0], dict[str, list[str]]()
    for name in timeline.names:
        match = _NAME.fullmatch(name)
        if match and match["requested"] > limit and not _is_service(match["rest"]):
            by_instant.setdefault(match["requested"], []).append(name)
    return tuple(UndoneInstant(at, tuple(sorted(names))) for at, names in sorted(by_instant.items(), reverse=True))


def require_undoable(timeline: Timeline, frontier: str) -> None:
    """Raise NodeError where a table cannot be returned to a frontier."""
    uri = timeline.uri
    if not timeline.folder.is_local or not timeline.is_cow:
        hint = "Hudi's own procedures can: create_savepoint, then rollback_to_savepoint"
        raise NodeError(f"{uri} is merge-on-read or not on this machine: it cannot be brought back here", hint=hint)
    if timeline.properties.get("hoodie.table.metadata.partitions"):
        raise NodeError(f"{uri} has a metadata table of Hudi's, which would go on naming what is taken off it")
    earlier = Timeline(uri, until=frontier.split("_")[0])
    gone = [each.path for each in earlier.slices(frontier).values() if each.path not in timeline.data_files]
    if gone:
        hint = "cleaning keeps what consumers still need and ten commits more; choose a later commit"
        raise NodeError(f"{len(gone)} data files of {uri} as of {frontier} are gone, e.g. {gone[0]}", hint=hint)


def undo(timeline: Timeline, frontier: str) -> Sequence[str]:
    """Return a table to a frontier. Returns the undone instants. The caller holds the lake's locks.

    Raises NodeError, before any change, where that cannot be done.
    """
    require_undoable(timeline, frontier)
    root = Path(timeline.folder.path)
    remove_abandoned(root)
    timeline = Timeline(timeline.uri)
    instants = instants_after(timeline, frontier)
    for instant in instants:
        _take_off(root, instant, timeline.data_files)
    return [instant.requested for instant in instants]


def _take_off(root: Path, instant: UndoneInstant, data_files: frozenset[str]) -> None:
    commit = OpenCommit(root, instant.requested)
    commit.own_folder.mkdir(parents=True, exist_ok=True)
    for path in data_files:
        match = _DATA_FILE.fullmatch(path.rpartition("/")[2])
        if match and match["instant"] == instant.requested:
            commit.mark(path, is_new=True)
    fault_point("rollback.marked")
    for name in instant.completed:
        _unlink(commit.timeline / name)
    fault_point("rollback.in_flight")
    commit.abandon()
    fault_point("rollback.undone")


def _unlink(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def _is_service(rest: str) -> bool:
    return any(f".{rest}".startswith(service) for service in _SERVICES)
