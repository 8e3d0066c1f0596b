"""Logs of text files, one message per line. Owns reading them and numbering their lines.

A file must be complete when it appears (write elsewhere, then move it in) and is read once by its path; names that
start with `_` or `.` are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sqlmesh_like.cdc.formats.literal_frame import literal_frame
from sqlmesh_like.cdc.formats.source_types import sql_literal
from sqlmesh_like.cdc.sources.event_log import LINE_COLUMNS, ExtentOf
from sqlmesh_like.cdc.sources.offset_range import Files, OffsetRange, files_of
from sqlmesh_like.cdc.sources.row_files import FILE_POSITION
from sqlmesh_like.cdc.sources.source_check import fixed_part
from sqlmesh_like.hudi.storage import folder

_COLUMNS = (
    "value",
    "_metadata.file_path as file",
    "unix_millis(_metadata.file_modification_time) as modified",
    "_metadata.file_block_start as block",
)


@dataclass(frozen=True)
class FileLog:
    """The text files of a glob."""

    glob: str
    max_files: int | None = None

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
        # Spark numbers the rows of a partition in order, so this must come before anything moves rows to others.
        seen = batch.withColumn("seen", F.monotonically_increasing_id()).persist()
        try:
            ends = [F.min("modified").alias("modified"), F.min("seen").alias("first"), F.count("*").alias("size")]
            blocks = sorted(_Block(*row) for row in seen.groupBy("file", "block").agg(*ends).collect())
            columns = {**named_by_folder(self.glob), "log_schema": "cast(null as string)", "position": FILE_POSITION}
            columns |= {"logged_at": "modified", "log_key": "cast(null as string)"}
            numbered = _numbered(seen, blocks).withColumns({name: F.expr(sql) for name, sql in columns.items()})
            extent = files_of(list({(block.modified, block.file) for block in blocks}))
            yield numbered.select(*LINE_COLUMNS), lambda _: extent
        finally:
            seen.unpersist()


def stream_options(max_files: int | None) -> dict[str, str]:
    """Spark's options for a stream of files of any format."""
    # Spark silently skips files older than the newest by more than a week.
    return {"maxFileAge": "36500d"} | ({"maxFilesPerTrigger": str(max_files)} if max_files else {})


def has_files(glob: str) -> bool:
    return bool(folder(glob).fs.glob(folder(glob).path))


def named_by_folder(glob: str) -> dict[str, str]:
    """Spark SQL of database and table by the folders of a `file`: the first two below the glob's fixed part.

    Where the glob fixes these too, they are the two folders that contain the file.
    """
    base = fixed_part(glob).rstrip("/").rpartition("://")[2]
    below = f"split(regexp_replace(file, {sql_literal('^.*?' + _escaped(base) + '/')}, ''), '/')"
    above = "split(file, '/')"
    is_below = f"size({below}) > 2"
    return {
        "log_database": f"if({is_below}, element_at({below}, 1), try_element_at({above}, -3))",
        "log_table": f"if({is_below}, element_at({below}, 2), try_element_at({above}, -2))",
    }


def folder_names(glob: str, file: str) -> tuple[str | None, str | None]:
    """Database and table of the path of one file, by the rule of `named_by_folder`.

    >>> folder_names("/landing/*/*/*.parquet", "file:/landing/shop/user/LOAD1.parquet")
    ('shop', 'user')
    >>> folder_names("/landing/shop/user/*.parquet", "file:/landing/shop/user/LOAD1.parquet")
    ('shop', 'user')
    """
    base = fixed_part(glob).rstrip("/").rpartition("://")[2]
    above, (_, _, inside) = file.split("/"), file.partition(f"{base}/")
    below = (inside or file).split("/")
    if len(below) > 2:
        return below[0], below[1]
    return above[-3] if len(above) > 2 else None, above[-2] if len(above) > 1 else None


def _escaped(text: str) -> str:
    return "".join(f"\\{sign}" if sign in r"\.[]{}()*+?^$|" else sign for sign in text)


class _Block(NamedTuple):
    """A part into which Spark split a file for a batch. `first`: Spark's number of its first line. `size`: lines."""

    file: str
    block: int
    modified: int
    first: int
    size: int


def _numbered(lines: DataFrame, blocks: list[_Block]) -> DataFrame:
    """Add the 1-based `line`, which must be the same in every run, however Spark splits files into blocks."""
    before: dict[str, int] = {}
    shifts = []
    for block in blocks:
        shifts.append((block.file, block.block, before.get(block.file, 0) - block.first + 1))
        before[block.file] = before.get(block.file, 0) + block.size
    known = literal_frame(lines.sparkSession, shifts, "file STRING, block BIGINT, shift BIGINT")
    return lines.join(F.broadcast(known), ["file", "block"]).withColumn("line", F.expr("seen + shift"))
