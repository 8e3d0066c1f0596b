"""Logs of Parquet and CSV files, of DMS or of plain rows: each row is a message.

Owns the stream of files; `row_files` and `csv_files` read rows.

The stream contains only the names of files, because their columns differ between tables and over time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlmesh_like.cdc.formats.dms import OP
from sqlmesh_like.cdc.frames import literal_frame
from sqlmesh_like.cdc.sources.csv_files import csv_row_files
from sqlmesh_like.cdc.sources.event_log import ExtentOf
from sqlmesh_like.cdc.sources.file_log import has_files, stream_options
from sqlmesh_like.cdc.sources.offset_range import Files, OffsetRange, files_of
from sqlmesh_like.cdc.sources.route import declares
from sqlmesh_like.cdc.sources.row_files import Listed, RowFiles, row_files
from sqlmesh_like.cdc.sources.table_folders import folder_names
from sqlmesh_like.project.nodes import CsvFormat, SourceTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = ("path as file", "unix_millis(modificationTime) as modified")


@dataclass(frozen=True)
class ParquetLog:
    """The Parquet files of a glob. `tables`: those to which their folders may belong.

    A file that vanished before it was read is skipped: its source truncated it.
    """

    glob: str
    max_files: int | None = None
    tables: tuple[SourceTable, ...] = ()

    def stream(self, spark: SparkSession, start: str | None) -> DataFrame | None:  # noqa: ARG002 - files have no offsets
        if not has_files(self.glob):
            return None
        # Only the listing is read: the column with the content is not selected.
        schema = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
        files = spark.readStream.format("binaryFile").schema(schema).options(**stream_options(self.max_files))
        return files.load(self.glob).selectExpr(*_COLUMNS)

    def read(self, spark: SparkSession, extent: OffsetRange) -> DataFrame:
        assert isinstance(extent, Files)
        rows = [(path, time) for time, path in extent.files]
        return literal_frame(spark, rows, "file STRING, modified BIGINT")

    @contextmanager
    def lines(self, batch: DataFrame) -> Iterator[tuple[list[RowFiles], ExtentOf]]:
        listed = [(row["modified"], row["file"]) for row in batch.collect()]
        named = [self.listed(file, modified) for modified, file in listed]
        yield self.rows(batch.sparkSession, named), lambda _: files_of(listed)

    def listed(self, path: str, modified: int) -> Listed:
        """A file with the database and table that its folders name."""
        return Listed(path, modified, *folder_names(self.glob, path, declares(self.tables)))

    def rows(self, spark: SparkSession, listed: list[Listed]) -> list[RowFiles]:
        """The rows of these files."""
        return row_files(spark, listed)


@dataclass(frozen=True)
class CsvLog(ParquetLog):
    """The CSV files of a glob, written as `csv` says. `operation`: the column that says what happened to a row."""

    csv: CsvFormat = field(default_factory=CsvFormat)
    operation: str = OP

    def rows(self, spark: SparkSession, listed: list[Listed]) -> list[RowFiles]:
        return csv_row_files(spark, listed, self.csv, self.columns_of, self.operation)

    def columns_of(self, file: Listed) -> tuple[str, ...] | None:
        """The declared columns of a file's table, in their order; None where it is not declared."""
        own = (table for table in self.tables if declares((table,))(file.database, file.table))
        return next((tuple(column.name for column in table.columns) for table in own), None)
