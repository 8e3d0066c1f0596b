"""Builds slice by slice. Owns the order of the slices, and that the finished table takes its place as a whole.

A run that ends between two slices leaves a table whose record says which are left: the next run goes on with these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from sqlglot import exp

from sqlmesh_like import stop_signals
from sqlmesh_like.classify.rules import reason
from sqlmesh_like.delta.slices.partition_range import PartitionRange
from sqlmesh_like.errors import NodeError, RetryableError, UnslicedError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.names import PARTITION, Column, TableName
from sqlmesh_like.plan.history import History, TableState
from sqlmesh_like.plan.model_plan import InputVersion, PlannedModel
from sqlmesh_like.plan.slices.cuts import first_values
from sqlmesh_like.plan.slices.sliced_build import SlicedBuild
from sqlmesh_like.plan.slices.sliced_plan import plan_slice, slice_program
from sqlmesh_like.run.ports import Engine, NamedColumns, WriteResult

Register = Callable[[TableName, str, str | None], None]
"""`TableMaintenance.register`."""


class TableMoves(Protocol):
    """What becomes of a table that is built beside another one."""

    def recover(self, uri: str) -> bool:
        """Finish or undo a move to `uri` that a crash interrupted. Returns whether a table was moved there."""
        ...

    def require_no_savepoint(self, uri: str) -> None:
        """Raise NodeError where a table has a savepoint, which another one in its place would not have."""
        ...

    def take_place(self, source: str, uri: str) -> None:
        """Put a table into the place of the one at `uri`, if there is one. The same call completes it."""
        ...

    def remove_beside(self, uri: str) -> None:
        """Remove the slices of the table at `uri`, if there are any."""
        ...


@dataclass(frozen=True)
class SliceRun:
    """Builds tables slice by slice. `notify`: says one line for people. `register`: see `Executor`."""

    engine: Engine
    history: History
    moves: TableMoves
    notify: Callable[[str], None]
    shared: NamedColumns
    register: Register | None = None

    def run(self, planned: PlannedModel) -> WriteResult:
        """Build all slices that are left. Raises NodeError where a signal ends it after one of them."""
        build, uri = planned.slices, planned.target.uri
        assert build is not None
        if not build.is_in_place:
            if self.moves.recover(uri):
                raise RetryableError(f"{planned.compiled.model.table}: a move cut short by a crash was finished")
            self.moves.require_no_savepoint(uri)
            if build.left is None:
                self.moves.remove_beside(uri)
        whole = replace(planned, slices=None)
        if build.left is None:
            build = replace(build, left=(None, *self._first_values(planned, build)))
            if len(build.left or ()) == 1:
                return self.engine.apply(whole, self.shared)
        try:
            done = self._build_slices(planned, build)
        except UnslicedError as error:
            if build.is_required:
                raise
            done = self.engine.apply(whole, self.shared)
            return replace(done, reasons=(*done.reasons, reason("SLC003", error.message)))
        if not build.is_in_place:
            self.moves.take_place(build.state.uri, uri)
            fault_point("slices.placed")
            if self.register is not None:  # slices beside a table are no table that readers know
                self.register(planned.compiled.model.table, uri, PARTITION)
        return done

    def _build_slices(self, planned: PlannedModel, build: SlicedBuild) -> WriteResult:
        done, table = WriteResult("full_refresh", 0, 0, committed=True), planned.compiled.model.table
        while build.left:
            if build.built and stop_signals.is_wished():
                raise NodeError(f"{table}: {build.progress()}", hint="run again, which goes on with them")
            part = plan_slice(planned, build)
            try:
                applied = self.engine.apply(part, self.shared)
            finally:
                self.history.renew(build.state.uri)
            fault_point("slices.committed")
            build = replace(build, state=self._state_after(part), built=build.built + 1, left=build.left[1:])
            done = applied if build.built == 1 else done.with_next(applied)
            if build.left:
                self.notify(f"{table}: {build.progress()}")
        return done

    def _state_after(self, part: PlannedModel) -> TableState:
        """The table with a slice. Raises NodeError where its newest commit is not that of the slice."""
        state = self.history.state(part.target.uri)
        assert part.slice is not None
        if state.record is None or state.record.slices_left != (part.slice.left or ()):
            raise NodeError(f"{part.compiled.model.table}: another writer has written to {part.target.uri}")
        return state

    def _first_values(self, planned: PlannedModel, build: SlicedBuild) -> tuple[str, ...]:
        """The first value of each slice but the first, by the rows that the inputs have for each value."""
        weights: dict[str, int] = {}
        by_id: dict[str, InputVersion] = {item.ref.unique_id: item for item in planned.inputs}
        for scanned in slice_program(planned, PartitionRange(build.type), replaces=False).values:
            item = by_id[scanned.input_id]
            text = exp.cast(scanned.value.copy(), "string", dialect="spark").as_("value")
            table = exp.table_(item.ref.table.identifier, db=item.ref.table.schema, quoted=True)
            tree = exp.select(text, exp.Count(this=exp.Star()).as_("n")).from_(table).group_by(exp.Literal.number(1))
            shown = (Column("value", "string"), Column("n", "bigint"))
            for value, count in self.engine.query(tree, {item.ref.table: item.state}, -1, shown).rows:
                if value is not None:
                    weights[str(value)] = weights.get(str(value), 0) + int(str(count))
        return first_values(build.type, build.by, weights)
