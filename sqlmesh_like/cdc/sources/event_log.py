"""Where a source's events are read from.

Owns the interface of all logs; `file_log`, `parquet_log` and `kafka_log` implement it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from sqlmesh_like.cdc.sources.offset_range import OffsetRange
from sqlmesh_like.cdc.sources.row_files import LOG_COLUMNS, RowFiles

LINE_COLUMNS = ("value", "file", "line", "position", "logged_at", *LOG_COLUMNS)
"""A line of a log: the message's text; where it stands (file or topic/partition, and line number from 1 or offset); its
place in the log as text in the log's order; when the log got it (ms since 1970, or NULL); what the log itself says of
its database, table, columns and key (or NULL)."""

ExtentOf = Callable[[DataFrame | None], OffsetRange]
"""Which part of the log lines are (their `file` and `line`), where these are all lines of a batch; None: of files."""

LogLines = DataFrame | list[RowFiles]
"""Lines (`LINE_COLUMNS`; grain: line), or files of rows that have types of their own."""


class Log(Protocol):
    """One source's log. Reading a part of it again gives the same lines with the same positions."""

    def stream(self, spark: SparkSession, start: str | None) -> DataFrame | None:
        """The unbounded log, in columns of its own; None where there is nothing to read yet.

        `start` says where a first run begins (earliest, latest or offsets as JSON); None: as the source is declared.
        """
        ...

    def read(self, spark: SparkSession, extent: OffsetRange) -> DataFrame:
        """That part of the log once more, in the columns of the stream."""
        ...

    def lines(self, batch: DataFrame) -> AbstractContextManager[tuple[LogLines, ExtentOf]]:
        """The lines of a batch, while the context is open; and what part of the log they are.

        Reading them may cost a look at the log: who uses them twice keeps them in memory first.
        """
        ...
