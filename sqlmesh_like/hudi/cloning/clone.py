"""A table cloned by hard links. Owns which files a clone has; leaves the lock of the table to the caller.

Data files are never changed once they are written, so that two tables may share them: a cleaner of one removes its own
names alone. What is changed in place, properties and the timeline, is copied. Source: Hudi's technical specification,
"File layout".
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path

from sqlmesh_like.errors import MachineError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.change_log import FOLDER
from sqlmesh_like.hudi.recovery.commit_files import files_by_writer
from sqlmesh_like.hudi.storage import local_path
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.commit_encoding import PARTITION_FILE
from sqlmesh_like.names import is_store, is_tried_store

_INSTANT = re.compile(r"\d{14,17}")
_LEFT_OUT = frozenset((".temp", ".sml_writer", ".heartbeat", ".locks", "metadata", "timeline", Path(FOLDER).name))
"""Folders of `.hoodie` that are of writers at work, or are cloned in a way of their own."""


def clone_refusal(timeline: Timeline) -> str | None:
    """Why a table cannot be cloned; None where it can."""
    if not (timeline.folder.is_local or is_tried_store(timeline.uri)):
        return "it is neither on a disk of this machine nor on S3 or HDFS"
    if not timeline.is_cow:
        return "it is merge-on-read"
    if timeline.has_metadata_table:
        return "it has a metadata table of Hudi's"
    return None


def clone_table(uri: str, frontier: str, clone_uri: str, read: Collection[str] = ()) -> None:
    """Make a table with the rows and the history of another as of a frontier, which can be read.

    `read`: earlier frontiers from which readers will follow it. On a disk it is made beside its place, and moved as a
    whole. Raises MachineError where files cannot be linked; on a store as `clone_on_store`.
    """
    if is_store(uri):
        from sqlmesh_like.hudi.cloning.store_clone import clone_on_store  # needs obstore

        clone_on_store(uri, frontier, clone_uri, read)
        return
    timeline = Timeline(uri)
    root, target = Path(timeline.folder.path), local_path(clone_uri)
    beside = target.with_name(f"{target.name}__sml_cloning")
    limit = None if timeline.frontier == frontier else frontier.partition("_")[0]
    try:
        shutil.rmtree(beside, ignore_errors=True)
        _copy_properties(root, beside)
        link_files(root, beside, _data_files(timeline, limit))
        if (logs := root / FOLDER).is_dir():
            shutil.copytree(logs, beside / FOLDER, copy_function=os.link)
        _copy_timeline(timeline, limit, root, beside)
        fault_point("clone.built")
        beside.rename(target)
        fault_point("clone.end")
    except OSError as error:
        hint = "environments need hard links between the folders of the warehouse"
        raise MachineError(f"{uri} cannot be cloned: {error.strerror}", hint=hint) from error


def link_files(root: Path, target: Path, paths: Iterable[str]) -> None:
    """Link data files, and the files by which readers know their partitions; those that are there stay as they are."""
    partitions: set[str] = set()
    for path in paths:
        partition = path.rpartition("/")[0]
        if partition not in partitions:
            partitions.add(partition)
            (target / partition).mkdir(parents=True, exist_ok=True)
            link_once(root / partition / PARTITION_FILE, target / partition / PARTITION_FILE)
        link_once(root / path, target / path)


def link_once(source: Path, target: Path) -> None:
    """Link a file where there is none yet; nothing where there is no source."""
    if not target.exists() and source.exists():
        os.link(source, target)


def _copy_properties(root: Path, beside: Path) -> None:
    (beside / ".hoodie").mkdir(parents=True)
    for path in (root / ".hoodie").iterdir():
        if path.is_dir() and path.name not in _LEFT_OUT:
            shutil.copytree(path, beside / ".hoodie" / path.name)
        elif path.is_file() and not path.name.endswith(".crc"):
            shutil.copy2(path, beside / ".hoodie" / path.name)


def _data_files(timeline: Timeline, limit: str | None) -> Iterable[str]:
    """Data files of completed commits up to an instant, and those from before the active timeline."""
    done = {instant.requested for instant in timeline.completed if limit is None or instant.requested <= limit}
    first = min([*done, *timeline.unfinished], default="")
    for instant, paths in files_by_writer(timeline).items():
        if instant in done or instant < first:
            yield from paths


def _copy_timeline(timeline: Timeline, limit: str | None, root: Path, beside: Path) -> None:
    """Copy completed instants up to one, without savepoints, which are promises about the other table."""
    source, target = root / ".hoodie" / "timeline", beside / ".hoodie" / "timeline"
    if (source / "history").is_dir():
        shutil.copytree(source / "history", target / "history")
    (target / "history").mkdir(parents=True, exist_ok=True)
    unfinished = frozenset(timeline.unfinished)
    for name in sorted(timeline.names):
        match = _INSTANT.match(name)
        if match is None or ".savepoint" in name or match[0] in unfinished or (limit and match[0] > limit):
            continue
        shutil.copy2(source / name, target / name)
