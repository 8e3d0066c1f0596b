"""The change feed of merge-on-read tables. Owns the frames of change logs over base files, and Hudi's as-of reads.

Slices with log files that no change logs stand for are left to Hudi's reader: log files have Hudi's own format and
merge by rules of the table.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sqlmesh_like.hudi.history import path_columns
from sqlmesh_like.hudi.reading.released_view import NULL_IN_PATHS, PLAIN_PATH, options_from_data
from sqlmesh_like.hudi.reading.rows_plan import BaseFiles, Overlay, SliceMerge, Source
from sqlmesh_like.names import WEIGHT, Schema
from sqlmesh_like.spark.change_feed.cow_change_feed import CopyOnWriteFeed
from sqlmesh_like.spark.change_feed.logged_changes import FEW, read_logs
from sqlmesh_like.spark.frames.type_promotion import promoted_type

MAX_PARTITIONS = 2_000
"""Above this many partitions all are read, because their list becomes part of the query."""

_NUMBER, _IDENTITY = "_sml_number", "_sml_at"
_log = logging.getLogger("sqlmesh_like.spark")
_IN_PATHS = ("string", "int", "bigint", "date", "boolean", "decimal", "float", "double")


class MergeOnReadFeed(CopyOnWriteFeed):
    """Reads one merge-on-read table's rows as of pinned frontiers (grain: one row per record)."""

    def _rows(self, source: Source, schema: Schema, columns: Collection[SparkColumn] = ()) -> DataFrame:
        match source:
            case BaseFiles():
                return super()._rows(source, schema, columns)
            case Overlay():
                return self._overlaid_rows(source, schema, columns)
            case SliceMerge():
                _log.info("%s: log files are merged: %s", self._timeline.uri, source.why)
                frame = self._as_of(source, schema)
                return frame.select(*columns) if columns else frame

    def _overlaid_rows(self, overlay: Overlay, schema: Schema, columns: Collection[SparkColumn]) -> DataFrame:
        whole, changed = (self._read_slices(some, schema).select(*columns) for some in (overlay.whole, overlay.changed))
        numbered = [
            read_logs(self._session, self._timeline, [log], schema).withColumn(_NUMBER, F.lit(number))
            for number, log in enumerate(overlay.logs)
        ]
        row = F.struct(*(F.col(f"`{name}`") for name in (*changed.columns, WEIGHT)))
        newest = F.max_by(row, F.struct(_NUMBER, WEIGHT)).alias("row")
        identity = [F.col(f"`{name}`").alias(f"{_IDENTITY}{n}") for n, name in enumerate(overlay.identity)]
        logged = reduce(DataFrame.unionByName, numbered).groupBy(*identity).agg(newest)
        same = [changed[f"`{name}`"].eqNullSafe(logged[f"{_IDENTITY}{n}"]) for n, name in enumerate(overlay.identity)]
        keys = F.broadcast(logged) if sum(log.rows for log in overlay.logs) <= FEW else logged
        rest = changed.join(keys, reduce(SparkColumn.__and__, same), "left_anti")
        return whole.unionByName(rest).unionByName(logged.where(f"row.{WEIGHT} > 0").select("row.*").drop(WEIGHT))

    def _as_of(self, merge: SliceMerge, schema: Schema) -> DataFrame:
        """Rows that Hudi's reader merges, as `schema`: of at least the partitions that are needed."""
        if merge.partitions is not None and not merge.partitions:
            return self._empty(schema)
        reader = self._session.read.format("hudi").option("as.of.instant", merge.instant)
        frame = self._in_partitions(
            reader.options(**options_from_data(self._timeline)).load(self._timeline.uri), schema, merge.partitions
        )
        wanted = self._empty(schema).schema.fields
        refused = self._errors_of_misread_columns(schema)
        return frame.select(
            *[refused[f.name] if f.name in refused else promoted_type(frame, f.name, f.dataType) for f in wanted]
        )

    def _in_partitions(self, frame: DataFrame, schema: Schema, partitions: Collection[str] | None) -> DataFrame:
        """Filter by partition values where these are plain text in paths; otherwise return all rows."""
        names = path_columns(self._timeline, schema)
        if not names or partitions is None or len(partitions) > MAX_PARTITIONS:
            return frame
        if not all(PLAIN_PATH.fullmatch(path) and NULL_IN_PATHS not in path for path in partitions):
            return frame  # NULL, an empty text or one that Hudi treats as an escape
        folders = [F.concat(F.lit(f"{name}="), F.col(f"`{name}`").cast("string")) for name in names]
        return frame.where(F.concat_ws("/", *folders).isin(sorted(partitions)))

    def _errors_of_misread_columns(self, schema: Schema) -> dict[str, SparkColumn]:
        """Expressions that raise an error for partition columns that Hudi misreads from paths (timestamps as NULL)."""
        if options_from_data(self._timeline):
            return {}
        types = {column.name: column.type or "" for column in schema}
        bad = [name for name in self._timeline.partition_fields if not types.get(name, "string").startswith(_IN_PATHS)]
        text = (
            "{} of {} partitions a merge-on-read table: Hudi does not give back its {}; partition by a date or a text"
        )
        return {
            name: F.raise_error(F.lit(text.format(name, self._timeline.uri, types[name]))).cast(types[name]).alias(name)
            for name in bad
        }
