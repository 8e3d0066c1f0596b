"""Parquet files that a batch brings, with rows that have types. Owns reading them as Spark frames; decides nothing."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from sqlmesh_like.engine.storage import folder
from sqlmesh_like.ingest.columnar import RAW, FileSchema, stated
from sqlmesh_like.ingest.types import literal, quoted

LOG_COLUMNS = ("log_database", "log_table", "log_schema", "log_key")
"""What a log itself says of a line's database, table, columns and key (or NULL)."""
_AT_ONCE = 8
_SMALL = 4 * 1024 * 1024
"""Bytes that one task reads faster than two could be started for."""


@dataclass(frozen=True)
class RowFile:
    """One file: whose rows it holds by its folder, how many, when it was written (ms since 1970), its Spark schema."""

    path: str
    modified: int
    database: str | None
    table: str | None
    rows: int
    bytes: int
    schema: str


@dataclass(frozen=True)
class RowFiles:
    """Files of one table of a source that have the same columns.

    `frame` (grain: row): `RAW`, where the row stands (`file`, `line`, `position`) and what the log says of it.
    """

    files: tuple[RowFile, ...]
    schema: FileSchema
    frame: DataFrame

    @property
    def source(self) -> tuple[str | None, None, str | None]:
        """Database, schema and table at the source."""
        return (self.files[0].database, None, self.files[0].table)

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)


def described(spark: SparkSession, path: str, modified: int, names: Mapping[str, str | None]) -> RowFile | None:
    """What a file's footer says, with no Spark job; None where it is gone."""
    place = folder(path)
    try:
        size = int(str(place.fs.info(place.path)["size"]))
    except FileNotFoundError:
        return None
    session, jvm = spark._jsparkSession, spark._jvm
    assert jvm is not None
    parquet = jvm.org.apache.spark.sql.execution.datasources.parquet
    hadoop = jvm.org.apache.parquet.hadoop
    at = jvm.org.apache.hadoop.fs.Path(path)
    footer = hadoop.ParquetFileReader.readFooter(session.sessionState().newHadoopConf(), at)
    converter = parquet.ParquetToSparkSchemaConverter(session.sessionState().conf())
    schema = parquet.ParquetFileFormat.readSchemaFromFooter(hadoop.Footer(at, footer), converter)
    rows = sum(block.getRowCount() for block in footer.getBlocks())
    return RowFile(path, modified, names["log_database"], names["log_table"], rows, size, str(schema.json()))


def row_files(spark: SparkSession, listed: Sequence[tuple[int, str, Mapping[str, str | None]]]) -> list[RowFiles]:
    """Files (modification time, path, names by their folders) by table and columns, but those that are gone."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(lambda file: described(spark, file[1], file[0], file[2]), listed))
    groups: defaultdict[tuple[str | None, str | None, str], list[RowFile]] = defaultdict(list)
    for file in found:
        if file is not None:
            groups[file.database, file.table, file.schema].append(file)
    return [_read(spark, files) for files in groups.values()]


def _read(spark: SparkSession, files: Sequence[RowFile]) -> RowFiles:
    schema = StructType.fromJson(json.loads(files[0].schema))
    types = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    said = dict.fromkeys(LOG_COLUMNS, "cast(null as string)")
    named = {"log_database": files[0].database, "log_table": files[0].table, "log_schema": stated(types)}
    said |= {name: literal(value) for name, value in named.items() if value is not None}
    frame = (
        spark.read.schema(schema)
        .parquet(*(file.path for file in files))
        .selectExpr(
            f"struct({', '.join(quoted(name) for name, _ in types)}) as {RAW}",
            "_metadata.file_path as file",
            "unix_millis(_metadata.file_modification_time) as modified",
            "_metadata.row_index + 1 as line",
            *(f"{sql} as {name}" for name, sql in said.items()),
        )
    )
    if sum(file.bytes for file in files) < _SMALL:
        frame = frame.coalesce(1)
    return RowFiles(tuple(files), types, frame)
