"""The change log of a commit: a file of its signed rows. Owns its record, when logs cover a range, and removal.

A commit of this project names the file in its metadata, and the commit that the rows are relative to. The file is
written before the commit: a crash in between leaves a file that no commit names. `logged_changes` reads the rows.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from io import SEEK_END

from sqlmesh_like.analyze.spark_types.nested_types import element_of, typed_fields_of
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.commits import STATE_PREFIX, Commit
from sqlmesh_like.hudi.file_schemas import SPARK_SCHEMA
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import KEY, Schema

CHANGE_LOG = "change_log"
"""Key of the record in a commit's metadata."""
FOLDER = ".hoodie/.sml_changes"
"""Below `.hoodie`, where neither Hudi's readers nor its cleaner look for data; relative to the table."""

LOGGED_FROM_BYTES = 32_000_000
"""Size in bytes from which on commits of a copy-on-write table have logs: comparing the files of smaller ones is fast.

Commits of merge-on-read tables always have logs, because reading these tables uses them.
"""

UNSURE = "_sml_unsure"
"""Column of a log, not NULL where the table may hold another row: a log with such a row is not used."""

_KEY = STATE_PREFIX + CHANGE_LOG
_VERSION = 1
_INSTANT = "%Y%m%d%H%M%S"
_UNDER_WAY = timedelta(hours=24)
"""How long a log that no commit names may belong to a commit that is being written."""


@dataclass(frozen=True)
class LogFile:
    """One Parquet file of a log; `path` is relative to the table."""

    path: str
    bytes: int


@dataclass(frozen=True)
class ChangeLog:
    """The record of a commit's change log, relative to the frontier `previous`. Without rows there is no file.

    `columns`: fingerprint of the files' columns and types.
    """

    previous: str
    rows: int = 0
    files: tuple[LogFile, ...] = ()
    columns: str = ""
    version: int = _VERSION

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def metadata(self) -> dict[str, str]:
        """The entry for the commit's metadata."""
        return {CHANGE_LOG: self.to_json()}

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)


class NotLoggedError(Exception):
    """Raised where the change of a range is not, or not certainly, in logs; the text says why."""


def log_of(commit: Commit) -> ChangeLog:
    """The log that a commit names. Raises NotLoggedError where there is none that can be read."""
    text = commit.extra.get(_KEY)
    if text is None:
        raise NotLoggedError(f"commit {commit.instant.requested} has no change log")
    try:
        values = json.loads(text)
        if values["version"] == _VERSION:
            return ChangeLog(**{**values, "files": tuple(LogFile(**file) for file in values["files"])})
    except (ValueError, TypeError, KeyError) as error:
        raise NotLoggedError(f"the change log of commit {commit.instant.requested} has a broken record") from error
    message = f"the change log of commit {commit.instant.requested} has version {values['version']}, not {_VERSION}"
    raise NotLoggedError(message)


def chained_logs(commits: Iterable[Commit], start: str) -> tuple[ChangeLog, ...]:
    """The logs of the data commits that follow the frontier `start`, in requested order; services are skipped.

    Raises NotLoggedError unless each has a log relative to the data commit right before it: changes that another writer
    committed in between, or completed late, are in none of them.
    """
    logs: list[ChangeLog] = []
    previous = start
    for commit in commits:
        if not commit.is_data:
            continue
        log = log_of(commit)
        if log.previous != previous:
            at = commit.instant.requested
            raise NotLoggedError(f"the change log of commit {at} follows {log.previous}, not {previous}")
        logs.append(log)
        previous = commit.instant.frontier
    return tuple(logs)


def logs_between(timeline: Timeline, start: str, end: str) -> tuple[ChangeLog, ...]:
    """The logs of the change between two frontiers. Raises NotLoggedError where they do not have all of it."""
    if timeline.properties.get("hoodie.table.recordkey.fields") != KEY:
        raise NotLoggedError("its rows have keys of another writer")
    return chained_logs(timeline.between(start, end), start)


def logged_columns(timeline: Timeline, log: ChangeLog) -> str:
    """Check a log's files and return their columns (Spark's JSON).

    Raises NotLoggedError where one is gone or has another size, other columns or another number of rows than the commit
    says.
    """
    rows, columns = 0, ""
    for file in log.files:
        footer = read_footer(timeline, file)
        rows, columns = rows + footer.rows, footer.columns
        if columns_fingerprint(columns) != log.columns:
            raise NotLoggedError(f"the change log {file.path} has other columns than its commit says")
    if rows != log.rows:
        path = log.files[0].path if log.files else "without files"
        raise NotLoggedError(f"the change log {path} has {rows} rows, its commit says {log.rows}")
    return columns


@dataclass(frozen=True)
class Footer:
    """The footer of a log's file. `unsure`: number of rows that the table may hold differently."""

    rows: int
    columns: str
    unsure: int


def read_footer(timeline: Timeline, file: LogFile) -> Footer:
    """Read the footer of a log's file. Raises NotLoggedError where the file is gone or is not the one written."""
    import pyarrow.parquet as pq  # takes longer to import than a run with nothing to do should last
    from pyarrow import ArrowInvalid

    try:
        with timeline.folder.data_file(file.path) as source:
            if source.seek(0, SEEK_END) != file.bytes:
                raise NotLoggedError(f"the change log {file.path} has another size than its commit says")
            metadata = pq.read_metadata(source)
    except FileNotFoundError as error:
        raise NotLoggedError(f"the change log {file.path} is gone") from error
    except ArrowInvalid as error:
        raise NotLoggedError(f"the change log {file.path} is not a Parquet file") from error
    columns = (metadata.metadata or {}).get(SPARK_SCHEMA.encode(), b"").decode()
    return Footer(metadata.num_rows, columns, _values_of(metadata, UNSURE))


def _values_of(metadata: object, column: str) -> int:
    """The number of non-NULL values of a column by its statistics; an upper bound where a row group has none."""
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]  # type: ignore[attr-defined]
    chunks = [group.column(n) for group in groups for n in range(group.num_columns)]
    return sum(
        chunk.num_values - (chunk.statistics.null_count if chunk.statistics else 0)
        for chunk in chunks
        if chunk.path_in_schema == column
    )


def new_log(
    timeline: Timeline, previous: str, columns: Schema, write: Callable[[str, Mapping[str, str]], int]
) -> ChangeLog:
    """Create a log of one file. `write` gets its path and footer metadata and returns the number of rows."""
    described = json.dumps(_described((column.name, column.type) for column in columns))
    path = f"{log_folder()}/0.parquet"
    with timeline.folder.new_file(path) as file:
        rows = write(str(file), {SPARK_SCHEMA: described})
        size = file.stat().st_size
    return ChangeLog(previous, rows, (LogFile(path, size),), columns_fingerprint(described))


def _described(fields: Iterable[tuple[str, str | None]]) -> Mapping[str, object]:
    """Columns, or the fields of a struct, as Spark's JSON."""
    described = [{"name": n, "type": _json_type(t), "nullable": True, "metadata": {}} for n, t in fields]
    return {"type": "struct", "fields": described}


def _json_type(type_: str | None) -> object:
    if element := element_of(type_):
        return {"type": "array", "elementType": _json_type(element), "containsNull": True}
    if fields := typed_fields_of(type_):
        return _described(fields)
    return _JSON_NAMES.get(type_ or "", type_)


_JSON_NAMES = {"int": "integer", "bigint": "long", "smallint": "short", "tinyint": "byte"}


def columns_fingerprint(columns: str) -> str:
    return hashlib.sha256(columns.encode()).hexdigest()[:16]


def log_folder() -> str:
    """A path for a new log's folder, whose name begins with the present time, spelt like an instant.

    >>> log_folder().startswith(".hoodie/.sml_changes/20")
    True
    """
    return f"{FOLDER}/{datetime.now(UTC).strftime(_INSTANT)}-{uuid.uuid4().hex}"


def remove_logs(timeline: Timeline, now: datetime | None = None) -> int:
    """Remove the logs that no commit of the active timeline names. Returns how many.

    Logs of archived commits are removed at once: changes from before the timeline are never read. Any other was left by
    a crash or belongs to a commit under way, so it is kept for a day.
    """
    logs = folder(f"{timeline.uri}/{FOLDER}")
    if not (names := logs.names()):
        return 0
    # Compared as text: records of later versions may have another structure.
    named = "".join(commit.extra.get(_KEY, "") for commit in timeline.commits)
    limit = _limit(timeline, now or datetime.now(UTC))
    gone = [name for name in names if name not in named and name.partition("-")[0] < limit]
    for name in gone:
        logs.fs.rm(f"{logs.path}/{name}", recursive=True)
        fault_point("maintain.log_removed")
    return len(gone)


def _limit(timeline: Timeline, now: datetime) -> str:
    """The time before which a log that no commit names cannot belong to a commit under way."""
    under_way = [now.strftime(_INSTANT), *timeline.pending]
    oldest = datetime.strptime(min(under_way)[:14], _INSTANT) - _UNDER_WAY
    first = min((instant.requested for instant in timeline.completed), default="")
    return max(oldest.strftime(_INSTANT), min([first, *timeline.pending]))
