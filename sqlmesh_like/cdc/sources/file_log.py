"""Logs of text files, one message per line. Owns reading them and numbering their lines.

A file must be complete when it appears (write elsewhere, then move it in) and is read once by its path; names that
start with `_` or `.` are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple
from urllib.parse import unquote

from sqlmesh_like.cdc.frames import literal_frame
from sqlmesh_like.cdc.sources.event_log import LINE_COLUMNS, ExtentOf
from sqlmesh_like.cdc.sources.offset_range import Files, OffsetRange, files_of
from sqlmesh_like.cdc.sources.route import declares
from sqlmesh_like.cdc.sources.row_files import FILE_POSITION
from sqlmesh_like.cdc.sources.table_folders import folder_names
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.project.nodes import SourceTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = (
    "value",
    "_metadata.file_path as file",
    "unix_millis(_metadata.file_modification_time) as modified",
    "_metadata.file_block_start as block",
)


@dataclass(frozen=True)
class FileLog:
    """The text files of a glob. `tables`: those to which their folders may belong."""

    message: ClassVar[str] = "value"
    key: ClassVar[str] = "cast(null as string)"
    """Spark SQL of a line's message and of its key, over its text (`value`)."""

    glob: str
    max_files: int | None = None
    tables: tuple[SourceTable, ...] = ()

    def stream(self, spark: SparkSession, start: str | None) -> DataFrame | None:  # noqa: ARG002 - files have no offsets
        if not has_files(self.glob):
            return None
        stream = spark.readStream.format("text").options(**stream_options(self.max_files))
        return stream.load(self.glob).selectExpr(*_COLUMNS)

    def read(self, spark: SparkSession, extent: OffsetRange) -> DataFrame:
        assert isinstance(extent, Files)
        return spark.read.format("text").load([unquote(path) for _, path in extent.files]).selectExpr(*_COLUMNS)

    @contextmanager
    def lines(self, batch: DataFrame) -> Iterator[tuple[DataFrame, ExtentOf]]:
        from pyspark.sql import functions as F

        # Spark numbers the rows of a partition in order, so this must come before anything moves rows to others.
        seen = batch.withColumn("seen", F.monotonically_increasing_id()).persist()
        try:
            ends = [F.min("modified").alias("modified"), F.min("seen").alias("first"), F.count("*").alias("size")]
            blocks = sorted(_Block(*row) for row in seen.groupBy("file", "block").agg(*ends).collect())
            columns = line_columns(self) | {"log_schema": "cast(null as string)"}
            numbered = self._with_line_numbers(seen, blocks).withColumns(
                {name: F.expr(sql) for name, sql in columns.items()}
            )
            extent = files_of(list({(block.modified, block.file) for block in blocks}))
            yield numbered.select(*LINE_COLUMNS), lambda _: extent
        finally:
            seen.unpersist()

    def _with_line_numbers(self, lines: DataFrame, blocks: list[_Block]) -> DataFrame:
        """Add the 1-based `line`, the same in every run, however Spark splits files; and what its folders name."""
        from pyspark.sql import functions as F

        before: dict[str, int] = {}
        rows = []
        for block in blocks:
            names = folder_names(self.glob, unquote(block.file), declares(self.tables))
            rows.append((block.file, block.block, before.get(block.file, 0) - block.first + 1, *names))
            before[block.file] = before.get(block.file, 0) + block.size
        columns = "file STRING, block BIGINT, shift BIGINT, log_database STRING, log_table STRING"
        known = literal_frame(lines.sparkSession, rows, columns)
        return lines.join(F.broadcast(known), ["file", "block"]).withColumn("line", F.expr("seen + shift"))


@dataclass(frozen=True)
class SpoolLog(FileLog):
    """The segments of a spool (`database.spool`): JSON has no tab of its own, one separates message and key."""

    message: ClassVar[str] = "substring_index(value, '\\t', 1)"
    key: ClassVar[str] = "if(contains(value, '\\t'), substring_index(value, '\\t', -1), null)"


def line_columns(log: FileLog) -> dict[str, str]:
    """Spark SQL of columns of `LINE_COLUMNS` over a line's text (`value`), `file`, `modified` and `line`."""
    return {"log_key": log.key, "value": log.message, "position": FILE_POSITION, "logged_at": "modified"}


def stream_options(max_files: int | None) -> dict[str, str]:
    """Spark's options for a stream of files of any format."""
    # Spark silently skips files older than the newest by more than a week.
    return {"maxFileAge": "36500d"} | ({"maxFilesPerTrigger": str(max_files)} if max_files else {})


def has_files(glob: str) -> bool:
    return bool(folder(glob).fs.glob(folder(glob).path))


class _Block(NamedTuple):
    """A part into which Spark split a file for a batch. `first`: Spark's number of its first line. `size`: lines."""

    file: str
    block: int
    modified: int
    first: int
    size: int
