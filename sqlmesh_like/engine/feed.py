"""The change feed: pinned snapshots and changes of Hudi tables as Spark frames. Owns which files are read, and how.

Snapshots are read from the files that the timeline names, not through Hudi's reader: a list of files is stable while
commits overlap, keeps the types that partition paths lose, and can be cut down to partitions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sqlmesh_like.engine.avro_schema import schema_of
from sqlmesh_like.engine.timeline import Slice, Timeline
from sqlmesh_like.errors import NodeError
from sqlmesh_like.names import KEY, WEIGHT, Schema, visible

_COMMIT_TIME = "_hoodie_commit_time"
_SEQUENCE = "_hoodie_commit_seqno"
_RECORD_KEY = "_hoodie_record_key"
_PARTITION_PATH = "_hoodie_partition_path"
_META = (_COMMIT_TIME, _SEQUENCE, _RECORD_KEY, _PARTITION_PATH)


class Feed:
    """Reads one table's rows as of pinned frontiers (copy-on-write; grain: one row per record)."""

    def __init__(self, session: SparkSession, timeline: Timeline) -> None:
        self._session = session
        self._timeline = timeline

    def current(self, frontier: str, partitions: Collection[str] | None = None, *, hidden: bool = False) -> DataFrame:
        """Rows as of a frontier: visible columns (`hidden`: ours too) and `_sml_key`. Partition paths narrow the files."""
        schema = self.schema(frontier)
        slices = [
            found
            for found in self._timeline.slices(frontier).values()
            if partitions is None or found.partition in partitions
        ]
        return self._read(slices, schema, frontier).select(*_columns(schema, hidden))

    def changes(self, start: str, end: str) -> DataFrame:
        """Signed rows between two frontiers: visible columns, `_sml_key`, `_sml_weight`.

        A row rewritten with the same content appears with both signs: consumers net by the columns they use.
        """
        schema = self.schema(end)
        commits = self._timeline.between(start, end)
        touched = set[tuple[str, str]]().union(*(commit.touched for commit in commits))
        old, new = (self._read(self._of(at, touched), schema, end) for at in (start, end))
        # Rows that a commit carried over keep the commit time they had: what is new has one after `start`.
        added = new.where(F.col(_COMMIT_TIME) > start.split("_")[0])
        if any(commit.replaced or any(write.deletes for write in commit.writes) for commit in commits):
            kept = new.select(_RECORD_KEY, _SEQUENCE)
            removed = old.join(kept, [_RECORD_KEY, _SEQUENCE], "left_anti")
        else:
            # No row can have left without a newer one of the same key: a join with the few new keys is enough.
            removed = old.join(added.select(_RECORD_KEY, _PARTITION_PATH), [_RECORD_KEY, _PARTITION_PATH], "left_semi")
        columns = _columns(schema, hidden=False)
        signed = [
            frame.select(*columns, F.lit(sign).cast("bigint").alias(WEIGHT)) for frame, sign in ((removed, -1), (added, 1))
        ]
        return signed[0].unionByName(signed[1])

    def schema(self, frontier: str) -> Schema:
        """All columns as of a frontier, hidden ones too."""
        text = self._timeline.schema_json(frontier)
        if text is None:
            raise NodeError(f"no schema in the history of {self._timeline.uri}", hint="rebuild the table")
        return schema_of(text)

    def _of(self, frontier: str, touched: set[tuple[str, str]]) -> list[Slice]:
        return [found for key, found in self._timeline.slices(frontier).items() if key in touched]

    def _read(self, slices: Iterable[Slice], schema: Schema, frontier: str) -> DataFrame:
        """Rows of base files as `schema`. Files of different writer schemas are read apart and cast: no one reader
        schema reads int and bigint, or two decimals, of one column."""
        by_schema: dict[str, list[str]] = defaultdict(list)
        for found in slices:
            written = self._timeline.schema_json(f"{found.instant}_") or ""
            by_schema[written].append(f"{self._timeline.uri}/{found.path}")
        wanted = [column for column in schema if column.name not in _META]
        if not by_schema:
            types = ", ".join(f"`{column.name}` {column.type}" for column in wanted)
            meta = ", ".join(f"{name} string" for name in _META)
            return self._session.createDataFrame([], f"{meta}, {types}")
        frames = [self._read_alike(paths, written, schema) for written, paths in by_schema.items()]
        return reduce(DataFrame.unionByName, frames)

    def _read_alike(self, paths: list[str], written: str, schema: Schema) -> DataFrame:
        reader = self._session.read
        if written:
            reader = reader.schema(_ddl(schema_of(written)))
        frame = reader.parquet(*paths)
        present = {name.lower() for name in frame.columns}
        columns = [
            _converted(frame, column.name, column.type or "string") if column.name.lower() in present
            else F.lit(None).cast(column.type or "string").alias(column.name)
            for column in schema
            if column.name not in _META
        ]  # fmt: skip
        return frame.select(*_META, *columns)


def _ddl(schema: Schema) -> str:
    meta = [f"{name} string" for name in _META]
    columns = [f"`{column.name}` {column.type}" for column in schema if column.name not in _META]
    return ", ".join([*meta, *columns])


def _converted(frame: DataFrame, name: str, type_: str) -> SparkColumn:
    """A column in the newer type; float goes to double by way of its text, as Hudi shows it (0.1 stays 0.1)."""
    column = F.col(f"`{name}`")
    if frame.schema[name].dataType.simpleString() == "float" and type_ == "double":
        column = column.cast("string")
    return column.cast(type_).alias(name)


def _columns(schema: Schema, hidden: bool) -> list[SparkColumn]:
    shown = [column.name for column in (schema if hidden else visible(schema))]
    names = [name for name in shown if not name.startswith("_hoodie_") and name != KEY]
    has_key = any(column.name == KEY for column in schema)
    # A partition's index is its own: the key of a table that is not derived is unique within its partition only.
    row_key = F.col(KEY) if has_key else F.concat_ws("/", F.col(_PARTITION_PATH), F.col(_RECORD_KEY))
    return [*[F.col(f"`{name}`") for name in names], row_key.alias(KEY)]


