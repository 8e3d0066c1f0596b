"""The changes of inputs, each read once per run and shared by all its readers. Owns caching and releasing them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

SMALL_CHANGE = 100_000
"""Up to this many written rows, a change is cached as one partition: grouping and netting it need no shuffle."""


@dataclass(frozen=True)
class Span:
    """A change: of the table at `uri` between two frontiers, limited to some columns (None: all)."""

    uri: str
    start: str
    end: str
    columns: tuple[str, ...] | None


class SharedChanges:
    """Changes that this run has read. Safe for use by several threads and sessions of one Spark."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._views: dict[Span, tuple[str, DataFrame]] = {}

    def frame(self, session: SparkSession, span: Span, pending: int, read: Callable[[], DataFrame]) -> DataFrame:
        """The change as a frame of `session`. `read` is called the first time; `pending`: upper bound of its rows."""
        with self._lock:
            if span not in self._views:
                frame = read()
                cached = (frame.repartition(1) if pending <= SMALL_CHANGE else frame).persist()
                # Only global views are visible in the sessions of all readers.
                view = f"_sml_change_{uuid4().hex}"
                cached.createOrReplaceGlobalTempView(view)
                self._views[span] = (view, cached)
            return session.table(f"global_temp.{self._views[span][0]}")

    def release(self) -> None:
        """Drop all cached changes."""
        with self._lock:
            for view, frame in self._views.values():
                frame.unpersist()
                frame.sparkSession.catalog.dropGlobalTempView(view)
            self._views.clear()
