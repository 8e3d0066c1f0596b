"""A table on an object store before its first commit. Owns its properties, and what a crash leaves of them.

A store cannot move a folder, so the table is not made beside its place as on a disk. As Hudi does, its properties come
first: a table without a commit has no rows, and whoever builds it next goes on from there.
"""

from __future__ import annotations

from sqlmesh_like.errors import RetryableError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.recovery.store_drop import finish_drop
from sqlmesh_like.hudi.stores.commit_guard import require_locks
from sqlmesh_like.hudi.stores.conditional_file import ConditionalFile
from sqlmesh_like.hudi.stores.server_copies import file_sizes
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.arrow_schema import UnsupportedRowsError
from sqlmesh_like.hudi.writer.commit_encoding import PARTITION_FILE
from sqlmesh_like.hudi.writer.store_commit import finish_commits


def begin_table(uri: str, properties: bytes) -> Timeline:
    """Give a table its properties, and return its timeline, which has no commit.

    Other properties are replaced: they are of a table that was begun, and never got a row. Raises RetryableError where
    another writer was there first, UnsupportedRowsError where it has left something.
    """
    finish_drop(uri)
    timeline = finish_commits(uri)
    if timeline.frontier is not None:
        raise RetryableError(f"another writer has made {uri}")
    if timeline.unfinished or timeline.history_names:
        raise UnsupportedRowsError("a table that another writer has begun")
    if left := _remaining_files(uri):
        # Readers of Hudi take a file that is older than the first commit for one of an archived commit.
        raise UnsupportedRowsError(f"a folder that has files, e.g. {left[0]}")
    require_locks(uri)
    file = ConditionalFile(f"{uri}/.hoodie/hoodie.properties")
    seen = file.read()
    if (seen is None or seen.content != properties) and file.replace(properties, seen) is None:
        raise RetryableError(f"another writer has made {uri}")
    fault_point("create.properties")
    return timeline


def _remaining_files(uri: str) -> list[str]:
    """Files in the table's folder, but for those that only say that there is a partition."""
    return [
        path
        for path in file_sizes(uri)
        if not path.startswith(".hoodie/") and path.rpartition("/")[2] != PARTITION_FILE
    ]
