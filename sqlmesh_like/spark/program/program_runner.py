"""A delta program on Spark. Owns the order of its steps, what is cached, and avoiding needless plans and reads.

The keys to look up in a table are known before it is read: a few rows on the driver. A step that turns out empty
removes all steps that depend on it; the other tables are read with the range of the keys as a filter, which skips files
and row groups by their statistics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DoubleType, FloatType, MapType, StructType
from sqlglot import exp

from sqlmesh_like.delta.program import DeltaProgram, ProgramStep, name_of, split_relation
from sqlmesh_like.spark.frames.local_frame import local_frame
from sqlmesh_like.spark.program.view_bindings import Bindings, ValueRange

SMALL = 100_000
"""Up to this many rows, a step is kept on the driver: steps built on it need no shuffle, and mostly no job."""
WORTH_A_RANGE = 64_000_000
"""Bytes of a table from which on the range of the keys to look up in it is computed."""
_UNORDERED = (ArrayType, BinaryType, DoubleType, FloatType, MapType, StructType)
"""Types whose range is not computed: files have no statistics for them, or not for all values."""


def run_program(program: DeltaProgram, bindings: Bindings) -> DataFrame | None:
    """The signed target rows of a program; None where the steps show that there are none.

    Cached frames stay in memory until `Bindings.release`.
    """
    run = _Run(program, bindings)
    for step in program.steps:
        run.add(step)
    return run.frames.get(program.result) if program.steps else None


@dataclass
class _Run:
    program: DeltaProgram
    bindings: Bindings
    frames: dict[str, DataFrame] = field(default_factory=dict)
    empty: set[str] = field(default_factory=set)
    local: set[str] = field(default_factory=set)
    ranges: dict[str, Mapping[str, ValueRange]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.empty = {f"changes.{unmoved}" for unmoved in self.bindings.unmoved}

    def add(self, step: ProgramStep) -> None:
        """Create a step's frame, unless the steps so far show that it has no rows."""
        query = None
        if step.unless_empty not in self.empty:
            query = self.bindings.simplified(step.query, self.empty.__contains__)
        if query is None:
            self.empty.add(step.name)
            return
        for name in _read_by(query):
            self._require(name)
        frame = self.bindings.bound(query, step.prunes, self._ranges_of(step))
        if self._is_awaited(step):
            frame = self._materialized(step.name, frame)
        elif not _reads_table(step) and self.local.issuperset(_read_by(query)):
            frame = frame.coalesce(1)  # grouping and joining one partition starts no shuffle
        self._show(step.name, frame)

    def _show(self, name: str, frame: DataFrame) -> None:
        self.frames[name] = frame
        shown = F.broadcast(frame) if name in self.local else frame
        shown.createOrReplaceTempView(name)

    def _require(self, name: str) -> None:
        """Create the frame of an empty step that is still read, by an aggregate or an outer join."""
        if name in self.frames or "." in name:
            return
        step = next(step for step in self.program.steps if step.name == name)
        for below in _read_by(step.query):
            self._require(below)
        self._show(name, self.bindings.run(step.query).where(F.lit(False)))

    def _is_awaited(self, step: ProgramStep) -> bool:
        """Whether the step's rows must be known or cached: other steps depend on them, or read them repeatedly."""
        return _reads_table(step) or self._readers[step.name] > 1 or step.name in self._deciding

    @cached_property
    def _readers(self) -> Counter[str]:
        """How often each step is read."""
        return Counter(name_of(table) for step in self.program.steps for table in step.query.find_all(exp.Table))

    @cached_property
    def _deciding(self) -> frozenset[str]:
        """Steps that determine whether a table is read, and which part of it."""
        return frozenset(
            name
            for step in self.program.steps
            if _reads_table(step)
            for name in (step.unless_empty, *_read_by(step.query))
            if name
        )

    def _materialized(self, name: str, frame: DataFrame) -> DataFrame:
        """Compute the rows of a step: on the driver if they are few, otherwise cached in the executors."""
        local = local_frame(frame, SMALL)
        if local is not None:
            self.local.add(name)
            if local.rows == 0:
                self.empty.add(name)
            return local.frame
        return self.bindings.cache(frame)

    def _ranges_of(self, step: ProgramStep) -> Mapping[str, Mapping[str, ValueRange]]:
        """The ranges of keys to look up in large tables, by step and column."""
        wanted = [p.step for p in step.prunes if p.step in self.local and self.bindings.is_large(p, WORTH_A_RANGE)]
        for name in wanted:
            if name not in self.ranges:
                self.ranges[name] = _ranges(self.frames[name])
        return {name: self.ranges[name] for name in wanted}


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


def _reads_table(step: ProgramStep) -> bool:
    """Whether a step reads rows of a table, or of a change."""
    return any(split_relation(table) for table in step.query.find_all(exp.Table))


def _read_by(query: exp.Expr) -> list[str]:
    return list(dict.fromkeys(name_of(table) for table in query.find_all(exp.Table)))
