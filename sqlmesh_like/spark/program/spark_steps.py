"""The steps of a run as frames and views of Spark. Owns what is cached, and avoiding needless plans and reads.

The keys to look up in a table are known before it is read: a few rows on the driver. The other tables are read with the
range of the keys as a filter, which skips files and row groups by their statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DoubleType, FloatType, MapType, StructType
from sqlglot import exp

from sqlmesh_like.delta.machine import ReadyStep, reads_table, tables_of
from sqlmesh_like.delta.program import Prune
from sqlmesh_like.spark.frames.local_frame import local_frame
from sqlmesh_like.spark.program.view_bindings import Bindings, ValueRange

SMALL = 100_000
"""Up to this many rows, a step is kept on the driver: steps built on it need no shuffle, and mostly no job."""
WORTH_A_RANGE = 64_000_000
"""Bytes of a table from which on the range of the keys to look up in it is computed."""
_UNORDERED = (ArrayType, BinaryType, DoubleType, FloatType, MapType, StructType)
"""Types whose range is not computed: files have no statistics for them, or not for all values."""


@dataclass
class SparkSteps:
    """Steps of one run in the session of its bindings. Cached frames stay in memory until `Bindings.release`."""

    bindings: Bindings
    nets_by: Literal["group", "join"] = "group"
    frames: dict[str, DataFrame] = field(default_factory=dict)
    _local: set[str] = field(default_factory=set)
    _ranges: dict[str, Mapping[str, ValueRange]] = field(default_factory=dict)

    def empty_relations(self) -> Iterable[str]:
        return [f"changes.{unmoved}" for unmoved in self.bindings.unmoved]

    def create_step(self, step: ReadyStep) -> bool:
        reads = tables_of(step.query)
        is_outside = reads_table(step.query)
        frame = self.bindings.bound(step.query, step.prunes, self._ranges_for(step.prunes))
        if step.is_empty:
            frame = frame.where(F.lit(False))
        elif step.need == "at once":
            return self._fetch(step.name, frame)
        elif step.need == "repeatedly":
            frame = frame.persist()
            self.bindings.steps[step.name] = frame
        elif not is_outside and self._local.issuperset(reads):
            frame = frame.coalesce(1)  # grouping and joining one partition starts no shuffle
        self.add(step.name, frame)
        return False

    def add(self, name: str, frame: DataFrame) -> None:
        """Make a frame readable by name."""
        self.frames[name] = frame
        shown = F.broadcast(frame) if name in self._local else frame
        shown.createOrReplaceTempView(name)

    def columns(self, name: str) -> Sequence[str]:
        if name in self.frames:
            return self.frames[name].columns
        role, _, relation = name.partition(".")
        return self.bindings.bound(exp.select("*").from_(exp.table_(relation, db=role, quoted=True))).columns

    def first_row(self, query: exp.Query) -> tuple[object, ...]:
        return tuple(self.bindings.bound(query).collect()[0])

    def _fetch(self, name: str, frame: DataFrame) -> bool:
        """Compute the rows of a step: on the driver if they are few, otherwise cached. Whether there are none."""
        local = local_frame(frame, SMALL)
        if local is not None:
            self._local.add(name)
        self.add(name, self.bindings.cache(frame) if local is None else local.frame)
        return local is not None and local.rows == 0

    def _ranges_for(self, prunes: Sequence[Prune]) -> Mapping[str, Mapping[str, ValueRange]]:
        """The ranges of keys to look up in large tables, by step and column."""
        wanted = [p.step for p in prunes if p.step in self._local and self.bindings.is_large(p, WORTH_A_RANGE)]
        for name in wanted:
            if name not in self._ranges:
                self._ranges[name] = _ranges(self.frames[name])
        return {name: self._ranges[name] for name in wanted}


def _ranges(frame: DataFrame) -> dict[str, ValueRange]:
    """The range of each column that has an ordered type and any value."""
    types = {f.name: f.dataType.simpleString() for f in frame.schema.fields if not isinstance(f.dataType, _UNORDERED)}
    columns = [F.col(f"`{name}`") for name in types]
    if not columns:
        return {}
    items = [item for c in columns for item in (F.min(c).cast("string"), F.max(c).cast("string"), F.count(c))]
    row = frame.agg(F.count(F.lit(1)), *items).collect()[0]
    result = zip(types.items(), row[1::3], row[2::3], row[3::3], strict=True)
    return {
        n: ValueRange(low, high, count < row[0], type_) for (n, type_), low, high, count in result if low is not None
    }
