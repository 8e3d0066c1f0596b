"""The folder into which a database's events are spooled. Owns its paths, what Python writes there, and its cleaning.

`EventSpool.java` describes the files and writes all others.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlmesh_like.cdc.formats.message import BEGINS, ENDS, READS_AGAIN
from sqlmesh_like.cdc.sources.database.server import LogEnd, Table
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.errors import IngestError, UsageError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.storage import folder, local_path

SEGMENT_EVENTS = 50_000
"""Most events of a segment, of small rows."""
_FOLDERS = ("log", "staging", "offsets")
_REFERENCE = re.compile(r"spool:([0-9a-f]{64})")


@dataclass(frozen=True)
class RowStatement:
    """A statement that a binary log has instead of rows, or that takes rows back, with the database it is meant for."""

    database: str
    text: str


@dataclass(frozen=True)
class Spool:
    """The spool of one source in one warehouse. `of_rows`: of rows that are read apart from its log, in it."""

    folder: Path
    of_rows: bool = False

    @property
    def schemas(self) -> Path:
        """The folder of the schemas that events refer to."""
        return (self.folder.parent if self.of_rows else self.folder) / "schemas"

    def ranges_of(self, table: Table) -> Path:
        """The folder of segments with rows of a large table, which are not all there yet."""
        return self.folder / "ranges" / str(table)

    def schema(self, text: str) -> str:
        """The `fields` that an event states, where it refers to a schema those of the schema.

        Raises IngestError where the spool does not have it.
        """
        reference = _REFERENCE.fullmatch(text)
        if reference is None:
            return text
        try:
            return (self.schemas / f"{reference[1]}.json").read_text(encoding="utf-8")
        except OSError as error:
            raise IngestError(f"{self.schemas} lacks a schema of events: {error}") from None

    @property
    def glob(self) -> str:
        """The segments that may be read."""
        return f"{self.folder}/log/*.gz"

    @property
    def newest(self) -> int:
        """The number of the newest segment that may be read; 0: none."""
        return max(map(number_of, (self.folder / "log").glob("*.gz")), default=0)

    def row_statements(self, begin: int = 0) -> tuple[tuple[RowStatement, ...], int]:
        """Statements that a binary log has instead of rows, as far as it has been read, and the size of their file.

        `begin`: those after this size.
        """
        file = self.folder / "row_statements"
        if not file.exists() or file.stat().st_size <= begin:
            return (), begin
        with file.open("rb") as lines:
            lines.seek(begin)
            # Without a line that a killed process did not end: the engine reads its statement again.
            content = lines.read().rpartition(b"\n")[0]
        lines_of = content.decode(errors="replace").split("\n") if content else []
        statements = tuple(RowStatement(*line.partition("\t")[::2]) for line in lines_of)
        return statements, begin + len(content) + bool(content)

    def forget_row_statements(self) -> None:
        """Drop them: their tables are read again."""
        (self.folder / "row_statements").unlink(missing_ok=True)

    @property
    def _first(self) -> int:
        """The last number that was used before the spool began anew."""
        file = self.folder / "first"
        return int(file.read_text(encoding="utf-8")) if file.exists() else 0

    def prepare(self) -> None:
        """Create its folders."""
        for path in (*(self.folder / name for name in _FOLDERS), self.schemas):
            path.mkdir(parents=True, exist_ok=True)
        # Remove what a killed process wrote of a line; the engine writes the whole line again.
        history = self.folder / "schema_history"
        if history.exists() and not (content := history.read_bytes()).endswith(b"\n") and content:
            history.write_bytes(content[: content.rfind(b"\n") + 1])

    @property
    def has_position(self) -> bool:
        """Whether a snapshot is complete, so that the log is read from there on."""
        offset = self._offset()
        return bool(offset) and "snapshot" not in offset

    def is_at(self, end: LogEnd | None) -> bool:
        """Whether all up to this end of the log has been read, so that no process is needed to find out."""
        offset = self._offset()
        if end is None or not self.has_position or any((self.folder / "staging").glob("*.gz")):
            return False
        return (offset.get("file"), offset.get("pos")) == (end.file, end.position)

    @property
    def statements(self) -> int:
        """The size of the record of statements: it grows with each one."""
        file = self.folder / "schema_history"
        return file.stat().st_size if file.exists() else 0

    def _offset(self) -> dict[str, object]:
        numbers = [int(path.name) for path in (self.folder / "offsets").glob("*") if path.name.isdigit()]
        if not numbers:
            return {}
        offset = json.loads((self.folder / "offsets" / str(max(numbers))).read_text(encoding="utf-8").splitlines()[1])
        assert isinstance(offset, dict)
        return offset

    def forget(self, tables: Iterable[Table], database: str) -> None:
        """Begin anew: what comes first says that the tables are read again, so that rows deleted meanwhile go.

        Numbers are never used again: a file with the name of one that was read would not be read.
        """
        used = [number_of(path) for name in _FOLDERS for path in (self.folder / name).iterdir() if path.stem.isdigit()]
        replace_file(self.folder / "first", str(max([*used, self._first], default=0)).encode())
        replace_file(self.folder / "truncates.gz", gzip.compress(b"".join(begins(tables, database))))
        # First what says that there was a snapshot: a kill from here on leaves a spool that begins with the truncates.
        shutil.rmtree(self.folder / "offsets")
        for path in self.folder.iterdir():
            if path.name not in ("first", "lock", "schemas", "tables.json", "truncates.gz"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.prepare()

    @property
    def begins_anew(self) -> bool:
        """Whether it was begun anew, and no snapshot is complete since."""
        return not self.has_position and (self.folder / "truncates.gz").exists()

    def end_snapshot_with(self, lines: Iterable[bytes]) -> None:
        """Let the engine write these lines after the last row of its snapshot."""
        replace_file(self.folder / "ends", b"".join(lines))

    def append(self, lines: Iterable[bytes]) -> None:
        """Add a segment after all others, at the position in the log that they have reached. No engine may run."""
        part = self.folder / "staging" / "added.part"
        write_lines(part, lines)
        self.append_file(part)

    def append_file(self, segment: Path) -> None:
        """Add a complete segment by moving it, as `append` does."""
        for prepared in (self.folder / "prepared").glob("*.prepared"):  # not in rows that were read apart from the log
            prepared.rename(prepared.with_suffix(".unread"))
        numbers = [int(path.name) for path in (self.folder / "offsets").glob("*") if path.name.isdigit()]
        number = max(self.newest, self._first, *numbers) + 1
        newest = self.folder / "log" / f"{self.newest:012d}.gz"
        earliest = newest.stat().st_mtime_ns // 10**6 + 1 if newest.exists() else 0
        modified = max(time.time_ns() // 10**6, earliest) * 10**6  # files are read in the order of their times
        os.utime(segment, ns=(modified, modified))
        position = self.folder / "offsets" / str(max(numbers))
        # First the position: without its segment it is dropped again, a segment without one would begin anew.
        replace_file(self.folder / "offsets" / str(number), position.read_bytes())
        fault_point("database.added")
        os.replace(segment, self.folder / "log" / f"{number:012d}.gz")

    def clean(self, acknowledged: int, keep_days: int) -> None:
        """Remove segments that all tables have, once they are older than so many days; the newest one stays."""
        before = time.time() - keep_days * 86_400
        for path in (self.folder / "log").glob("*.gz"):
            if number_of(path) < acknowledged and path.stat().st_mtime < before:
                path.unlink()


def spool_of(place: SourcePaths) -> Spool:
    """The spool of a source. Raises UsageError where its warehouse is not on this machine."""
    if not folder(place.target.warehouse).is_local:
        raise UsageError(
            f"source {place.source.name!r} reads a database, and the warehouse {place.target.warehouse} is not on this"
            " machine",
            location=place.source.declared_at,
            hint="use a warehouse on a local disk, or let Kafka Connect run Debezium and read its topics (`kafka:`)",
        )
    return Spool(local_path(f"{place.target.warehouse}/_sml/database/{place.source.name}"))


def number_of(path: Path | str) -> int:
    """The number of a segment.

    >>> number_of("file:/lake/_sml/database/shop/log/000000000012.gz")
    12
    """
    return int(os.path.basename(path).partition(".")[0])  # noqa: PTH119 (it may be a URI)


def begins(tables: Iterable[Table], database: str) -> Iterator[bytes]:
    """The lines of events that come before all rows of these tables, which are read again."""
    return _marks(tables, database, BEGINS)


def ends(tables: Iterable[Table], database: str) -> Iterator[bytes]:
    """The lines of events that come after them: rows that were not read again, as they were deleted meanwhile, go."""
    return _marks(tables, database, ENDS)


def _marks(tables: Iterable[Table], database: str, mark: str) -> Iterator[bytes]:
    for table in tables:
        source = {"db": database, "schema": table.schema, "table": table.name}
        event = {"op": "t", "before": None, "after": None, "source": source, "ts_ms": time.time_ns() // 10**6}
        event[READS_AGAIN] = mark
        yield f"{json.dumps(event)}\n".encode()


def write_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Write the events of a segment."""
    with path.open("wb") as file:
        with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1) as out:
            out.writelines(lines)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, content: bytes) -> None:
    """Write a small file of the spool as a whole: after a kill it is the former one or the new one."""
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
