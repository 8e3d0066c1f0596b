"""CSV files of a batch, with rows of texts. Owns what their records are, and reading them as Spark frames.

Every row gets an operation: in files of DMS that of its `Op`, `load` where its file has none, or a text that says how
many values its record lacks. Values keep line breaks, CRLF as LF where lines end so; what is NULL and what is an empty
text, the source's `csv` settings say. Spark reads bytes that are no text as U+FFFD, and what follows a quote that
is never closed as its value: where rows look like that, the file itself is read (`_require_sound`).
Format: https://docs.aws.amazon.com/dms/latest/userguide/CHAP_Target.S3.html
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import IO, TYPE_CHECKING, Any, cast
from urllib.parse import unquote

import fsspec

from sqlmesh_like.cdc.formats.columnar import RAW, FileSchema
from sqlmesh_like.cdc.formats.dms import OP
from sqlmesh_like.cdc.formats.source_types import quoted_name, sql_literal
from sqlmesh_like.cdc.frames import literal_frame
from sqlmesh_like.cdc.sources.row_files import Listed, RowFile, RowFiles, located_rows, require_distinct
from sqlmesh_like.errors import IngestError
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.project.nodes import CsvFormat

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ColumnsOf = Callable[[Listed], tuple[str, ...] | None]
"""The declared columns of the table of a file, in their order; None where no table is declared."""

CORRUPT = "_sml_record"
"""Column of a record that has more or fewer values than its file has columns: the record; NULL of all others."""
_BROKEN = "not a record of this file's columns: "
_UNCLOSED = "close its quotes, and write the file again under another name"
_REPLACED = "\ufffd"
"""What decoding without errors makes of bytes that are no text."""
_TAIL = 1 << 16
_ABSENT = "\x01"
"""No value of any file: only with a text that never occurs does Spark tell an empty text from a missing one."""


def csv_row_files(
    spark: SparkSession, listed: Sequence[Listed], csv_format: CsvFormat, columns_of: ColumnsOf, operation: str
) -> list[RowFiles]:
    """Group files by table and columns, without those that are gone. `operation`: the column that has it.

    Raises IngestError where columns are not known.
    """
    groups = files_by_columns(listed, csv_format, columns_of, operation)
    return [_read_csv(spark, files, names, csv_format, operation) for names, files in groups]


def files_by_columns(
    listed: Sequence[Listed],
    csv_format: CsvFormat,
    columns_of: ColumnsOf,
    operation: str,
    text_of: Callable[[Listed], AbstractContextManager[IO[str]]] | None = None,
) -> list[tuple[tuple[str, ...], list[Listed]]]:
    """The files that have records, by the names of their columns and by table. Raises as `csv_row_files` does.

    `text_of`: opens the text of a file, where that has been read.
    """
    text_of = text_of or partial(_open_text, csv_format)
    groups: defaultdict[tuple[str | None, str | None, tuple[str, ...]], list[Listed]] = defaultdict(list)
    for each in listed:
        first = _first_record(each, csv_format, text_of)
        if first:
            groups[each.database, each.table, _names(each, first, csv_format, columns_of(each), operation)].append(each)
    return [(names, files) for (_, _, names), files in groups.items()]


def _open_text(csv_format: CsvFormat, file: Listed) -> AbstractContextManager[IO[str]]:
    """The text of a file, as Spark without a byte order mark."""
    encoding = "utf-8-sig" if csv_format.encoding == "utf-8" else csv_format.encoding
    return open_file(file.path, "rt", encoding=encoding, errors="replace", newline="")


def _first_record(
    file: Listed, csv_format: CsvFormat, text_of: Callable[[Listed], AbstractContextManager[IO[str]]]
) -> list[str]:
    """The first record of a file; empty where it has none or is gone."""
    try:
        with text_of(file) as text:
            return next(filter(None, csv.reader(text, delimiter=csv_format.delimiter)), [])  # without blank lines
    except FileNotFoundError:
        return []
    except csv.Error as error:
        raise IngestError(f"the first record of {file.path} cannot be read: {error}", hint=_UNCLOSED) from error


def open_file(path: str, mode: str, **settings: str) -> AbstractContextManager[IO[Any]]:
    """Open a file on a disk or a store, unpacked if it ends in `.gz`. `settings`: those of `io.open` for texts."""
    place = folder(path)
    compression = "gzip" if path.endswith(".gz") else None
    return cast(
        "AbstractContextManager[IO[Any]]", fsspec.core.OpenFile(place.fs, place.path, mode, compression, **settings)
    )


def _names(
    file: Listed, first: Sequence[str], csv_format: CsvFormat, declared: tuple[str, ...] | None, operation: str
) -> tuple[str, ...]:
    if csv_format.header:
        if any(_REPLACED in name or "\n" in name for name in first):
            _require_sound(file.path, csv_format)
        require_distinct(file.path, first)
        return tuple(first)
    if declared is None:
        return tuple(f"column_{number}" for number in range(len(first)))
    is_dms = operation == OP
    if len(first) - len(declared) not in ((0, 1) if is_dms else (0,)) or not declared:
        what = f"has {len(first)} values a record, and its table declares {len(declared)} columns"
        hint = f"list all columns in their order under `columns:` ({OP} left out), or let DMS write their names "
        hint += "(AddColumnName) and set files: {csv: {header: true}}"
        plain = "list all columns in their order under `columns:`; files: {csv: {header: true}} if they name them"
        raise IngestError(f"{file.path} {what}", hint=hint if is_dms else plain)
    return declared if len(first) == len(declared) else (OP, *declared)


def _read_csv(
    spark: SparkSession, files: Sequence[Listed], names: tuple[str, ...], csv_format: CsvFormat, operation: str
) -> RowFiles:
    from pyspark.sql import functions as F

    columns = ", ".join(f"{quoted_name(name)} STRING" for name in (*names, CORRUPT))
    options = {"sep": csv_format.delimiter, "header": str(csv_format.header).lower(), "nullValue": _ABSENT}
    options |= {
        "encoding": csv_format.encoding,
        "quote": '"',
        "escape": '"',
        "multiLine": "true",
        "columnNameOfCorruptRecord": CORRUPT,
    }
    read = spark.read.schema(columns).options(**options).csv([file.path for file in files])
    types, row = csv_rows(names, csv_format, operation)
    numbered = read.selectExpr(
        f"{row} as {RAW}",
        "_metadata.file_path as file",
        "unix_millis(_metadata.file_modification_time) as modified",
        "monotonically_increasing_id() as seen",
    )
    # The records of a file are read by one task, in their order, so numbers count up within it.
    has_break, is_odd = (f"exists(array({_texts(names)}), text -> {test})" for test in (_HAS_BREAK, _IS_ODD))
    ends = [F.expr(f"max_by({has_break}, seen)"), F.expr(f"max({is_odd})")]
    counted = numbered.groupBy("file").agg(F.min("seen"), F.count("*"), *ends).collect()
    for uri, _, _, may_be_open, may_be_broken in counted:
        path = unquote(uri)
        if may_be_open or may_be_broken or _may_end_in_quotes(path, csv_format):
            _require_sound(path, csv_format)
    frame = _with_lines(numbered, [(each[0], each[1]) for each in counted]).select(RAW, "file", "modified", "line")
    rows = sum(int(each[2]) for each in counted)
    sizes = {file.path: int(str(folder(file.path).fs.info(folder(file.path).path)["size"])) for file in files}
    # The number of records of each single file is not needed: of a group, the sum is.
    described = tuple(
        RowFile(file, rows if index == 0 else 0, sizes[file.path], "") for index, file in enumerate(files)
    )
    return RowFiles(described, types, located_rows(frame, files[0], types))


def csv_rows(names: Sequence[str], csv_format: CsvFormat, operation: str) -> tuple[FileSchema, str]:
    """Columns of the rows, the operation first, and Spark SQL of a row over a record's texts (`names`, `CORRUPT`)."""
    types: FileSchema = [(name, "string") for name in (operation, *(name for name in names if name != operation))]
    values = (
        f"{sql_literal(name)}, {_operation(names, operation) if name == operation else _value(name, csv_format)}"
        for name, _ in types
    )
    return types, f"named_struct({', '.join(values)})"


_HAS_BREAK = "contains(text, '\\n')"
# Where another quote follows the one that is not closed, both are part of the value, up to the end of that line.
_IS_ODD = f"contains(text, '{_REPLACED}') or (startswith(text, '\"') and {_HAS_BREAK})"


def _texts(names: Sequence[str]) -> str:
    """Spark SQL of the values of a row, and of what of its record is not among them."""
    return ", ".join(f"coalesce({RAW}.{quoted_name(name)}, '')" for name in names)


def _may_end_in_quotes(path: str, csv_format: CsvFormat) -> bool:
    """Whether the last line has no end, and not all of its quotes are closed: no value shows that."""
    tail = b""
    with open_file(path, "rb") as file:
        if not path.endswith(".gz"):
            file.seek(max(0, file.seek(0, 2) - _TAIL))
        while more := file.read(_TAIL):
            tail = (tail + more)[-_TAIL:]
    last = tail.rpartition(b"\n")[2].decode(csv_format.encoding, "replace")
    return last.count('"') % 2 == 1 or list(_open_quotes([last], csv_format.delimiter)) != []


def _require_sound(path: str, csv_format: CsvFormat) -> None:
    """Read a file line by line. Raises IngestError for bytes that are no text, and for a quote that is not closed."""

    def texts(lines: Iterable[bytes]) -> Iterator[str]:
        for number, line in enumerate(lines, 1):
            try:
                yield line.decode(csv_format.encoding).removeprefix("\ufeff" if number == 1 else "")
            except UnicodeDecodeError as error:
                byte = f"byte 0x{line[error.start]:02x} at offset {error.start} of the line"
                hint = "declare how the file is written, files: {csv: {encoding: windows-1252}} or another, "
                hint += "or write it again under another name"
                raise IngestError(f"{path}:{number}: not {csv_format.encoding} text: {byte}", hint=hint) from error

    with open_file(path, "rb") as file:
        for number in _open_quotes(texts(file), csv_format.delimiter):
            what = "a quote that is not closed: all that follows it would be one value"
            raise IngestError(f"{path}:{number}: {what}", hint=_UNCLOSED)


def _open_quotes(lines: Iterable[str], delimiter: str) -> Iterator[int]:
    """The numbers of lines with a quote that is closed neither there nor properly in a later one.

    As Spark reads them: a quote in a value that does not begin with one means nothing, and one that neither its like
    nor the value's end follows makes all of the value a text without quotes.

    >>> list(_open_quotes(['1,"a\\n', 'b"",""c"\\n', '2,3"\\n', '"4"5,"6"\\n'], ","))
    []
    >>> list(_open_quotes(['1,"a\\n', '2,"b"\\n', '3,"c\\n'], ","))
    [1, 3]
    """
    closed = re.compile(r'(?:[^"]|"")*"(?!")')
    plain = re.compile(rf"[^{re.escape(delimiter)}\n]*(?:{re.escape(delimiter)}|\n|$)")
    ended = re.compile(rf"[^\S{re.escape(delimiter)}]*(?:{re.escape(delimiter)}|$)")
    opened: int | None = None
    for number, line in enumerate(lines, 1):
        at = 0 if '"' in line else len(line)
        while at < len(line):
            if opened is None and line[at] != '"':
                at = _end(plain, line, at)
                continue
            at, opened = (at + 1, number) if opened is None else (at, opened)
            if not (quoted := closed.match(line, at)):
                break
            if not ended.match(line, quoted.end()) and opened < number:
                yield opened
            at, opened = _end(plain, line, quoted.end()), None
    if opened is not None:
        yield opened


def _end(pattern: re.Pattern[str], line: str, at: int) -> int:
    found = pattern.match(line, at)
    return found.end() if found else len(line)


def _with_lines(numbered: DataFrame, firsts: Sequence[tuple[str, int]]) -> DataFrame:
    from pyspark.sql import functions as F

    known = literal_frame(numbered.sparkSession, firsts, "file STRING, first BIGINT")
    return numbered.join(F.broadcast(known), "file").withColumn("line", F.expr("seen - first + 1"))


def _operation(names: Sequence[str], operation: str) -> str:
    said = f"coalesce({operation}, 'load')" if operation in names else "'load'"
    # Of a query that does not need all columns, Spark reads and checks only those that it needs.
    is_whole = f"{CORRUPT} is null and length(concat_ws('', {', '.join(map(quoted_name, names))})) >= 0"
    return f"if({is_whole}, {said}, concat({sql_literal(_BROKEN)}, left({CORRUPT}, 80)))"


def _value(name: str, csv_format: CsvFormat) -> str:
    column, null = quoted_name(name), sql_literal(csv_format.null)
    if csv_format.null == "":
        return column
    return f"case when {column} is null then '' when {column} = {null} then null else {column} end"
