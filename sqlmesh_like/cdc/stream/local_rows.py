"""The rows of a few Parquet or CSV files, read without Spark. Owns which files are certain.

Parquet: flat columns of the types that Spark and pyarrow read alike; `hudi.reading.foreign_files` knows whose dates
they do not. CSV: texts whose quotes are all as RFC 4180 has them; of others Spark's parser makes what no other does.
Types: `ParquetToSparkSchemaConverter` of Spark 3.5.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from io import StringIO
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sqlmesh_like.cdc.formats.columnar import RAW, FileSchema
from sqlmesh_like.cdc.in_process.commits import column_values
from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.in_process.values import NotProvenError, Row
from sqlmesh_like.cdc.sources.csv_files import CORRUPT, csv_rows, files_by_columns
from sqlmesh_like.cdc.sources.offset_range import Files, files_of
from sqlmesh_like.cdc.sources.parquet_log import CsvLog, ParquetLog
from sqlmesh_like.cdc.sources.row_files import Listed, RowFile, RowFiles, located_rows, require_distinct
from sqlmesh_like.cdc.stream.local_lines import MOST_LINES
from sqlmesh_like.cdc.stream.log_files import MOST_BYTES, LogFile, open_files
from sqlmesh_like.hudi.file_schemas import SPARK_SCHEMA, spark_schema_of
from sqlmesh_like.hudi.reading.foreign_files import is_legacy

_LOCATION = ("_sml_file", "_sml_modified", "_sml_line")
"""Columns of a record's location beside those of its file, which may have any other name."""
_TOO_MANY = f"more than {MOST_LINES:,} rows, or {MOST_BYTES // 1024**2} MB of them"


def local_row_files(log: ParquetLog, files: Sequence[tuple[int, str]]) -> tuple[list[RowFiles], Files]:
    """The rows of files (modification time in ms, URI) by table and columns, and the part of the log that they are.

    Raises NotProvenError where Spark would or may read other rows, and IngestError as the log does.
    """
    opened = [(log.listed(file.location, file.modified), file) for file in open_files(files)]
    rows = _csv_files(log, opened) if isinstance(log, CsvLog) else _parquet_files(opened)
    for _, file in opened:
        file.require_unchanged()
    if not rows:
        raise NotProvenError("files without records")
    return rows, files_of([(file.modified, file.location) for _, file in opened])


# Parquet.
_TYPES: Mapping[tuple[str, str], str] = {
    ("BOOLEAN", "None"): "boolean",
    ("INT32", "None"): "int",
    ("INT32", "Int 8"): "tinyint",
    ("INT32", "Int 16"): "smallint",
    ("INT32", "Int 32"): "int",
    ("INT32", "Unsigned 8"): "smallint",
    ("INT32", "Unsigned 16"): "int",
    ("INT32", "Unsigned 32"): "bigint",
    ("INT32", "Date"): "date",
    ("INT64", "None"): "bigint",
    ("INT64", "Int 64"): "bigint",
    ("INT64", "Unsigned 64"): "decimal(20,0)",
    ("INT64", "Timestamp utc"): "timestamp",
    ("INT64", "Timestamp"): "timestamp_ntz",
    ("FLOAT", "None"): "float",
    ("DOUBLE", "None"): "double",
    ("BYTE_ARRAY", "String"): "string",
    ("BYTE_ARRAY", "None"): "binary",
}
"""Spark's type by Parquet's physical and logical type, but for decimals. What is not here, only Spark reads."""
_READ_AS: Mapping[str, pa.DataType] = {"timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us")}


def _parquet_files(opened: Sequence[tuple[Listed, LogFile]]) -> list[RowFiles]:
    groups: defaultdict[tuple[Any, ...], list[tuple[RowFile, pq.ParquetFile]]] = defaultdict(list)
    total = size = 0
    for each, of_log in opened:
        try:
            file = pq.ParquetFile(of_log.path if of_log.content is None else pa.BufferReader(of_log.content))
        except (pa.ArrowInvalid, OSError) as error:
            raise NotProvenError(f"{of_log.path}: {error}") from None
        types = _schema(file)
        require_distinct(each.path, [name for name, _ in types])
        total += file.metadata.num_rows
        size += sum(file.metadata.row_group(number).total_byte_size for number in range(file.metadata.num_row_groups))
        if total > MOST_LINES or size > MOST_BYTES:
            raise NotProvenError(_TOO_MANY)
        described = RowFile(each, file.metadata.num_rows, of_log.size, "")
        groups[each.database, each.table, types].append((described, file))
    return [_parquet_rows(types, files) for (_, _, types), files in groups.items()]


def _parquet_rows(types: FileSchema, files: Sequence[tuple[RowFile, pq.ParquetFile]]) -> RowFiles:
    names = tuple(name for name, _ in types)
    rows = [
        (Row.of(names, values), described.listed.path, described.listed.modified, number)
        for described, file in files
        for number, values in enumerate(_values(types, file), 1)
    ]
    frame = RowFrame((RAW, "file", "modified", "line"), rows)
    first = files[0][0].listed
    return RowFiles(tuple(described for described, _ in files), types, located_rows(frame, first, types))


def _schema(file: pq.ParquetFile) -> tuple[tuple[str, str], ...]:
    """Names and Spark types of a file's columns. Raises NotProvenError where they are not certain."""
    types = tuple(_column_type(file.schema.column(number)) for number in range(len(file.schema)))
    footer = {key.decode(): value.decode() for key, value in (file.metadata.metadata or {}).items()}
    if is_legacy(footer):
        raise NotProvenError("dates that an old Spark wrote")
    written = footer.get(SPARK_SCHEMA)
    if written and [(each.name, each.type) for each in spark_schema_of(written)] != list(types):
        raise NotProvenError("a file whose columns have types of Spark's own")
    return types


def _column_type(column: Any) -> tuple[str, str]:
    """Name and Spark type of a column of Parquet's schema."""
    is_flat = column.path == column.name and "." not in column.name and not column.max_repetition_level
    if not is_flat or column.max_definition_level > 1:
        raise NotProvenError(f"the column {column.path}, which is no single value or has a dot in its name")
    said = json.loads(column.logical_type.to_json())
    logical = str(said["Type"])
    if logical == "Decimal":
        return column.name, f"decimal({said['precision']},{said['scale']})"
    if logical == "Int":
        logical = f"{'Int' if said['isSigned'] else 'Unsigned'} {said['bitWidth']}"
    if logical == "Timestamp" and said["timeUnit"] in ("milliseconds", "microseconds") and said["isAdjustedToUTC"]:
        logical = "Timestamp utc"
    if logical == "Timestamp" and said["timeUnit"] not in ("milliseconds", "microseconds"):
        logical = "Timestamp in nanoseconds"
    kind = _TYPES.get((column.physical_type, logical))
    if kind is None:
        raise NotProvenError(f"the column {column.name}, of {column.physical_type} as {logical}")
    return column.name, kind


def _values(types: FileSchema, file: pq.ParquetFile) -> Iterator[tuple[Any, ...]]:
    """The rows of a file, in their order."""
    try:
        table = file.read()
        columns = [_column(table.column(number), kind) for number, (_, kind) in enumerate(types)]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError, OverflowError, OSError) as error:
        raise NotProvenError(f"a value of a file: {error}") from None
    return zip(*columns, strict=True)


def _column(values: pa.ChunkedArray, kind: str) -> list[Any]:
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if kind in _READ_AS:
        values = values.cast(_READ_AS[kind]).cast(pa.timestamp("us", "UTC"))
    if kind in ("float", "double") and pc.any(pc.is_nan(values)).as_py():
        raise NotProvenError("NaN in a file")
    if values.type == pa.uint64():
        return [None if value is None else Decimal(value) for value in values.to_pylist()]
    return column_values(values)


# CSV.
def _csv_files(log: CsvLog, opened: Sequence[tuple[Listed, LogFile]]) -> list[RowFiles]:
    texts: dict[str, str] = {}
    for each, file in opened:
        texts[each.path] = _text(file, log.csv.encoding)
        if sum(map(len, texts.values())) > MOST_BYTES:
            raise NotProvenError(_TOO_MANY)
    listed, sizes = [each for each, _ in opened], {each.path: file.size for each, file in opened}
    groups = files_by_columns(
        listed, log.csv, log.columns_of, log.operation, lambda each: StringIO(texts[each.path], newline="")
    )
    rows = [_csv_rows(log, names, files, texts, sizes) for names, files in groups]
    if sum(each.rows for each in rows) > MOST_LINES:
        raise NotProvenError(_TOO_MANY)
    return rows


def _csv_rows(
    log: CsvLog,
    names: tuple[str, ...],
    files: Sequence[Listed],
    texts: Mapping[str, str],
    sizes: Mapping[str, int],
) -> RowFiles:
    read: list[tuple[Any, ...]] = []
    described = []
    for each in files:
        records = list(_records(texts[each.path], log.csv.delimiter))[1 if log.csv.header else 0 :]
        if any(len(record) != len(names) for record in records):
            raise NotProvenError("a record that has more or fewer values than its file has columns")
        read += [(*record, None, each.path, each.modified, number) for number, record in enumerate(records, 1)]
        described.append(RowFile(each, len(records), sizes[each.path], ""))
    types, row = csv_rows(names, log.csv, log.operation)
    frame = RowFrame((*names, CORRUPT, *_LOCATION), read).selectExpr(
        f"{row} as {RAW}", *(f"{name} as {name.removeprefix('_sml_')}" for name in _LOCATION)
    )
    return RowFiles(tuple(described), types, located_rows(frame, files[0], types))


def _text(file: LogFile, encoding: str) -> str:
    with file.open() as opened:
        content = opened.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise NotProvenError(_TOO_MANY)
    try:
        text = str(content.decode(encoding))
    except UnicodeDecodeError:
        raise NotProvenError(f"{file.path} is not {encoding}") from None
    if re.search("[\r\x00\x01\ufeff]", text):
        raise NotProvenError(f"{file.path} has carriage returns, other control characters or a byte order mark")
    return text


def _records(text: str, delimiter: str) -> Iterator[list[str | None]]:
    """The records of a text: NULL for a value without a character, '' for one of two quotes.

    Raises NotProvenError for lines without a character and for quotes within a value that has none around it.

    >>> list(_records('1,"a ""b"",\\n",\\n2,"",c', ","))
    [['1', 'a "b",\\n', None], ['2', '', 'c']]
    """
    value = re.compile(rf'"((?:[^"]|"")*)"|([^"{re.escape(delimiter)}\n]*)')
    at, record = 0, list[str | None]()
    while at < len(text):
        found = value.match(text, at)
        assert found is not None
        record.append(found[1].replace('""', '"') if found[1] is not None else found[2] or None)
        at = found.end()
        ended = text[at : at + 1]
        if ended not in ("\n", delimiter, "") or (ended != delimiter and record == [None]):
            raise NotProvenError("a CSV file with blank lines, or quotes in a value that has none around it")
        at += 1
        if ended == delimiter and at == len(text):
            record.append(None)
        if ended != delimiter or at == len(text):
            yield record
            record = []
