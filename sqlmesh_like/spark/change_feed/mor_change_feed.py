"""The change feed of merge-on-read tables.

Owns reading them as of frontiers; `missing_files` finds what is gone.

A snapshot is the base files with the change logs since (`logged_slices`). If there are none, Hudi's reader reads the
table: log files have Hudi's own format and merge by rules of the table. A change whose commits have no change logs is
two snapshots of the partitions that they touched, minus the rows in both. Hudi's incremental read is not used: it
returns late rows that lost against stored ones.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sqlmesh_like.errors import RetryableError
from sqlmesh_like.hudi.change_log import NotLoggedError
from sqlmesh_like.hudi.commits import Commit
from sqlmesh_like.hudi.history import path_columns
from sqlmesh_like.hudi.logged_slices import LoggedSlices, logged_slices
from sqlmesh_like.hudi.missing_files import missing_files
from sqlmesh_like.names import COMMIT_TIME, KEY, PARTITION_PATH, RECORD_KEY, SEQUENCE, WEIGHT, Schema, is_hidden
from sqlmesh_like.spark.change_feed.cow_change_feed import FEW, CopyOnWriteFeed, lacking, most_left
from sqlmesh_like.spark.change_feed.logged_changes import read_logs
from sqlmesh_like.spark.frames.type_promotion import promoted_type

MAX_PARTITIONS = 2_000
"""Above this many partitions all are read, because their list becomes part of the query."""

_NUMBER, _AT = "_sml_number", "_sml_at"
_ROW = [PARTITION_PATH, RECORD_KEY, SEQUENCE]
_NULL = "__HIVE_DEFAULT_PARTITION__"
_PLAIN = re.compile(r"[A-Za-z0-9_.=/-]+")
_NUMBERED = ("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING")
"""Merge modes in which one of two rows of a key wins entirely, with the number that its writer gave it."""
_MERGE_INTO = "_hoodie.spark.sql.merge.into"
"""Metadata key of commits of MERGE INTO, which may write only the updated columns."""
_log = logging.getLogger("sqlmesh_like.spark")
_IN_PATHS = ("string", "int", "bigint", "date", "boolean", "decimal", "float", "double")


class MergeOnReadFeed(CopyOnWriteFeed):
    """Reads one merge-on-read table's rows as of pinned frontiers (grain: one row per record)."""

    def current(self, frontier: str, partitions: Collection[str] | None = None, *, hidden: bool = False) -> DataFrame:
        schema = self.schema(frontier)
        self._require(frontier)
        try:
            if not hidden:
                return self._overlaid(logged_slices(self._timeline, frontier), schema, frontier, partitions)
        except NotLoggedError as error:
            _log.info("%s: log files are merged: %s", self._timeline.uri, error)
        return self._as_of(frontier, schema, partitions).select(*self._columns(schema, frontier, hidden))

    def _overlaid(
        self, slices: LoggedSlices, schema: Schema, frontier: str, partitions: Collection[str] | None
    ) -> DataFrame:
        """Rows of base files whose keys are in no change log, and the newest row of each key in the logs."""
        whole, base = (
            self._read([each for each in some if partitions is None or each.partition in partitions], schema).select(
                *self._columns(schema, frontier, hidden=False)
            )
            for some in (slices.whole, slices.changed)
        )
        logs = [log for log in slices.logs if log.rows]
        if not logs:
            return whole.unionByName(base)
        if not set(slices.at) <= set(base.columns):
            raise NotLoggedError("its partitions are of a column that change logs lack")
        numbered = [
            read_logs(self._session, self._timeline, [log], schema).withColumn(_NUMBER, F.lit(number))
            for number, log in enumerate(logs)
        ]
        row = F.struct(*(F.col(f"`{name}`") for name in (*base.columns, WEIGHT)))
        newest = F.max_by(row, F.struct(_NUMBER, WEIGHT)).alias("row")
        identity = [F.col(f"`{name}`").alias(f"{_AT}{n}") for n, name in enumerate((KEY, *slices.at))]
        logged = reduce(DataFrame.unionByName, numbered).groupBy(*identity).agg(newest)
        same = [base[f"`{name}`"].eqNullSafe(logged[f"{_AT}{n}"]) for n, name in enumerate((KEY, *slices.at))]
        keys = F.broadcast(logged) if sum(log.rows for log in logs) <= FEW else logged
        rest = base.join(keys, reduce(SparkColumn.__and__, same), "left_anti")
        return whole.unionByName(rest).unionByName(logged.where(f"row.{WEIGHT} > 0").select("row.*").drop(WEIGHT))

    def compared_changes(self, start: str, end: str) -> DataFrame:
        schema = self.schema(end)
        commits = self._timeline.between(start, end)
        touched = set[tuple[str, str]]().union(*(commit.touched for commit in commits))
        for frontier in (start, end):
            self._require(frontier, touched)
        partitions = {partition for partition, _ in touched}
        old, new = (self._as_of(at, schema, partitions) for at in (start, end))
        if not self._numbers_rows(commits):
            return self._signed(old, new, schema, end)
        # Compaction and clustering keep a row's number and commit time.
        added = new.where(F.col(COMMIT_TIME) > start.split("_")[0])
        return self._signed(lacking(old, new, _ROW, most_left(commits)), added, schema, end)

    def _as_of(self, frontier: str, schema: Schema, partitions: Collection[str] | None) -> DataFrame:
        """Rows at a frontier as `schema`, of at least the partitions at these paths (None: all)."""
        if partitions is not None and not partitions:
            return self._empty(schema)
        reader = self._session.read.format("hudi").option("as.of.instant", self._timeline.as_of(frontier))
        frame = self._narrowed(reader.options(**self._from_data()).load(self._timeline.uri), schema, partitions)
        wanted = self._empty(schema).schema.fields
        refused = self._refused(schema)
        return frame.select(
            *[refused[f.name] if f.name in refused else promoted_type(frame, f.name, f.dataType) for f in wanted]
        )

    def _narrowed(self, frame: DataFrame, schema: Schema, partitions: Collection[str] | None) -> DataFrame:
        """Filter by partition values where these are plain text in paths; otherwise return all rows."""
        names = path_columns(self._timeline, schema)
        if not names or partitions is None or len(partitions) > MAX_PARTITIONS:
            return frame
        if not all(_PLAIN.fullmatch(path) and _NULL not in path for path in partitions):
            return frame  # NULL, an empty text or one that Hudi treats as an escape
        parts = [F.concat(F.lit(f"{name}="), F.col(f"`{name}`").cast("string")) for name in names]
        return frame.where(F.concat_ws("/", *parts).isin(sorted(partitions)))

    def _from_data(self) -> dict[str, str]:
        """Options that make Hudi read a partition column from the files, not from the paths, which are not exact.

        Hudi does so for ordering columns; naming one has no other effect where the table has no order.
        """
        fields = self._timeline.partition_fields
        if len(fields) != 1 or is_hidden(fields[0]) or self._timeline.properties.get("hoodie.table.ordering.fields"):
            return {}
        return {"hoodie.datasource.write.precombine.field": fields[0]}

    def _refused(self, schema: Schema) -> dict[str, SparkColumn]:
        """Expressions that raise an error for partition columns that Hudi misreads from paths (timestamps as NULL)."""
        if self._from_data():
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

    def _numbers_rows(self, commits: Iterable[Commit]) -> bool:
        """Whether every changed row has a new number; other merges may combine two rows under the number of one."""
        properties = self._timeline.properties
        is_partial = bool(properties.get("hoodie.table.partial.update.mode")) or any(
            key.startswith(_MERGE_INTO) for commit in commits for key in commit.extra
        )
        return properties.get("hoodie.record.merge.mode") in _NUMBERED and not is_partial

    def _require(self, frontier: str, groups: Collection[tuple[str, str]] | None = None) -> None:
        uri = self._timeline.uri
        self._require_held(frontier)
        if not self._timeline.is_settled(frontier):
            raise RetryableError(f"commit {frontier} of {uri} was overtaken by a compaction")
        if lost := missing_files(self._timeline, frontier, groups):
            raise RetryableError(f"{len(lost)} data files of {uri} are missing, e.g. {lost[0]}")
