"""Rows of a table for readers outside the lake. Owns the files that they pass through, not what readers do with them.

Spark's tasks write Parquet files below the warehouse, where every machine of a cluster can write; they are read back in
batches, with their types. So neither the driver's JVM nor Python ever holds more than a few thousand rows.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyarrow import dataset
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from sqlmesh_like.delta.actions import BEFORE, COPIES
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import IS_DELETED, KEY, WEIGHT
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.run.ports import Export
from sqlmesh_like.spark.change_feed.change_feed import change_feed
from sqlmesh_like.spark.writer.upsert import net_rows

GONE = "_sml_deleted"
_BATCH_ROWS = 10_000
_LEFT_OVER_SECONDS = 24 * 3600
"""Age from which a staging folder counts as left over by a killed process."""


@contextmanager
def export_rows(session: SparkSession, state: TableState, since: str | None, staging: str) -> Iterator[Export]:
    """See `ChangeExporter.export`."""
    frame = _rows(session, state, since)
    place = folder(f"{staging}/{int(time.time())}-{uuid.uuid4().hex}")
    _remove_left_overs(staging)
    try:
        frame.write.parquet(place.uri)
        paths = sorted(f"{place.path}/{name}" for name in place.files() if name.endswith(".parquet"))
        files = dataset.dataset(paths, format="parquet", filesystem=place.fs) if paths else None
        yield Export(since is None, files.schema if files else to_arrow_schema(frame.schema), lambda: _batches(files))
    finally:
        if place.exists():
            place.fs.rm(place.path, recursive=True)


def _batches(files: Any) -> Iterator[Any]:
    if files is not None:
        yield from files.to_batches(batch_size=_BATCH_ROWS, batch_readahead=2, fragment_readahead=1)


def _rows(session: SparkSession, state: TableState, since: str | None) -> DataFrame:
    assert state.frontier is not None
    feed = change_feed(session, Timeline(state.uri))
    if since is None:
        return _with_short_keys(feed.current(state.frontier), F.lit(False))
    return _with_short_keys(net_rows(_net_weights(feed.changes(since, state.frontier))), F.col(IS_DELETED))


def _net_weights(signed: DataFrame) -> DataFrame:
    """Sum weights of equal rows and drop zeros: a row that was added and removed in between is not a change."""
    names = [F.col(f"`{name}`") for name in signed.columns if name != WEIGHT]
    return signed.groupBy(*names).agg(F.sum(WEIGHT).alias(WEIGHT)).where(F.col(WEIGHT) != 0)


def _with_short_keys(frame: DataFrame, gone: SparkColumn) -> DataFrame:
    """Columns, a key of fixed length (databases only index short ones), and whether the row is gone."""
    names = [F.col(f"`{name}`") for name in frame.columns if name not in (KEY, IS_DELETED, COPIES, BEFORE)]
    return frame.select(*names, F.sha2(F.col(KEY), 256).substr(1, 32).alias(KEY), gone.alias(GONE))


def _remove_left_overs(staging: str) -> None:
    place = folder(staging)
    for name in place.names():
        started = name.partition("-")[0]
        if started.isdigit() and time.time() - int(started) > _LEFT_OVER_SECONDS:
            place.fs.rm(f"{place.path}/{name}", recursive=True)
