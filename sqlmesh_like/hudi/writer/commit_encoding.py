"""The file of a completed commit. Owns its Avro record, as far as Hudi's readers and ours need it.

Source: Hudi's technical specification, "Timeline"; names and types are those of commits of table version 9.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import fastavro

from sqlmesh_like.hudi.writer.file_merge import MergedFile

_STRING: dict[str, str] = {"type": "string", "avro.java.string": "String"}


def _field(name: str, type_: object, default: object = None) -> dict[str, object]:
    types = ["null", type_] if default is None else [type_, "null"]
    return {"name": name, "type": types, "default": default}


_TEXTS = ("fileId", "path", "prevCommit", "partitionPath")
_COUNTS = (
    "numWrites", "numDeletes", "numUpdateWrites", "numInserts", "totalWriteBytes", "totalWriteErrors",
    "fileSizeInBytes", "totalLogRecords", "totalLogBlocks", "totalCorruptLogBlock", "totalRollbackBlocks",
    "totalUpdatedRecordsCompacted", "totalLogFilesCompacted", "totalLogReadTimeMs", "totalLogSizeCompacted",
    "numUpdates",
)  # fmt: skip
_WRITE_STAT: dict[str, object] = {
    "type": "record",
    "name": "org.apache.hudi.avro.model.HoodieWriteStat",
    "fields": [*(_field(name, _STRING) for name in _TEXTS), *(_field(name, "long") for name in _COUNTS)],
}
_METADATA: dict[str, Any] = {
    "type": "record",
    "name": "org.apache.hudi.avro.model.HoodieCommitMetadata",
    "fields": [
        _field(
            "partitionToWriteStats",
            {"type": "map", "values": {"type": "array", "items": _WRITE_STAT}, "avro.java.string": "String"},
        ),
        _field("compacted", "boolean"),
        _field("extraMetadata", {"type": "map", "values": _STRING, "avro.java.string": "String"}),
        _field("version", "int", 1),
        _field("operationType", _STRING),
    ],
}
_PARSED = fastavro.parse_schema(_METADATA)


@dataclass(frozen=True)
class CommitContent:
    """The content of a commit: its operation, the files that it wrote, and metadata by full key."""

    operation: str
    files: tuple[MergedFile, ...]
    extra: Mapping[str, str]


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
    return _encoded([record])


def _encoded(records: Iterable[Mapping[str, object]]) -> bytes:
    target = io.BytesIO()
    fastavro.writer(target, _PARSED, records)
    return target.getvalue()


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
