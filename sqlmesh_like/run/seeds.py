"""A seed's CSV file → typed rows. Owns header, declared types and checks; the engine writes them as a table.

Everything that can be wrong with a seed is found here, with its position in the file, before anything is written.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import dropwhile
from pathlib import Path

from sqlmesh_like.errors import Location, ProjectError, nearest, with_article
from sqlmesh_like.names import LONGEST_COLUMN, Column, Schema, is_storable
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.project.reading.column_types import nearest_type
from sqlmesh_like.project.reading.files import read_bytes
from sqlmesh_like.project.reading.project_warnings import warn
from sqlmesh_like.render.rendered import RenderedSeed
from sqlmesh_like.run.values.csv_file import CsvField, CsvFile
from sqlmesh_like.run.values.seed_types import STRING, SeedType, declared_type

_VERSION = 2
"""Part of the fingerprint: incremented when the same file yields other rows."""
_VERSION_OF_TEXT = 1
"""That of a file whose fields are the values of its table, each as it is written: read so before dbt's rules were."""


@dataclass(frozen=True)
class SeedTable:
    """A seed as it will be stored in the lake. `fingerprint` is that of text, types and key."""

    seed: RenderedSeed
    schema: Schema
    rows: tuple[tuple[object, ...], ...]
    unique_key: tuple[str, ...]
    fingerprint: str

    def naive_rows(self) -> tuple[tuple[object, ...], ...]:
        """Its rows with times as DuckDB expects them: in UTC, without a zone."""
        return tuple(tuple(map(_naive, row)) for row in self.rows)


def _naive(value: object) -> object:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def read_seed(seed: RenderedSeed, root: Path) -> SeedTable:
    """Read and check a seed's file below `root`. Raises ProjectError with file, line and column."""
    return _parse_seed(seed, _text(root, seed.path))


class SeedReader:
    """Reads the seeds of one project. A file is typed again only if the seed or its text has changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, SeedTable]] = {}

    def read(self, seed: RenderedSeed, root: Path) -> SeedTable:
        """Like `read_seed`, but a file is typed again only if it or its seed has changed."""
        text = _text(root, seed.path)
        known = self._known.get(seed.path)
        if known is None or known[0] != text or known[1].seed != seed:
            known = self._known[seed.path] = text, _parse_seed(seed, text)
        return known[1]


def _parse_seed(seed: RenderedSeed, text: str) -> SeedTable:
    file = CsvFile(seed.path, text, _delimiter(seed))
    header, *records = list(dropwhile(_is_blank, file.lines())) or [[]]
    names = _names(file, header)
    _check_widths(file, len(names), records)
    columns = _columns(seed, file, names, records)
    schema = tuple(Column(name, type_.name) for name, (type_, _) in zip(names, columns, strict=True))
    rows = tuple(zip(*(values for _, values in columns), strict=True))
    key = _unique_key(seed, names)
    _check_unique(file, key, names, rows, records)
    version = _VERSION_OF_TEXT if _is_as_written(schema, rows, records) else _VERSION
    parts = [version, file.text, file.delimiter, [[c.name, c.type] for c in schema], key]
    return SeedTable(seed, schema, rows, key, hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32])


def _is_blank(record: Sequence[CsvField]) -> bool:
    return len(record) == 1 and record[0].is_null


def _is_as_written(schema: Schema, rows: Sequence[Sequence[object]], records: Sequence[Sequence[CsvField]]) -> bool:
    """Whether each row is a line of the file with all fields, and only empty fields are NULL."""
    texts = [position for position, column in enumerate(schema) if column.type == STRING.name]
    return all(
        len(record) == len(schema)
        and not _is_blank(record)
        and all(row[at] == (None if record[at].is_null else record[at].text) for at in texts)
        for row, record in zip(rows, records, strict=True)
    )


def is_loaded(table: SeedTable, state: TableState) -> bool:
    """Whether the lake holds exactly this seed, according to the record of its table's newest commit."""
    return state.record is not None and not state.is_foreign_on_top and state.record.fingerprint == table.fingerprint


def _text(root: Path, path: str) -> str:
    content = read_bytes(root / path, root)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = f"the byte 0x{content[error.start]:02x} is not UTF-8 text"
        raise ProjectError(message, location=Location(path, line), hint="save the file as UTF-8") from None


def _delimiter(seed: RenderedSeed) -> str:
    given = seed.config.get("delimiter", ",")
    if not isinstance(given, str) or len(given) != 1 or given in '"\r\n':
        raise ProjectError(
            f"delimiter {given!r} of seed {seed.name!r} must be one character", location=Location(seed.path)
        )
    return given


def _names(file: CsvFile, header: Sequence[CsvField]) -> list[str]:
    if not header:
        raise ProjectError(
            "the file is empty", location=Location(file.path, 1, 1), hint="its first line names the columns"
        )
    names: list[str] = []
    for field in header:
        name = field.text.strip()
        if not is_storable(name):
            hint = "use letters, digits and underscores; names that start with _sml_ or _hoodie_ are taken"
            if other := next((sign for sign in ";\t|" if sign in name and sign != file.delimiter), None):
                hint = f"if {other!r} separates the columns, say so: config: {{delimiter: {json.dumps(other)}}}"
            if len(name) > LONGEST_COLUMN:
                name, hint = f"{name[:20]}…", f"names have up to {LONGEST_COLUMN} characters"
            raise file.error(f"{name!r} cannot be the name of a column", field.offset, hint)
        if name.lower() in (known.lower() for known in names):
            raise file.error(f"the column {name!r} is there twice", field.offset, "names are compared without case")
        names.append(name)
    return names


def _check_widths(file: CsvFile, width: int, records: Sequence[Sequence[CsvField]]) -> None:
    for record in records:
        if len(record) > width:
            hint = f"a field that holds {file.delimiter!r} must be quoted"
            message = f"this line has {len(record)} fields, the header has {width}"
            raise file.error(message, record[width].offset, hint)


def _columns(
    seed: RenderedSeed, file: CsvFile, names: Sequence[str], records: Sequence[Sequence[CsvField]]
) -> list[tuple[SeedType, Sequence[object]]]:
    """Type and values of each column. Raises ProjectError."""
    from sqlmesh_like.run.values.seed_inference import typed_columns  # agate takes a tenth of a second to import

    declared = _declared_types(seed, names)
    texts = [[re.sub("\r\n?", "\n", field.text) for field in record] for record in records]
    columns = typed_columns(names, texts, declared)
    for at, name in enumerate(names):
        if (type_ := declared.get(name)) is not None:
            values = [
                _value(file, record, at, value, type_) for record, value in zip(records, columns[at][1], strict=True)
            ]
            columns[at] = type_, values
    return columns


def _declared_types(seed: RenderedSeed, names: Sequence[str]) -> dict[str, SeedType]:
    """The types of `column_types` by the column's own name."""
    known = {name.lower(): name for name in names}
    declared: dict[str, SeedType] = {}
    for name, text in seed.column_types.items():
        if name.lower() not in known:
            hint = nearest(name, names) or f"its columns: {', '.join(names)}"
            warn(Location(seed.path, 1), f"column_types names {name!r}, which is not one of its columns: ignored", hint)
            continue
        try:
            declared[known[name.lower()]] = declared_type(text)
        except ValueError as error:
            message = f"column_types gives {name!r} the unknown type {text!r}"
            hint = nearest_type(text.partition("(")[0]) or str(error)
            raise ProjectError(message, location=Location(seed.path, 1, 1), hint=hint) from None
    return declared


def _value(file: CsvFile, record: Sequence[CsvField], at: int, text: object, type_: SeedType) -> object:
    """A text as a value of a declared type."""
    if not isinstance(text, str) or type_ is STRING:
        return text
    try:
        return type_.convert(text.strip())
    except ValueError:
        message = f"{text!r} is not {with_article(type_.name)}"
        raise file.error(message, record[at].offset, "fix it, or change column_types") from None


def _unique_key(seed: RenderedSeed, names: Sequence[str]) -> tuple[str, ...]:
    given = seed.config.get("unique_key")
    keys = [str(part) for part in given] if isinstance(given, list | tuple) else [str(given)] if given else []
    known = {name.lower(): name for name in names}
    for key in keys:
        if key.lower() not in known:
            raise ProjectError(
                f"unique_key names {key!r}, which is not one of its columns",
                location=Location(seed.path, 1, 1),
                hint=nearest(key, names),
            )
    return tuple(known[key.lower()] for key in keys)


def _check_unique(
    file: CsvFile,
    key: Sequence[str],
    names: Sequence[str],
    rows: Sequence[Sequence[object]],
    records: Sequence[Sequence[CsvField]],
) -> None:
    if not key:
        return
    positions = [names.index(name) for name in key]
    seen: dict[tuple[object, ...], int] = {}
    for row, record in zip(rows, records, strict=True):
        value = tuple(row[position] for position in positions)
        place = record[min(positions[0], len(record) - 1)].offset
        if None in value:
            raise file.error(
                f"unique_key ({', '.join(key)}) is NULL here", place, "fill it in, or choose another unique_key"
            )
        if value in seen:
            first = file.locate(seen[value])
            raise file.error(f"unique_key ({', '.join(key)}) repeats", place, f"the same value is in line {first.line}")
        seen[value] = place
