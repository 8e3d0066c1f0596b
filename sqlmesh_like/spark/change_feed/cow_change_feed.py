"""The change feed: pinned snapshots and changes of Hudi tables as Spark frames. Owns which files are read, and how.

Merge-on-read tables have their own (`mor_change_feed`); `change_feed` chooses.

Snapshots are read from the files that the timeline names, not through Hudi's reader: a list of files is stable while
commits overlap, keeps the types that partition paths lose, and can be cut down to partitions.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sqlmesh_like.errors import NodeError, RetryableError
from sqlmesh_like.hudi.avro_schema import schema_of
from sqlmesh_like.hudi.change_log import NotLoggedError, logs_between
from sqlmesh_like.hudi.commits import Commit, Slice
from sqlmesh_like.hudi.file_schemas import paths_by_schema
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import COMMIT_TIME, KEY, PARTITION_PATH, RECORD_KEY, SEQUENCE, WEIGHT, Schema, visible
from sqlmesh_like.spark.change_feed.logged_changes import read_logs
from sqlmesh_like.spark.frames.type_promotion import promoted_type

_META_COLUMNS = (COMMIT_TIME, SEQUENCE, RECORD_KEY, PARTITION_PATH)
FEW = 500_000
"""Up to this many keys are broadcast to where a table is read."""

_log = logging.getLogger("sqlmesh_like.spark")


class CopyOnWriteFeed:
    """Reads one table's rows as of pinned frontiers (copy-on-write; grain: one row per record)."""

    def __init__(self, session: SparkSession, timeline: Timeline) -> None:
        self._session = session
        self._timeline = timeline

    def current(self, frontier: str, partitions: Collection[str] | None = None, *, hidden: bool = False) -> DataFrame:
        """Rows as of a frontier: visible columns (`hidden`: all but Hudi's) and `_sml_key`.

        `partitions`: read only the files of these partition paths. Raises RetryableError where files are gone.
        """
        schema = self.schema(frontier)
        slices = [
            file_slice
            for file_slice in self._timeline.slices(frontier).values()
            if partitions is None or file_slice.partition in partitions
        ]
        self._require(frontier)
        return self._read(slices, schema).select(*self._columns(schema, frontier, hidden))

    def changes(self, start: str, end: str) -> DataFrame:
        """Signed rows between two frontiers: visible columns, `_sml_key`, `_sml_weight`.

        A row rewritten with the same content appears with both signs, and one rewritten by several commits once per
        commit and sign: consumers net by the columns they use.
        """
        for frontier in (start, end):
            self._require_held(frontier)
        try:
            return self.logged_changes(start, end)
        except NotLoggedError as error:
            _log.info("%s: file slices are compared: %s", self._timeline.uri, error)
            return self.compared_changes(start, end)

    def logged_changes(self, start: str, end: str) -> DataFrame:
        """The change from the logs of its commits. Raises NotLoggedError where these do not have all of it."""
        logs = logs_between(self._timeline, start, end)
        return read_logs(self._session, self._timeline, logs, self.schema(end))

    def compared_changes(self, start: str, end: str) -> DataFrame:
        """The change from comparing the file slices that commits touched at `start` and at `end`."""
        schema = self.schema(end)
        commits = self._timeline.between(start, end)
        touched = set[tuple[str, str]]().union(*(commit.touched for commit in commits))
        for frontier in (start, end):
            self._require(frontier, touched)
        old, new = (self._read(self._of(at, touched), schema) for at in (start, end))
        # Rows that a commit copied unchanged keep their commit time; new ones have a time after `start`.
        added = new.where(F.col(COMMIT_TIME) > self._timeline.standing(start))
        if all(map(_is_plain_upsert, commits)):
            # Each row that left has a newer one of the same key: a join with the few new keys is enough.
            removed = old.join(added.select(RECORD_KEY, PARTITION_PATH), [RECORD_KEY, PARTITION_PATH], "left_semi")
        else:
            removed = lacking(old, new, [RECORD_KEY, SEQUENCE], most_left(commits))
        return self._signed(removed, added, schema, end)

    def _signed(self, removed: DataFrame, added: DataFrame, schema: Schema, end: str) -> DataFrame:
        columns = self._columns(schema, end, hidden=False)
        signed = [
            frame.select(*columns, F.lit(sign).cast("bigint").alias(WEIGHT))
            for frame, sign in ((removed, -1), (added, 1))
        ]
        return signed[0].unionByName(signed[1])

    def schema(self, frontier: str) -> Schema:
        """All columns as of a frontier, including hidden ones."""
        text = self._timeline.schema_json(frontier)
        if text is None:
            raise NodeError(f"no schema in the history of {self._timeline.uri}", hint="rebuild the table")
        return schema_of(text)

    def _of(self, frontier: str, touched: set[tuple[str, str]]) -> list[Slice]:
        return [file_slice for key, file_slice in self._timeline.slices(frontier).items() if key in touched]

    def _read(self, slices: Iterable[Slice], schema: Schema) -> DataFrame:
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

    def _columns(self, schema: Schema, frontier: str, hidden: bool) -> list[SparkColumn]:
        """The columns that readers get, and the row's key."""
        shown = [column.name for column in (schema if hidden else visible(schema))]
        names = [name for name in shown if not name.startswith("_hoodie_") and name != KEY]
        has_key = any(column.name == KEY for column in schema)
        row_key = F.col(KEY) if has_key else _row_key(self._timeline.repeats_keys(frontier))
        return [*[F.col(f"`{name}`") for name in names], row_key.alias(KEY)]

    def _require_held(self, frontier: str) -> None:
        if not self._timeline.holds(frontier):
            raise RetryableError(f"commit {frontier} of {self._timeline.uri} is no longer on its timeline")

    def _require(self, frontier: str, groups: Collection[tuple[str, str]] | None = None) -> None:
        """Raise RetryableError where files of the frontier are gone: reading the rest would return fewer rows."""
        self._require_held(frontier)
        if gone := self._timeline.missing(frontier, groups):
            raise RetryableError(f"{len(gone)} data files of {self._timeline.uri} are missing, e.g. {gone[0]}")


def _is_plain_upsert(commit: Commit) -> bool:
    """Whether the commit only replaced rows by newer ones of their key. Plain inserts may repeat a stored key."""
    has_deletes = any(write.deletes for write in commit.writes)
    return commit.operation == "UPSERT" and not commit.replaced and not has_deletes


def most_left(commits: Iterable[Commit]) -> int | None:
    """The most rows that these commits can have removed; None where their metadata does not show it."""
    if any(commit.replaced or commit.operation != "UPSERT" for commit in commits if commit.is_data):
        return None
    return sum(write.updates + write.deletes for commit in commits if commit.is_data for write in commit.writes)


def lacking(rows: DataFrame, others: DataFrame, by: list[str], most: int | None) -> DataFrame:
    """The rows without a match in `others` on the columns `by`. `most`: how many there can be, None: unknown.

    Only these columns are compared, then the rows are fetched: shuffling whole rows takes many times as long.
    """
    join = rows.select(*by).join(others.select(*by), by, "left_anti")
    return rows.join(F.broadcast(join) if most is not None and most <= FEW else join, by, "left_semi")


def typed_frame(schema: Schema) -> list[tuple[str, str]]:
    """Names and types of the meta columns that are read, and of all other columns of the schema."""
    others = [(column.name, column.type or "string") for column in schema if column.name not in _META_COLUMNS]
    return [*[(name, "string") for name in _META_COLUMNS], *others]


def _ddl(schema: Schema) -> str:
    return ", ".join(f"`{name}` {type_}" for name, type_ in typed_frame(schema))


def _row_key(repeats: bool) -> SparkColumn:
    """Key of a row in a table that is not derived, where a record key is unique at most within its partition.

    The length distinguishes partition `a` with key `b/c` from partition `a/b` with key `c`. Rows that share a key
    (`repeats`) differ in the number that their last writer gave them.
    """
    path = F.coalesce(F.col(PARTITION_PATH), F.lit(""))
    number = [F.col(SEQUENCE)] if repeats else []
    return F.concat_ws("/", F.length(path).cast("string"), path, F.col(RECORD_KEY), *number)
