"""The files of a commit on the timeline. Owns their names and Avro records, as far as readers need them.

Source: Hudi's technical specification, "Timeline"; names and types are those of commits of table version 9.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import fastavro

from sqlmesh_like.hudi.writer.file_merge import MergedFile

Action = Literal["commit", "replacecommit"]
"""What a commit is on the timeline: a `replacecommit` also ends file groups that readers had."""
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


def _lists(items: object) -> dict[str, object]:
    return {"type": "map", "values": {"type": "array", "items": items}, "avro.java.string": "String"}


def _record(name: str, *fields: dict[str, object]) -> Any:
    record = {"type": "record", "name": f"org.apache.hudi.avro.model.{name}", "fields": [*fields]}
    return fastavro.parse_schema(record)


_EXTRA = _field("extraMetadata", {"type": "map", "values": _STRING, "avro.java.string": "String"})
_FIELDS = (
    _field("partitionToWriteStats", _lists(_WRITE_STAT)),
    _field("compacted", "boolean"),
    _EXTRA,
    _field("version", "int", 1),
    _field("operationType", _STRING),
)
_COMMIT = _record("HoodieCommitMetadata", *_FIELDS)
_REPLACE_COMMIT = _record("HoodieReplaceCommitMetadata", *_FIELDS, _field("partitionToReplaceFileIds", _lists(_STRING)))
_REPLACE_REQUEST = _record("HoodieRequestedReplaceMetadata", _field("operationType", _STRING), _EXTRA)


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
    return b"" if action == "commit" else _encoded(_REPLACE_REQUEST, {})


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
        return _encoded(_COMMIT, record)
    replaced = {partition: list(ids) for partition, ids in content.replaced.items()}
    return _encoded(_REPLACE_COMMIT, {**record, "partitionToReplaceFileIds": replaced})


def _encoded(schema: Any, record: Mapping[str, object]) -> bytes:
    target = io.BytesIO()
    fastavro.writer(target, schema, [record])
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
