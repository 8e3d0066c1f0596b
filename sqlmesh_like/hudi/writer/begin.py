"""The beginning of a commit, on a disk or on a store. Owns nothing but that choice."""

from __future__ import annotations

from pathlib import Path

from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.commit_encoding import Action
from sqlmesh_like.hudi.writer.open_commit import OpenCommit
from sqlmesh_like.hudi.writer.open_commit import open_commit as open_local_commit
from sqlmesh_like.hudi.writer.store_commit import StoreCommit, open_store_commit

Commit = OpenCommit | StoreCommit


def open_commit(timeline: Timeline, expected: str | None, action: Action = "commit") -> Commit:
    """Begin a commit on a table that must be at the frontier `expected`. Raises RetryableError where it is not."""
    if timeline.folder.is_local:
        return open_local_commit(Path(timeline.folder.path), expected, action)
    return open_store_commit(timeline, expected, action)
