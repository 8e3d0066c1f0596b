"""Parquet files of a batch, with typed rows. Owns reading them as Spark frames; decides nothing.

`stream.local_rows` reads a few of them without Spark.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlmesh_like.cdc.formats.columnar import RAW, FileSchema, stated
from sqlmesh_like.cdc.formats.source_types import quoted_name, sql_literal
from sqlmesh_like.cdc.frames import Frame
from sqlmesh_like.cdc.schema.ods_layout import LINE_DIGITS
from sqlmesh_like.errors import IngestError
from sqlmesh_like.hudi.storage import folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG_COLUMNS = ("log_database", "log_table", "log_schema", "log_key")
"""The database, table, columns and key of a line that the log itself states (or NULL)."""
_OF_FILE = "lpad(modified, 13, '0'), '|', file, '|'"
FILE_START = f"concat({_OF_FILE})"
"""Spark SQL of the position before a file's lines and after those of earlier files, over `modified` and `file`."""
FILE_POSITION = f"concat({_OF_FILE}, lpad(line, {LINE_DIGITS}, '0'))"
"""Spark SQL of a line's position in a log of files, over `modified`, `file` and `line`."""
_AT_ONCE = 8
_SMALL = 4 * 1024 * 1024
"""Bytes that one task reads in less time than starting a second one takes."""


@dataclass(frozen=True)
class Listed:
    """A listed file: path, modification time (ms since 1970), and database and table by its folders."""

    path: str
    modified: int
    database: str | None
    table: str | None


@dataclass(frozen=True)
class RowFile:
    """A file with what its footer states. `schema`: Spark's, as JSON."""

    listed: Listed
    rows: int
    bytes: int
    schema: str


@dataclass(frozen=True)
class RowFiles:
    """Files of one source table that have the same columns.

    `frame` (grain: row): `RAW`, the row's location (`file`, `line`, `position`, `modified`) and `LOG_COLUMNS`.
    """

    files: tuple[RowFile, ...]
    schema: FileSchema
    frame: Frame

    @property
    def source(self) -> tuple[str | None, None, str | None]:
        """Database, schema and table at the source."""
        return (self.files[0].listed.database, None, self.files[0].listed.table)

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)


def require_distinct(path: str, names: Sequence[str]) -> None:
    """Raise IngestError where two columns of a file have one name for Spark, which compares them without case.

    >>> require_distinct("a.csv", ["id", "name"])
    >>> require_distinct("a.csv", ["id", "Name", "name"])
    Traceback (most recent call last):
    sqlmesh_like.errors.IngestError: a.csv has the column 'name' twice: names are compared without case
      rename one of them, and write the file again under another name
    """
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            hint = "rename one of them, and write the file again under another name"
            raise IngestError(f"{path} has the column {name!r} twice: names are compared without case", hint=hint)
        seen.add(name.lower())


class _Footers:
    """Reads the footers of files without a Spark job: to infer schemas, Spark would start one for each file."""

    def __init__(self, spark: SparkSession) -> None:
        jvm = spark._jvm
        assert jvm is not None
        # Kept, because Py4J looks up a class every time it is named.
        hadoop, parquet = jvm.org.apache.parquet.hadoop, jvm.org.apache.spark.sql.execution.datasources.parquet
        self._path, self._footer = jvm.org.apache.hadoop.fs.Path, hadoop.Footer
        self._read, self._schema = hadoop.ParquetFileReader.readFooter, parquet.ParquetFileFormat.readSchemaFromFooter
        state = spark._jsparkSession.sessionState()
        self._settings, self._converter = state.newHadoopConf(), parquet.ParquetToSparkSchemaConverter(state.conf())

    def described(self, listed: Listed) -> RowFile | None:
        """Read the footer of a file; None where it is gone. Raises IngestError where Spark cannot read the file."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        from sqlmesh_like.spark.jvm.spark_errors import first_line

        place = folder(listed.path)
        try:
            size = int(str(place.fs.info(place.path)["size"]))
        except FileNotFoundError:
            return None
        at = self._path(listed.path)
        try:
            footer = self._read(self._settings, at)
            schema = str(self._schema(self._footer(at, footer), self._converter).json())
        except (Py4JJavaError, PySparkException) as error:
            lacking = "TIME, timestamps in nanoseconds, decimals of more than 38 digits"
            hint = (
                f"remove it, or write it again: complete before it is there, without types that Spark lacks ({lacking})"
            )
            raise IngestError(f"{listed.path} is not read by Spark: {first_line(error)}", hint=hint) from error
        rows = sum(int(block.getRowCount()) for block in footer.getBlocks())
        return RowFile(listed, rows, size, schema)


def row_files(spark: SparkSession, listed: Sequence[Listed]) -> list[RowFiles]:
    """Group files by table and columns, without those that are gone."""
    footers = _Footers(spark)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        result = list(pool.map(footers.described, listed))
    groups: defaultdict[tuple[str | None, str | None, str], list[RowFile]] = defaultdict(list)
    for file in result:
        if file is not None:
            require_distinct(file.listed.path, [field["name"] for field in json.loads(file.schema)["fields"]])
            groups[file.listed.database, file.listed.table, file.schema].append(file)
    return [_read_row_files(spark, files) for files in groups.values()]


def _read_row_files(spark: SparkSession, files: Sequence[RowFile]) -> RowFiles:
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(json.loads(files[0].schema))
    types = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    frame = (
        spark.read.schema(schema)
        .parquet(*(file.listed.path for file in files))
        .selectExpr(
            f"struct({', '.join(quoted_name(name) for name, _ in types)}) as {RAW}",
            "_metadata.file_path as file",
            "unix_millis(_metadata.file_modification_time) as modified",
            "_metadata.row_index + 1 as line",
        )
    )
    if sum(file.bytes for file in files) < _SMALL:
        frame = frame.coalesce(1)
    return RowFiles(tuple(files), types, located_rows(frame, files[0].listed, types))


def located_rows(frame: Frame, listed: Listed, schema: FileSchema) -> Frame:
    """Add `LOG_COLUMNS` and `position` to rows (`RAW`, `file`, `modified`, `line`) of files such as the listed one."""
    said = dict.fromkeys(LOG_COLUMNS, "cast(null as string)")
    named = {"log_database": listed.database, "log_table": listed.table, "log_schema": stated(schema)}
    said |= {name: sql_literal(value) for name, value in named.items() if value is not None}
    return frame.selectExpr("*", *(f"{sql} as {name}" for name, sql in said.items()), f"{FILE_POSITION} as position")
