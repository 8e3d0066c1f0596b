"""Logs of Parquet files, as DMS writes them: each row is a message. Owns turning rows into lines, every digit kept.

The stream carries names of files only: their columns differ from table to table and from week to week.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sqlmesh_like.engine.storage import folder
from sqlmesh_like.ingest.extent import Extent, Files, files_of
from sqlmesh_like.ingest.files import POSITION, has_files, named_by_folder, stream_options
from sqlmesh_like.ingest.log import LINE_COLUMNS, ExtentOf
from sqlmesh_like.ingest.told import told
from sqlmesh_like.ingest.types import literal, normal_type, quoted

_COLUMNS = ("path as file", "unix_millis(modificationTime) as modified")


@dataclass(frozen=True)
class ParquetLog:
    """The Parquet files of a glob. A file that vanished before it was read brings nothing: its source truncated it."""

    glob: str
    max_files: int | None = None

    def stream(self, spark: SparkSession, start: str | None) -> DataFrame | None:  # noqa: ARG002 - files have no offsets
        if not has_files(self.glob):
            return None
        # Only the listing is read of it: the content is a column that nobody asks for.
        schema = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
        files = spark.readStream.format("binaryFile").schema(schema).options(**stream_options(self.max_files))
        return files.load(self.glob).selectExpr(*_COLUMNS)

    def read(self, spark: SparkSession, extent: Extent) -> DataFrame:
        assert isinstance(extent, Files)
        rows = [(path, time) for time, path in extent.files]
        return told(spark, rows, "file STRING, modified BIGINT")

    @contextmanager
    def lines(self, batch: DataFrame) -> Iterator[tuple[DataFrame, ExtentOf]]:
        spark = batch.sparkSession
        listed = [(row["modified"], row["file"]) for row in batch.collect()]
        found = [file for _, file in listed if folder(file).exists()]
        groups: defaultdict[str, list[str]] = defaultdict(list)
        for file in found:
            groups[spark.read.parquet(file).schema.json()].append(file)
        frames = [_lines(spark, files, StructType.fromJson(json.loads(text))) for text, files in groups.items()]
        empty = told(spark, [], "value STRING, file STRING, modified BIGINT, line BIGINT, log_schema STRING")
        united = reduce(DataFrame.unionByName, frames, empty)
        named = {
            **named_by_folder(self.glob),
            "position": POSITION,
            "logged_at": "modified",
            "log_key": "cast(null as string)",
        }
        yield (
            united.withColumns({name: F.expr(sql) for name, sql in named.items()}).select(*LINE_COLUMNS),
            lambda _: files_of(listed),
        )


def _lines(spark: SparkSession, files: list[str], schema: StructType) -> DataFrame:
    """Rows of files of one schema as JSON texts; every value is a text, so that none passes through a double."""
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    values = ", ".join(f"{literal(name)}, {_text(quoted(name), kind)}" for name, kind in types.items())
    row = f"to_json(named_struct({values}), map('ignoreNullFields', 'false'))"
    stated = json.dumps([[name, _type(kind)] for name, kind in types.items()])
    return (
        spark.read.schema(schema)
        .parquet(*files)
        .selectExpr(
            f"{row} as value",
            "_metadata.file_path as file",
            "unix_millis(_metadata.file_modification_time) as modified",
            "_metadata.row_index + 1 as line",
            f"{literal(stated)} as log_schema",
        )
    )


def _text(column: str, kind: str) -> str:
    if kind == "binary":
        return f"base64({column})"
    if kind.startswith(("struct", "array", "map")):
        return f"to_json({column})"
    return f"cast({column} as string)"


def _type(kind: str) -> str:
    return "timestamp" if kind == "timestamp_ntz" else normal_type(kind) or "string"
