"""Savepoints: commits whose files no cleaner removes, to which a table can return. Owns their files on the timeline.

As Hudi's writers do: an empty `<instant>.savepoint.inflight`, then `<instant>_<completed>.savepoint` with the names of
the commit's file slices; the instant is that of the commit. Hudi's cleaner keeps these files, and its archiver keeps
the commit and all after it. Needs no JVM. Source: Hudi's technical specification, "Timeline", and the Avro schema of
`HoodieSavepointMetadata`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from sqlmesh_like.errors import NodeError, nearest
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.commits import Instant, mapping_member, read_metadata
from sqlmesh_like.hudi.recovery.commit_files import files_of_commit, missing_of_commit
from sqlmesh_like.hudi.recovery.interrupted_restore import require_no_restore
from sqlmesh_like.hudi.services.timeline_files import remove_files, write_file
from sqlmesh_like.hudi.stores.commit_guard import require_locks
from sqlmesh_like.hudi.timeline import TIMELINE, Timeline
from sqlmesh_like.hudi.writer.avro_records import (
    STRING,
    encode_record,
    list_of,
    map_of,
    nullable_field,
    record_schema,
    record_type,
    required_field,
)
from sqlmesh_like.hudi.writer.instant import next_instant
from sqlmesh_like.names import is_tried_store

_PARTITION = record_type(
    "HoodieSavepointPartitionMetadata",
    required_field("partitionPath", STRING),
    required_field("savepointDataFile", list_of(STRING)),
)
_METADATA = record_schema(
    "HoodieSavepointMetadata",
    required_field("savepointedBy", STRING),
    required_field("savepointedAt", "long"),
    required_field("comments", STRING),
    required_field("partitionMetadata", map_of(_PARTITION)),
    nullable_field("version", "int", 1),
)


@dataclass(frozen=True)
class Savepoint:
    """A savepoint of the commit `instant` (its requested time). `files`: data files that it keeps, by partition."""

    instant: str
    created_at: datetime
    user: str
    comment: str
    files: Mapping[str, tuple[str, ...]]


def savepoints(timeline: Timeline) -> tuple[Savepoint, ...]:
    """The savepoints of a table, oldest commit first. Raises UnreadableTableError, which names the file."""
    return tuple(_read_savepoint(timeline, instant) for instant in timeline.completed if instant.action == "savepoint")


def create_savepoint(timeline: Timeline, frontier: str, user: str, comment: str) -> Savepoint:
    """Create a savepoint of the commit at a frontier. The caller holds the lake's locks.

    Raises NodeError, before any change, where the table does not permit it or files as of then are gone.
    """
    instant = frontier.split("_")[0]
    _require_possible(timeline, frontier)
    files: dict[str, tuple[str, ...]] = {}
    for path in sorted(files_of_commit(timeline, instant)):
        partition, _, name = path.rpartition("/")
        files[partition] = (*files.get(partition, ()), name)
    now = datetime.now(UTC)
    savepoint = Savepoint(instant, now, user, comment, files)
    require_locks(timeline.uri)
    fault_point("savepoint.begin")
    write_file(timeline.folder, f"{TIMELINE}/{instant}.savepoint.inflight", b"")
    fault_point("savepoint.inflight")
    completed = next_instant(timeline.folder_names())
    write_file(timeline.folder, f"{TIMELINE}/{instant}_{completed}.savepoint", _encode_savepoint(savepoint))
    fault_point("savepoint.complete")
    return savepoint


def delete_savepoint(timeline: Timeline, instant: str) -> None:
    """Delete the savepoint of a commit, whose files may be cleaned from then on. The caller holds the lake's locks.

    Raises NodeError where the commit has no savepoint.
    """
    if instant not in timeline.savepointed and f"{instant}.savepoint.inflight" not in timeline.names:
        hint = nearest(instant, timeline.savepointed) or "see `sml savepoint list`"
        raise NodeError(f"{timeline.uri} has no savepoint {instant}", hint=hint)
    # As Hudi does: first in flight again, then gone, so that a kill in between leaves no savepoint.
    _unlink_all(timeline, instant, ".savepoint")
    fault_point("savepoint.reverted")
    _unlink_all(timeline, instant, ".savepoint.inflight")
    fault_point("savepoint.deleted")


def _unlink_all(timeline: Timeline, instant: str, suffix: str) -> None:
    names = [name for name in timeline.names if name.startswith(instant) and name.endswith(suffix)]
    remove_files(timeline.folder, [f"{TIMELINE}/{name}" for name in names])


def _require_possible(timeline: Timeline, frontier: str) -> None:
    uri, instant = timeline.uri, frontier.split("_")[0]
    if not (timeline.folder.is_local or is_tried_store(uri)):
        hint = "Spark SQL can: call create_savepoint(path => …, commit_time => …)"
        raise NodeError(f"{uri} is neither on this machine nor on S3 or HDFS: no savepoint is created", hint=hint)
    if instant in timeline.savepointed:
        raise NodeError(f"{uri} has a savepoint of {instant} already", hint="see `sml savepoint list`")
    require_no_restore(uri)
    if gone := missing_of_commit(timeline, instant):
        hint = "cleaning keeps what consumers still need and ten commits more; choose a later commit"
        raise NodeError(f"{len(gone)} data files of {uri} as of {frontier} are gone, e.g. {gone[0]}", hint=hint)


def _encode_savepoint(savepoint: Savepoint) -> bytes:
    record = {
        "savepointedBy": savepoint.user,
        "savepointedAt": int(savepoint.created_at.timestamp() * 1000),
        "comments": savepoint.comment,
        "partitionMetadata": {
            partition: {"partitionPath": partition, "savepointDataFile": list(names)}
            for partition, names in savepoint.files.items()
        },
        "version": 1,
    }
    return encode_record(_METADATA, record)


def _read_savepoint(timeline: Timeline, instant: Instant) -> Savepoint:
    name = f".hoodie/timeline/{instant.frontier}.savepoint"
    return read_metadata(timeline.folder.read(name), f"{timeline.uri}/{name}", partial(_savepoint, instant.requested))


def _savepoint(instant: str, record: object) -> Savepoint:
    if not isinstance(record, dict):
        raise TypeError("no record")
    partitions = mapping_member(record.get("partitionMetadata"))
    return Savepoint(
        instant,
        datetime.fromtimestamp(int(record["savepointedAt"]) / 1000, UTC),
        str(record["savepointedBy"]),
        str(record["comments"]),
        {partition: tuple(map(str, each["savepointDataFile"])) for partition, each in partitions.items()},
    )
