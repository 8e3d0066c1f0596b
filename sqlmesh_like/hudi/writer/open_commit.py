"""One commit on a table's timeline, from request to completion. Owns the protocol by which Hudi can undo a partial one.

As Hudi's writers do: `<instant>.commit.requested`, then `<instant>.inflight`, then a marker for each file before it is
written, then the files, then `<instant>_<completed>.commit` in one step (`.replacecommit` where file groups end). A
process that dies in between leaves a commit in flight, which readers ignore; the next writer removes it with the files
that its markers name, be it this one or Hudi. Source: Hudi's technical specification, "Timeline" and "Markers".
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from sqlmesh_like.errors import RetryableError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.timeline import TIMELINE, Timeline
from sqlmesh_like.hudi.writer.commit_encoding import (
    NOTHING_YET,
    PARTITION_FILE,
    Action,
    CommitContent,
    encode_commit,
    encode_request,
    inflight_name,
    partition_text,
)
from sqlmesh_like.hudi.writer.instant import INSTANT, foreign_names, next_instant
from sqlmesh_like.hudi.writer.whole_files import unlink, write_whole
from sqlmesh_like.names import is_store

_OWN_FOLDER = ".sml_writer"
"""Has a folder for each commit of this writer in flight, which the holder of the table's lock may remove. It is not
among the markers, where Hudi would fail on it."""
_UNDONE = ".sml_undone"
"""Has the newest instant that was taken off the table: while the clock is set back, a commit could get it again, and
who had read the former would take the two for one."""


@dataclass(frozen=True)
class OpenCommit:
    """A commit in flight. `instant`: its requested time. `others`: names on the timeline before it."""

    root: Path
    instant: str
    others: frozenset[str] = frozenset()
    action: Action = "commit"

    @property
    def timeline(self) -> Path:
        return self.root / ".hoodie" / "timeline"

    @property
    def markers(self) -> Path:
        return self.root / ".hoodie" / ".temp" / self.instant

    @property
    def own_folder(self) -> Path:
        """Exists while the commit is in flight. Files are created in it and then moved to their final paths."""
        return self.root / ".hoodie" / _OWN_FOLDER / self.instant

    def mark(self, path: str, *, is_new: bool) -> None:
        """Create the marker of a data file (path relative to the table) before it is written."""
        marker = self.markers / f"{path}.marker.{'CREATE' if is_new else 'MERGE'}"
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
        fault_point("hudi.commit.marker")

    def add_partition(self, partition: str, *, is_new: bool = True) -> None:  # noqa: ARG002 (see `StoreCommit`)
        """Create a partition's folder with the metadata file by which Hudi's readers recognize it."""
        place = self.root / partition
        place.mkdir(parents=True, exist_ok=True)
        if not (place / PARTITION_FILE).exists():
            write_whole(place / PARTITION_FILE, partition_text(self.instant, partition), self.own_folder / f"{uuid4()}")
            fault_point("hudi.commit.partition")

    def complete(self, content: CommitContent) -> str:
        """Complete the commit. Returns its frontier. Raises RetryableError where another writer interfered."""
        aside = self.own_folder / "commit"
        aside.write_bytes(encode_commit(content))
        fault_point("hudi.commit.staged")
        names = _names(self.root)
        if inflight_name(self.instant, self.action) not in names:
            raise RetryableError(f"another writer has removed the commit {self.instant} of {self.root}")
        if new := foreign_names(names, self.instant, self.others):
            raise RetryableError(f"another writer has begun {min(new)} in {self.root}")
        completed = next_instant(names)
        target = self.timeline / f"{self.instant}_{completed}.{self.action}"
        aside.rename(target)
        fault_point("hudi.commit.complete")
        self.forget()
        return f"{self.instant}_{completed}"

    def forget(self) -> None:
        """Remove the markers and the own folder of a commit that is finished."""
        shutil.rmtree(self.markers, ignore_errors=True)
        fault_point("hudi.commit.unmarked")
        shutil.rmtree(self.own_folder, ignore_errors=True)

    def abandon(self, paths: Iterable[str] = ()) -> None:
        """Remove the commit and the files that it wrote: those that its markers name, and `paths`.

        `paths` matter where another writer considered the commit dead and removed the markers before a file was
        written. A commit that was interrupted after its completion is kept.
        """
        if any(name.startswith(f"{self.instant}_") for name in _names(self.root)):
            self.forget()
            return
        fault_point("hudi.removal.begin")
        for path in paths:
            unlink(self.root / path)
        for marker in self.markers.rglob("*.marker.*"):
            written = str(marker.relative_to(self.markers)).rpartition(".marker.")[0]
            if marker.is_file():  # a partition's name may match the pattern
                unlink(self.root / written)
        # The request is removed last: while it exists, another writer knows that there is something to remove.
        fault_point("hudi.removal.files")
        self._unlink("*inflight")
        fault_point("hudi.removal.inflight")
        shutil.rmtree(self.markers, ignore_errors=True)
        self._unlink("*requested")
        fault_point("hudi.removal.request")
        shutil.rmtree(self.own_folder, ignore_errors=True)

    def _unlink(self, pattern: str) -> None:
        """Remove files of the instant from the timeline."""
        for path in self.timeline.glob(f"{self.instant}.{pattern}"):
            unlink(path)


def open_commit(root: Path, expected: str | None, action: Action = "commit") -> OpenCommit:
    """Begin a commit on a table that must be at the frontier `expected`.

    Remains of this writer's interrupted commits are removed first. Raises RetryableError where the table is elsewhere.
    """
    remove_abandoned(root)
    timeline = Timeline(str(root))
    if timeline.unfinished or timeline.frontier != expected:
        raise RetryableError(f"{root} is at {timeline.frontier}, not at {expected}: another writer was there")
    commit = OpenCommit(root, next_instant((*timeline.names, _newest_undone(root))), timeline.names, action)
    commit.own_folder.mkdir(parents=True)
    fault_point("hudi.commit.begin")
    try:
        with (commit.timeline / f"{commit.instant}.{action}.requested").open("xb") as request:
            request.write(encode_request(action))
        fault_point("hudi.commit.requested")
        inflight = commit.timeline / inflight_name(commit.instant, action)
        write_whole(inflight, encode_commit(NOTHING_YET), commit.own_folder / "inflight")
        fault_point("hudi.commit.inflight")
    except BaseException:
        commit.abandon()
        raise
    return commit


def settled_timeline(uri: str) -> Timeline:
    """A table's timeline, after removing the remains of this writer's interrupted commits.

    The caller holds the lock of the table's lake.
    """
    place = folder(uri)
    if is_store(uri):
        from sqlmesh_like.hudi.writer.store_commit import finish_commits  # needs obstore

        return finish_commits(uri.rstrip("/"))
    if place.is_local:
        remove_abandoned(Path(place.path))
    return Timeline(uri)


def finish_interrupted(uri: str) -> None:
    """The same before a commit by Hudi's writer, where its own rollback would not do: on a store."""
    if is_store(uri):
        settled_timeline(uri)


def remove_abandoned(root: Path) -> None:
    """Remove the remains of this writer's interrupted commits. The caller holds the lock of the table's lake."""
    place = root / ".hoodie" / _OWN_FOLDER
    if not place.is_dir():
        return
    commits = [OpenCommit(root, own_folder.name) for own_folder in place.iterdir()]
    known = {name[:17] for name in _names(root) if INSTANT.match(name)} if commits else set()
    for commit in commits:
        # A commit older than the timeline may have completed and been archived since.
        if commit.instant >= min(known, default=""):
            commit.abandon()
        else:
            commit.forget()


def note_undone(root: Path, instant: str) -> None:
    """Note, before it is done, that an instant is taken off a table. The caller holds the lock of the table's lake."""
    path = root / ".hoodie" / _UNDONE
    write_whole(path, max(instant, _newest_undone(root)).encode(), path.with_name(f"{_UNDONE}.new"))


def _newest_undone(root: Path) -> str:
    try:
        return (root / ".hoodie" / _UNDONE).read_text()
    except FileNotFoundError:
        return ""


def _names(root: Path) -> list[str]:
    return folder(str(root)).names(TIMELINE)
