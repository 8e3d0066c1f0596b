"""One commit of a Hudi table as a value. Owns reading its metadata; the timeline decides which commits count."""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from sqlmesh_like.errors import NewerVersionError, UnreadableTableError

X = TypeVar("X")
FileGroup = tuple[str, str]
"""A file group: partition path and file id."""

STATE_PREFIX = "sml."
"""Prefix of the keys that this project writes into commit metadata."""
FORMAT_KEY, FORMAT = "format", 1
"""Metadata: the format of what a commit says under our keys. A commit without it has format 1."""
REWRITE = "rewrite"
"""Metadata: why a commit rewrote every row without a change."""
COLUMN_CHANGES = "changes"
"""Metadata: a commit's changes of the table's columns, a JSON list of texts."""

NOT_METADATA = (ValueError, TypeError, LookupError, EOFError, OverflowError, MemoryError, struct.error, zlib.error)
NOT_SCHEMA = (SchemaParseException, UnknownType)
"""Errors, with those above, of reading bytes as Avro or JSON that are neither."""
_SERVICE_OPERATIONS = {"COMPACT", "LOG_COMPACT", "CLUSTER", "INDEX", "BUCKET_RESCALE"}


@dataclass(frozen=True, order=True)
class Instant:
    """One action on the timeline; ordered by requested time, as Hudi orders them."""

    requested: str
    completed: str | None
    action: str

    @property
    def frontier(self) -> str:
        """The instant as a frontier: `requested_completed`."""
        return f"{self.requested}_{self.completed}"


@dataclass(frozen=True)
class FileWrite:
    """What a commit did to one file group (grain: commit × file group). `path` is relative to the table."""

    partition: str
    file_id: str
    path: str
    rows: int
    inserts: int
    updates: int
    deletes: int
    bytes: int
    previous: str | None = None  # instant of the slice it was merged from; None: a new file group


@dataclass(frozen=True)
class Commit:
    """Metadata of one completed commit."""

    instant: Instant
    operation: str
    writes: tuple[FileWrite, ...]
    replaced: Mapping[str, tuple[str, ...]]
    extra: Mapping[str, str]

    @property
    def is_data(self) -> bool:
        """False for compaction, clustering, this project's rewrites and other services, which change no row."""
        return self.operation not in _SERVICE_OPERATIONS and not self.is_rewrite

    @property
    def is_rewrite(self) -> bool:
        """Whether it rewrote every row without a change; its metadata still counts for the next writer."""
        return STATE_PREFIX + REWRITE in self.extra

    @property
    def is_ours(self) -> bool:
        """Whether a writer of this project committed it."""
        return any(key.startswith(STATE_PREFIX) for key in self.extra)

    @property
    def column_changes(self) -> tuple[str, ...]:
        """Its changes of the table's columns, in words."""
        return tuple(map(str, json.loads(self.extra.get(STATE_PREFIX + COLUMN_CHANGES, "[]"))))

    @property
    def touched(self) -> set[FileGroup]:
        """File groups that this commit wrote or replaced."""
        return {(write.partition, write.file_id) for write in self.writes} | self.replaced_groups

    @property
    def replaced_groups(self) -> set[FileGroup]:
        """File groups that end with this commit."""
        return {(partition, file_id) for partition, ids in self.replaced.items() for file_id in ids}


def touched_groups(commits: Iterable[Commit]) -> frozenset[FileGroup]:
    """File groups that any of these commits wrote or replaced."""
    return frozenset[FileGroup]().union(*(commit.touched for commit in commits))


@dataclass(frozen=True)
class Slice:
    """The base file of a file group as of a frontier. `path` is relative to the table."""

    partition: str
    file_id: str
    path: str
    instant: str

    @property
    def group(self) -> FileGroup:
        return (self.partition, self.file_id)


@dataclass(frozen=True)
class Size:
    """Size of a file group. `rows`: None where the commits that state them are archived."""

    bytes: int
    rows: int | None


def parse_commit(instant: Instant, content: bytes, path: str) -> Commit:
    """Parse a commit's file. Raises UnreadableTableError and NewerVersionError, which name the path."""
    commit = read_metadata(content, path, partial(_to_commit, instant))
    if (format_ := commit.extra.get(STATE_PREFIX + FORMAT_KEY, "1")) != str(FORMAT):
        raise NewerVersionError(path, f"its format is {format_}, this one knows {FORMAT}")
    return commit


def extra_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """The metadata of a commit, by keys without prefix, as it is stored: with the prefix, and with its format."""
    entries = {**metadata, FORMAT_KEY: str(FORMAT)} if metadata else metadata
    return {f"{STATE_PREFIX}{key}": value for key, value in entries.items()}


def read_metadata(content: bytes, path: str, convert: Callable[[object], X]) -> X:
    """Parse the Avro or JSON record of an action on the timeline and return what `convert` makes of it.

    Raises UnreadableTableError, which names the path, where there is no record or `convert` cannot read it.
    """
    try:
        is_json = content[:1] == b"{"
        return convert(json.loads(content) if is_json else next(fastavro.reader(io.BytesIO(content)), None))
    except (*NOT_METADATA, *NOT_SCHEMA) as error:
        why = f"{len(content):,} bytes, {type(error).__name__}: {error}" if content else "it is empty"
        raise UnreadableTableError(f"{path} is not commit metadata ({why})") from error


def _to_commit(instant: Instant, record: object) -> Commit:
    if not isinstance(record, dict):
        raise TypeError("no record")
    names = ("partitionToWriteStats", "partitionToReplaceFileIds", "extraMetadata")
    stats, replaced, extra = (mapping_member(record.get(name)) for name in names)
    return Commit(
        instant=instant,
        operation=str(record.get("operationType") or "UNKNOWN"),
        writes=tuple(_to_write(partition, stat) for partition, entries in stats.items() for stat in entries),
        replaced={partition: tuple(ids) for partition, ids in replaced.items()},
        extra={key: value for key, value in extra.items() if value is not None},
    )


def mapping_member(value: object) -> Mapping[str, Any]:
    """A member of a record as a mapping, empty where it is absent. Raises TypeError for other types."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError("no mapping")
    return value


def _to_write(partition: str, entry: object) -> FileWrite:
    stat = mapping_member(entry)

    def number(key: str) -> int:
        value = stat.get(key)
        return value if isinstance(value, int) else 0

    previous = stat.get("prevCommit")
    return FileWrite(
        partition=partition,
        file_id=str(stat["fileId"]),
        path=str(stat["path"]),
        rows=number("numWrites"),
        inserts=number("numInserts"),
        updates=number("numUpdateWrites"),
        deletes=number("numDeletes"),
        bytes=number("fileSizeInBytes"),
        previous=previous if isinstance(previous, str) and previous.isdigit() else None,
    )
