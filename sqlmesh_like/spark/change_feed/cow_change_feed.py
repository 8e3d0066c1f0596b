"""The change feed: pinned snapshots and changes of Hudi tables as Spark frames.

Owns how files become frames; `hudi.reading` says which files, with which signs and joins, and why. Merge-on-read tables
have their own feed (`mor_change_feed`); `change_feed` chooses.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sqlmesh_like.hudi.commits import Slice
from sqlmesh_like.hudi.file_schemas import paths_by_schema
from sqlmesh_like.hudi.reading.change_plan import (
    RECORD,
    ROW,
    Comparison,
    LoggedChange,
    plan_change,
    plan_comparison,
    plan_logs,
)
from sqlmesh_like.hudi.reading.rows_plan import BaseFiles, RowKey, Source, plan_rows, stored_schema
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import COMMIT_TIME, KEY, PARTITION_PATH, RECORD_KEY, SEQUENCE, WEIGHT, Schema, visible
from sqlmesh_like.spark.change_feed.logged_changes import FEW, read_logs
from sqlmesh_like.spark.frames.type_promotion import promoted_type

_META_COLUMNS = (COMMIT_TIME, SEQUENCE, RECORD_KEY, PARTITION_PATH)

_log = logging.getLogger("sqlmesh_like.spark")


class CopyOnWriteFeed:
    """Reads one table's rows as of pinned frontiers (copy-on-write; grain: one row per record)."""

    def __init__(self, session: SparkSession, timeline: Timeline) -> None:
        self._session = session
        self._timeline = timeline

    def current(self, frontier: str, partitions: Collection[str] | None = None, *, hidden: bool = False) -> DataFrame:
        """Rows as of a frontier: visible columns (`hidden`: all but Hudi's) and `_sml_key`.

        `partitions`: read only the base files of these partition paths. Raises RetryableError where files are gone.
        """
        schema = self.schema(frontier)
        names = _reader_columns(schema, hidden)
        plan = plan_rows(self._timeline, frontier, names, partitions)
        return self._rows(plan.source, schema, _columns(names, plan.key))

    def changes(self, start: str, end: str) -> DataFrame:
        """Signed rows between two frontiers: visible columns, `_sml_key`, `_sml_weight`.

        A row rewritten with the same content appears with both signs, and one rewritten by several commits once per
        commit and sign: consumers net by the columns they use. Raises RetryableError where files are gone.
        """
        schema = self.schema(end)
        return self._change(plan_change(self._timeline, start, end, _reader_columns(schema)), schema)

    def logged_changes(self, start: str, end: str) -> DataFrame:
        """The change from the logs of its commits. Raises NotLoggedError where these do not have all of it."""
        schema = self.schema(end)
        return self._change(plan_logs(self._timeline, start, end, _reader_columns(schema)), schema)

    def compared_changes(self, start: str, end: str) -> DataFrame:
        """The change from comparing the file groups that commits touched at `start` and at `end`."""
        return self._change(plan_comparison(self._timeline, start, end), self.schema(end))

    def schema(self, frontier: str) -> Schema:
        """All columns as of a frontier, including hidden ones."""
        return stored_schema(self._timeline, frontier)

    def _change(self, plan: LoggedChange | Comparison, schema: Schema) -> DataFrame:
        if isinstance(plan, LoggedChange):
            return read_logs(self._session, self._timeline, plan.logs, schema)
        if plan.why:
            _log.info("%s: file slices are compared: %s", self._timeline.uri, plan.why)
        removed, added = self._removed_and_added(plan, schema)
        columns = _columns(_reader_columns(schema), plan.key)
        return reduce(
            DataFrame.unionByName,
            (
                frame.select(*columns, F.lit(sign).cast("bigint").alias(WEIGHT))
                for frame, sign in ((removed, -1), (added, 1))
            ),
        )

    def _removed_and_added(self, plan: Comparison, schema: Schema) -> tuple[DataFrame, DataFrame]:
        old, new = (self._rows(source, schema) for source in (plan.old, plan.new))
        if plan.since is None:
            return old, new
        added = new.where(F.col(COMMIT_TIME) > plan.since)
        if plan.is_superseded:
            return old.join(added.select(*RECORD), list(RECORD), "left_semi"), added
        # Otherwise all of `old` is looked for in `new`: two joins, each over some of the files, read more of `new`.
        return _lacking(old, new, list(ROW), plan.most_left), added

    def _rows(self, source: Source, schema: Schema, columns: Collection[SparkColumn] = ()) -> DataFrame:
        """Rows as these columns; without any as `typed_frame`."""
        assert isinstance(source, BaseFiles), "the table is copy-on-write"
        frame = self._read_slices(source.slices, schema)
        return frame.select(*columns) if columns else frame

    def _read_slices(self, slices: Iterable[Slice], schema: Schema) -> DataFrame:
        """Rows of base files as `schema`.

        Files of different writer schemas are read separately and cast: no single reader schema can read a column that
        is int in some files and bigint in others, or has two decimal types.
        """
        empty = self._empty(schema)
        frames = [
            self._session.read.schema(_ddl(written)).parquet(*(f"{self._timeline.uri}/{path}" for path in paths))
            for written, paths in paths_by_schema(self._timeline, slices).items()
        ]
        wanted = empty.schema.fields
        alike = [
            frame.select(*[promoted_type(frame, field.name, field.dataType) for field in wanted]) for frame in frames
        ]
        return reduce(DataFrame.unionByName, alike) if alike else empty

    def _empty(self, schema: Schema) -> DataFrame:
        # From a range: `createDataFrame` without rows would start a Python worker.
        return self._session.range(0).select(
            *[F.lit(None).cast(type_).alias(name) for name, type_ in typed_frame(schema)]
        )


def typed_frame(schema: Schema) -> list[tuple[str, str]]:
    """Names and types of the meta columns that are read, and of all other columns of the schema."""
    others = [(column.name, column.type or "string") for column in schema if column.name not in _META_COLUMNS]
    return [*[(name, "string") for name in _META_COLUMNS], *others]


def _ddl(schema: Schema) -> str:
    return ", ".join(f"`{name}` {type_}" for name, type_ in typed_frame(schema))


def _reader_columns(schema: Schema, hidden: bool = False) -> list[str]:
    """Names of the columns that readers get: visible ones (`hidden`: all but Hudi's) and the row's key, at the end."""
    names = [column.name for column in (schema if hidden else visible(schema))]
    return [*(name for name in names if not name.startswith("_hoodie_") and name != KEY), KEY]


def _columns(names: Iterable[str], key: RowKey) -> list[SparkColumn]:
    row_key = F.col(KEY) if key.is_stored else _composed_key(key)
    return [row_key.alias(KEY) if name == KEY else F.col(f"`{name}`") for name in names]


def _composed_key(key: RowKey) -> SparkColumn:
    """The length distinguishes partition `a` with key `b/c` from partition `a/b` with key `c`."""
    path = F.coalesce(F.col(PARTITION_PATH), F.lit(""))
    number = [F.col(SEQUENCE)] if key.has_number else []
    return F.concat_ws("/", F.length(path).cast("string"), path, F.col(RECORD_KEY), *number)


def _lacking(rows: DataFrame, others: DataFrame, by: list[str], most: int | None) -> DataFrame:
    """The rows without a match in `others` on the columns `by`. `most`: how many there can be, None: unknown.

    Only these columns are compared, then the rows are fetched: shuffling whole rows takes many times as long.
    """
    join = rows.select(*by).join(others.select(*by), by, "left_anti")
    return rows.join(F.broadcast(join) if most is not None and most <= FEW else join, by, "left_semi")
