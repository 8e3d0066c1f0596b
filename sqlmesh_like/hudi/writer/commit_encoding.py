"""The files of a commit on the timeline. Owns their names and Avro records, as far as readers need them.

Source: Hudi's technical specification, "Timeline"; names and types are those of commits of table version 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sqlmesh_like.hudi.writer.avro_records import (
    STRING,
    encode_record,
    list_of,
    map_of,
    nullable_field,
    record_schema,
    record_type,
)

if TYPE_CHECKING:
    from sqlmesh_like.hudi.writer.file_merge import MergedFile  # which imports pyarrow

Action = Literal["commit", "replacecommit"]
"""What a commit is on the timeline: a `replacecommit` also ends file groups that readers had."""
PARTITION_FILE = ".hoodie_partition_metadata"
_TEXTS = ("fileId", "path", "prevCommit", "partitionPath")
_COUNTS = (
    "numWrites", "numDeletes", "numUpdateWrites", "numInserts", "totalWriteBytes", "totalWriteErrors",
    "fileSizeInBytes", "totalLogRecords", "totalLogBlocks", "totalCorruptLogBlock", "totalRollbackBlocks",
    "totalUpdatedRecordsCompacted", "totalLogFilesCompacted", "totalLogReadTimeMs", "totalLogSizeCompacted",
    "numUpdates",
)  # fmt: skip
_WRITE_STAT = record_type(
    "HoodieWriteStat",
    *(nullable_field(name, STRING) for name in _TEXTS),
    *(nullable_field(name, "long") for name in _COUNTS),
)
_EXTRA = nullable_field("extraMetadata", map_of(STRING))
_FIELDS = (
    nullable_field("partitionToWriteStats", map_of(list_of(_WRITE_STAT))),
    nullable_field("compacted", "boolean"),
    _EXTRA,
    nullable_field("version", "int", 1),
    nullable_field("operationType", STRING),
)
_COMMIT = record_schema("HoodieCommitMetadata", *_FIELDS)
_REPLACE_COMMIT = record_schema(
    "HoodieReplaceCommitMetadata", *_FIELDS, nullable_field("partitionToReplaceFileIds", map_of(list_of(STRING)))
)
_REPLACE_REQUEST = record_schema("HoodieRequestedReplaceMetadata", nullable_field("operationType", STRING), _EXTRA)


@dataclass(frozen=True)
class CommitContent:
    """The content of a commit: its operation, the files that it wrote, and metadata by full key.

    `replaced`: ids of the file groups that end with it, by partition; None for a plain commit.
    """

    operation: str
    files: tuple[MergedFile, ...]
    extra: Mapping[str, str]
    replaced: Mapping[str, Sequence[str]] | None = None


def inflight_name(instant: str, action: Action) -> str:
    """The file of a commit in flight.

    >>> inflight_name("20240501000000000", "commit"), inflight_name("20240501000000000", "replacecommit")
    ('20240501000000000.inflight', '20240501000000000.replacecommit.inflight')
    """
    return f"{instant}.inflight" if action == "commit" else f"{instant}.{action}.inflight"


def encode_request(action: Action) -> bytes:
    """The bytes of the file that requests a commit."""
    return b"" if action == "commit" else encode_record(_REPLACE_REQUEST, {})


def encode_commit(content: CommitContent) -> bytes:
    """The bytes of the commit's file."""
    by_partition: dict[str, list[Mapping[str, object]]] = {}
    for file in content.files:
        by_partition.setdefault(file.partition, []).append(_write_stat(file))
    record = {
        "partitionToWriteStats": by_partition,
        "compacted": False,
        "extraMetadata": dict(content.extra),
        "version": 1,
        "operationType": content.operation,
    }
    if content.replaced is None:
        return encode_record(_COMMIT, record)
    replaced = {partition: list(ids) for partition, ids in content.replaced.items()}
    return encode_record(_REPLACE_COMMIT, {**record, "partitionToReplaceFileIds": replaced})


def _write_stat(file: MergedFile) -> Mapping[str, object]:
    zeros = dict.fromkeys(_COUNTS, 0)
    return {
        **zeros,
        "fileId": file.file_id,
        "path": file.path,
        "prevCommit": file.previous or "null",
        "partitionPath": file.partition,
        "numWrites": file.rows,
        "numInserts": file.inserts,
        "numUpdateWrites": file.updates,
        "numDeletes": file.deletes,
        "totalWriteBytes": file.bytes,
        "fileSizeInBytes": file.bytes,
    }


NOTHING_YET = CommitContent("UPSERT", (), {})


def partition_text(instant: str, partition: str) -> bytes:
    """The content of a partition's metadata file."""
    depth = len(Path(partition).parts)
    return f"#partition metadata\ncommitTime={instant}\npartitionDepth={depth}\n".encode()
