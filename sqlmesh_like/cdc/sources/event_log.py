"""Where a source's events are read from.

Owns the interface of all logs; `file_log`, `parquet_log` and `kafka_log` implement it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeAlias

from sqlmesh_like.cdc.frames import Frame
from sqlmesh_like.cdc.sources.offset_range import OffsetRange
from sqlmesh_like.cdc.sources.row_files import LOG_COLUMNS, RowFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LINE_COLUMNS = ("value", "file", "line", "position", "logged_at", *LOG_COLUMNS)
"""A line of a log: the message's text; its location (file or topic/partition, and line number from 1 or offset); its
position, a text that sorts in the log's order; when it was logged (ms since 1970, or NULL); what the log itself says of
its database, table, columns and key (or NULL)."""

ExtentOf = Callable[["Frame | None"], OffsetRange]
"""Gives the part of the log that a batch covers, from all its lines (`file`, `line`); None: for files of rows."""

LogLines: TypeAlias = "Frame | list[RowFiles]"
"""Lines (`LINE_COLUMNS`; grain: line), or files whose rows have types of their own."""


class Log(Protocol):
    """One source's log. Reading a part of it again gives the same lines with the same positions."""

    def stream(self, spark: SparkSession, start: str | None) -> DataFrame | None:
        """The unbounded log, in the columns of its kind; None where there is nothing to read yet.

        `start`: where a first run begins (earliest, latest or offsets as JSON); None: as the source declares.
        """
        ...

    def read(self, spark: SparkSession, extent: OffsetRange) -> DataFrame:
        """Read a part of the log again, in the columns of `stream`."""
        ...

    def lines(self, batch: DataFrame) -> AbstractContextManager[tuple[LogLines, ExtentOf]]:
        """The lines of a batch while the context is open, and a function that gives their part of the log.

        Each use may read the log again: cache lines that are used twice.
        """
        ...
