"""Unit tests on Spark: the rows of a case as frames, and the real plan over them. Decides no outcome, writes no table.

A frame takes the place of the Hudi table of a run: rows are keyed, netted and replaced by the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property, reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from sqlmesh_like.analyze.author_text import Bind
from sqlmesh_like.classify.rules import Reason
from sqlmesh_like.delta.actions import ACTIONS
from sqlmesh_like.delta.affected_keys import key_columns
from sqlmesh_like.delta.machine import FRESH, Actions, Machine, MaintainedTable
from sqlmesh_like.delta.partitions import AFFECTED
from sqlmesh_like.delta.program import RelationRole, RescanProgram
from sqlmesh_like.errors import NodeError
from sqlmesh_like.names import IS_DELETED, KEY, WEIGHT, Column, Schema
from sqlmesh_like.plan.history import TableRecord, TableState
from sqlmesh_like.plan.model_plan import InputVersion, PlannedModel
from sqlmesh_like.run.ports import Rows
from sqlmesh_like.run.unit_cases import TableRows, UnitCase
from sqlmesh_like.run.unit_tests import Outcome
from sqlmesh_like.spark.frames.content_key import keyed_by_content
from sqlmesh_like.spark.frames.python_rows import python_rows
from sqlmesh_like.spark.jvm.spark_errors import failing
from sqlmesh_like.spark.program.spark_steps import SparkSteps
from sqlmesh_like.spark.program.view_bindings import Bindings, visible_rows
from sqlmesh_like.spark.writer import upsert as sinks

_NESTED = ("array<", "map<", "struct<", "binary")


class SparkUnits:
    """The Spark engine for unit tests; each case has its own session on the one Spark of the process."""

    def __init__(self, session: Callable[[], SparkSession]) -> None:
        self._session = session

    def query(self, sql: str) -> Rows:
        with failing("this query fails"):
            return _rows(self._session().sql(sql))

    def run(self, case: UnitCase) -> Outcome:
        """Build the table from the given rows and apply the changes with the model's real program."""
        with failing("Spark"):
            return _Table(case, self._session()).outcome()


@dataclass
class _UnitBindings(Bindings):
    """Bindings whose relations are the given frames, by role and name."""

    frames: Mapping[tuple[str, str], DataFrame] = field(default_factory=dict)

    def _relation(
        self,
        role: RelationRole,
        name: str,
        state: TableState,  # noqa: ARG002
        paths: frozenset[str] | None,  # noqa: ARG002
    ) -> DataFrame:
        return self.frames[role, name]

    @cached_property
    def _names(self) -> Bind:
        inputs = self.planned.compiled.facts.inputs
        ids = {(ref.table.schema.lower(), ref.table.identifier.lower()): ref.unique_id for ref in inputs}

        def bind(schema: str, name: str) -> str | None:
            unique_id = ids.get((schema, name))
            if unique_id is None:
                return None
            view = f"_sml_unit_{list(ids.values()).index(unique_id)}"
            self.frames["current", unique_id].drop(KEY).createOrReplaceTempView(view)
            return view

        return bind


@dataclass
class _FrameWriter:
    """Applies actions to the frame of a table."""

    table: _Table
    steps: SparkSteps
    overwrites_partitions: bool = True

    def stored_form(self, signed: str) -> str:
        return signed

    def apply_actions(self, done: Actions) -> None:  # noqa: ARG002
        actions = self.steps.frames[ACTIONS]
        entering = actions.where(~F.col(IS_DELETED))
        self.table.replace(self.table.rows().join(actions.select(KEY), [KEY], "left_anti"), entering)

    def overwrite_partitions(self, rescan: RescanProgram) -> None:
        pairs = zip(rescan.partition_by, key_columns(len(rescan.partition_by)), strict=True)
        same = [F.col(f"`{own}`").eqNullSafe(F.col(f"`{affected}`")) for own, affected in pairs]
        stored, affected = self.table.rows(), self.steps.frames[AFFECTED]
        staying = stored.join(affected, reduce(SparkColumn.__and__, same), "left_anti")
        self.table.replace(staying, self.steps.frames[FRESH])

    def keep(self, notes: tuple[Reason, ...] = ()) -> None:
        """No row changes."""

    def rebuild(self) -> None:
        self.table.build(self.steps.bindings)

    def apply_author_strategy(self) -> None:
        self.rebuild()


class _Table:
    """The table of one case."""

    def __init__(self, case: UnitCase, session: SparkSession) -> None:
        self._case = case
        self._session = session
        self._target: DataFrame | None = None
        self._is_derived = True

    def outcome(self) -> Outcome:
        case = self._case
        now = case.now if case.now.tzinfo else case.now.replace(tzinfo=UTC)
        bindings = self._bindings(case.before, case.before, now)
        self.build(bindings)
        if case.after is None:
            return Outcome(self._visible_rows(), self._recomputed_rows(bindings))
        bindings = self._bindings(case.before, case.after, now)
        self._follow(bindings)
        strategy = case.compiled.classification.strategy if self._is_derived else "full_refresh"
        return Outcome(self._visible_rows(), self._recomputed_rows(bindings), strategy)

    def build(self, bindings: Bindings) -> None:
        written, build = bindings.as_written(), self._case.compiled.table.build
        derived = bindings.run(build) if build is not None else None
        is_alike = derived is not None and sinks.have_same_columns(derived, written)
        self._is_derived = is_alike and bindings.other_meaning(written) is None
        frame = derived if derived is not None and self._is_derived else keyed_by_content(written)
        self._target = frame.localCheckpoint()
        if self._target.select(KEY).distinct().count() != self._target.count():
            raise NodeError(f"a key of {self._case.compiled.model.table} repeats")

    def _follow(self, bindings: _UnitBindings) -> None:
        plan = self._case.compiled.table
        # Every strategy that is sound gives the same rows; a rescan of partitions is tested where there is one.
        strategy = self._case.compiled.classification.strategy if self._is_derived else "full_refresh"
        steps = SparkSteps(bindings)
        table = MaintainedTable(str(self._case.compiled.model.table))
        now, then = bindings.planned.now, bindings.planned.then
        Machine(plan, steps, _FrameWriter(self, steps), table, now, then).run(strategy, bindings.planned.moves)

    def _visible_rows(self) -> Rows:
        return _rows(visible_rows(self.rows()))

    def rows(self) -> DataFrame:
        assert self._target is not None
        return self._target

    def replace(self, staying: DataFrame, entering: DataFrame) -> None:
        """Replace the table's rows by those that stay and those that enter."""
        self._target = staying.unionByName(entering.select(*staying.columns)).localCheckpoint()

    def _recomputed_rows(self, bindings: _UnitBindings) -> Rows:
        frame = bindings.recomputed() if self._is_derived else bindings.as_written()
        return _rows(frame.select(*[f"`{column.name}`" for column in self._visible_rows().schema]))

    def _bindings(self, before: TableRows, after: TableRows, now: datetime) -> _UnitBindings:
        frames: dict[tuple[str, str], DataFrame] = {}
        inputs: list[InputVersion] = []
        for ref in self._case.compiled.facts.inputs:
            schema = self._case.schemas[ref.unique_id]
            old, new = before.get(ref.unique_id, {}), after.get(ref.unique_id, {})
            gone = [(*row, key, -1) for key, row in old.items() if new.get(key) is not row]
            come = [(*row, key, 1) for key, row in new.items() if old.get(key) is not row]
            keyed = (*schema, Column(KEY, "string"))
            frames["current", ref.unique_id] = self._frame(keyed, [(*row, key) for key, row in new.items()])
            frames["changes", ref.unique_id] = self._frame((*keyed, Column(WEIGHT, "bigint")), [*gone, *come])
            state = TableState("", "cow", "1")
            inputs.append(InputVersion(ref, state, "0", "1" if gone or come else "0"))
        if self._target is not None:
            frames["target", "this"] = self._target
        record = TableRecord(self._case.compiled.model.unique_id, "", {}, now.isoformat(), "full_refresh")
        target = TableState("", "cow", "0", record=record)
        planned = PlannedModel(self._case.compiled, target, "full_refresh", (), tuple(inputs), "", now)
        return _UnitBindings(self._session, planned, frames=frames)

    def _frame(self, schema: Schema, rows: list[tuple[object, ...]]) -> DataFrame:
        """A frame of rows, passed as texts and cast by Spark, so that this process's time zone has no influence."""
        nested = [(column.type or "string").startswith(_NESTED) for column in schema]
        given = ", ".join(
            f"`{c.name}` {c.type if is_nested else 'string'}" for c, is_nested in zip(schema, nested, strict=True)
        )
        values = [tuple(v if n else _text(v) for v, n in zip(row, nested, strict=True)) for row in rows]
        frame = self._session.createDataFrame(values, given)
        return frame.select(*[F.col(f"`{c.name}`").cast(c.type or "string").alias(c.name) for c in schema])


def _text(value: object) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case Decimal():
            return format(value, "f")
        case datetime():
            return value.isoformat(" ")
        case date():
            return value.isoformat()
    return str(value)


def _rows(frame: DataFrame) -> Rows:
    """Rows with times in UTC, without a zone."""
    rows = python_rows(frame)
    return Rows(sinks.frame_schema(frame), tuple(tuple(map(_value, row)) for row in rows))


def _value(value: object) -> object:
    if isinstance(value, Row):
        return value.asDict(recursive=True)
    return bytes(value) if isinstance(value, bytearray) else value
