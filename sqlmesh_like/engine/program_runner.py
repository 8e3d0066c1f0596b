"""A delta program on Spark. Owns the order of its steps, what is kept in memory, and how little is planned and read.

Steps that read nothing but other steps only describe rows. Before a step reads a table, all that leads to it is
measured in one job: rows, and for keys their range. What turns out empty takes with it whatever follows from it; the
rest is read with the keys' range as a filter, which skips files and row groups by their statistics. What is small is
one partition, so that grouping and joining it starts no shuffle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DoubleType, FloatType, MapType, StructType
from sqlglot import exp

from sqlmesh_like.delta.program import DeltaProgram, Step, name_of, split_relation
from sqlmesh_like.engine.bindings import Bindings, Range

SMALL = 100_000
"""Up to this many rows a step is one partition, and joined by sending it to where the other rows are."""
_UNORDERED = (ArrayType, BinaryType, DoubleType, FloatType, MapType, StructType)
"""Types whose range is not looked for: no statistics are kept, or not of all values."""


def run_program(program: DeltaProgram, bindings: Bindings) -> DataFrame | None:
    """The signed target rows of a program; None where it follows from what was read that there are none.

    Steps that are read often are kept in memory until `bindings` releases them.
    """
    return _Run(program, bindings).result()


@dataclass(frozen=True)
class Measure:
    """How many rows a step has, and the range of those of its columns that have one (as texts)."""

    rows: int
    ranges: Mapping[str, Range] = field(default_factory=dict)


@dataclass
class _Run:
    program: DeltaProgram
    bindings: Bindings
    measures: dict[str, Measure] = field(default_factory=dict)
    defined: dict[str, DataFrame] = field(default_factory=dict)
    single: set[str] = field(default_factory=set)
    from_tables: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.measures = {f"changes.{unmoved}": Measure(0) for unmoved in self.bindings.unmoved}

    def result(self) -> DataFrame | None:
        waiting = list(self.program.steps)
        while waiting:
            ready = [step for step in waiting if self._is_ready(step)]
            inner = [step for step in ready if not _reads_table(step) and self._is_planned_well(step)]
            unknown = [] if inner else self._unknown(ready)
            if unknown:
                self._measure(unknown)
                continue
            for step in inner or ready:
                self._define(step)
                waiting.remove(step)
        return self.defined.get(self.program.result)

    def _is_ready(self, step: Step) -> bool:
        """Whether all that a step reads is there."""
        return all(name in self.defined or self._is_empty(name) or "." in name for name in _needs(step))

    def _is_planned_well(self, step: Step) -> bool:
        """Whether the size of all that a step joins is known: Spark takes what it does not know for large."""
        tables = [name for name in _needs(step) if name in self.from_tables]
        return not _joins(step.query) or all(name in self.measures for name in tables)

    def _is_empty(self, name: str) -> bool:
        return name in self.measures and self.measures[name].rows == 0

    def _unknown(self, steps: Iterable[Step]) -> list[str]:
        """Steps that decide what these ones read and are not measured yet, and those in memory."""
        direct = [name for step in steps for name in _needs(step)]
        names = dict.fromkeys([*direct, *self.bindings.steps])
        return [name for name in names if name in self.defined and name not in self.measures]

    def _define(self, step: Step) -> None:
        """Make a step's frame, unless it follows from what is known that it has no rows."""
        query = None
        if step.unless_empty is None or not self._is_empty(step.unless_empty):
            query = self.bindings.simplified(step.query, self._is_empty)
        if query is None:
            self.measures[step.name] = Measure(0)
            return
        for name in _read_by(query):
            if name not in self.defined and "." not in name:
                self._define_empty(name)
        ranges = {prune.step: self.measures[prune.step].ranges for prune in step.prunes if prune.step in self.measures}
        frame = self.bindings.bound(query, step.prunes, ranges)
        self._keep(step, frame, set(_read_by(query)))

    def _define_empty(self, name: str) -> None:
        """A step without rows that is read all the same: by an aggregate, or an outer join."""
        step = next(step for step in self.program.steps if step.name == name)
        for below in _needs(step):
            if below not in self.defined and "." not in below:
                self._define_empty(below)
        frame = self.bindings.bound(step.query.copy()).where(F.lit(False))
        self.defined[name] = frame
        frame.createOrReplaceTempView(name)

    def _keep(self, step: Step, frame: DataFrame, read: set[str]) -> None:
        is_table = _reads_table(step)
        if is_table:
            self.from_tables.add(step.name)
        elif read <= self.single | self._small_changes():
            frame = frame.coalesce(1)
            self.single.add(step.name)
        if is_table or self._is_read_often(step.name):
            frame = frame.persist()
            self.bindings.steps[step.name] = frame
        self.defined[step.name] = frame
        frame.createOrReplaceTempView(step.name)

    def _small_changes(self) -> set[str]:
        return {f"changes.{name}" for name in self.bindings.small}

    def _measure(self, names: Iterable[str]) -> None:
        """Count these steps in one job, with the ranges that prunes ask for; small ones become one partition."""
        wanted = {prune.step for step in self.program.steps for prune in step.prunes}
        frames = [_measured(name, self.defined[name], with_range=name in wanted) for name in names]
        for row in reduce(DataFrame.unionByName, frames).collect():
            frame = self.defined[row["name"]]
            bounds = zip(_ordered(frame), row["low"], row["high"], row["nulls"], strict=False)
            types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
            ranges = {
                name: Range(low, high, nulls, types[name]) for name, low, high, nulls in bounds if low is not None
            }
            self.measures[row["name"]] = Measure(row["rows"], ranges)
            if row["rows"] <= SMALL:
                self._as_small(row["name"], frame)

    def _as_small(self, name: str, frame: DataFrame) -> None:
        one = frame if name in self.single else frame.coalesce(1)
        self.single.add(name)
        self.defined[name] = one
        F.broadcast(one).createOrReplaceTempView(name)

    def _is_read_often(self, name: str) -> bool:
        reads = sum(
            1 for step in self.program.steps for read in step.query.find_all(exp.Table) if name_of(read) == name
        )
        return reads > 1


def _measured(name: str, frame: DataFrame, *, with_range: bool) -> DataFrame:
    """One row: name, rows, and of each column that has an order its range, as texts, and whether it holds NULL."""
    columns = [F.col(f"`{column}`") for column in _ordered(frame)] if with_range else []
    low, high = (F.array(*[f(c).cast("string") for c in columns]).cast("array<string>") for f in (F.min, F.max))
    nulls = F.array(*[F.count(c) < F.count(F.lit(1)) for c in columns]).cast("array<boolean>")
    rows = F.count(F.lit(1)).alias("rows")
    return frame.agg(F.lit(name).alias("name"), rows, low.alias("low"), high.alias("high"), nulls.alias("nulls"))


def _ordered(frame: DataFrame) -> list[str]:
    return [field.name for field in frame.schema.fields if not isinstance(field.dataType, _UNORDERED)]


def _joins(query: exp.Expr) -> bool:
    return query.find(exp.Join, exp.Exists, exp.In) is not None


def _reads_table(step: Step) -> bool:
    """Whether a step reads rows of a table, not only of changes and other steps."""
    roles = {found[0] for table in step.query.find_all(exp.Table) if (found := split_relation(table))}
    return not roles <= {"changes"}


def _read_by(query: exp.Expr) -> list[str]:
    return list(dict.fromkeys(name_of(table) for table in query.find_all(exp.Table)))


def _needs(step: Step) -> list[str]:
    """Steps and relations that a step reads, or that say whether it has rows."""
    also = [step.unless_empty] if step.unless_empty else []
    return [*_read_by(step.query), *also, *(prune.step for prune in step.prunes)]
