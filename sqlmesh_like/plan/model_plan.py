"""What the next run of a model does, and why. Owns the choice between an incremental update and a rebuild.

Pure over the `History` port: the explainer and the executor read the same `PlannedModel`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from sqlmesh_like.classify.rules import Reason, reason
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.errors import Location, NodeError
from sqlmesh_like.plan.cluster.job_price import JobPrice, JobsDone
from sqlmesh_like.plan.cost import Estimate, paces
from sqlmesh_like.plan.frozen.declared import frozen_partitions
from sqlmesh_like.plan.frozen.frozen_plan import kept_partitions, kept_strategy, require_tables
from sqlmesh_like.plan.history import (
    AS_WRITTEN,
    NO_CHANGE,
    ChangeVolume,
    History,
    TableRecord,
    TableState,
    Volume,
    require_table,
)
from sqlmesh_like.plan.slices.sliced_build import Slice, SlicedBuild
from sqlmesh_like.render.rendered import InputRef

if TYPE_CHECKING:
    from sqlglot import exp

    from sqlmesh_like.classify.strategy import Strategy
    from sqlmesh_like.delta.frozen import FrozenPartitions
    from sqlmesh_like.delta.program import Moves, TablePlan
    from sqlmesh_like.plan.edits.outline import Edit
    from sqlmesh_like.plan.edits.reconciliation import Reconciliation

SMALL_INPUT = 4_000_000
"""Bytes up to which an unchanged input is read whole: looking up only the rows that a change needs would take a job."""


@dataclass(frozen=True)
class InputVersion:
    """One input between its consumer's frontier and the one pinned for this run.

    `awaits`: the input is a model that the same run will change first, so its frontier is not known yet.
    """

    ref: InputRef
    state: TableState
    start: str | None
    end: str | None
    change: ChangeVolume = NO_CHANGE
    awaits: bool = False
    repeats_keys: bool = False  # rows may share a record key, see `History.repeats_keys`
    volume: Volume | None = None  # how much the input holds; None where the plan does not depend on it

    @property
    def has_moved(self) -> bool:
        return self.awaits or self.start != self.end

    @property
    def is_new(self) -> bool:
        """Whether the consumer has not read it yet."""
        return self.start is None

    def as_read(self) -> InputVersion:
        """The input as its consumer has read it, or as it is now."""
        return (
            replace(self, start=self.end, awaits=False) if self.is_new else replace(self, end=self.start, awaits=False)
        )


@dataclass(frozen=True)
class PlannedModel:
    """The next run of one model. `strategy` is what it does; `classification.strategy` what its SQL allows.

    `advances`: the frontier is stored also where the change of an input has no effect.
    """

    compiled: CompiledModel
    target: TableState
    strategy: Strategy
    reasons: tuple[Reason, ...]
    inputs: tuple[InputVersion, ...]
    fingerprint: str
    now: datetime
    is_refused: bool = False  # `refresh: strict` forbids the full refresh that would be needed
    estimate: Estimate | None = None  # None: nothing to do, or what will change is not known yet
    advances: bool = False
    reconciles: bool = False  # the stored rows, of another query or of lost history, are compared with all of the query
    rewrites: bool = False  # all rows may be replaced within the table, which gets other columns
    edit: Edit | None = None  # what the edit changes is computed alone, with inputs as of the recorded frontier
    follows: bool = False  # inputs have changed since: another plan has to follow this one
    frozen: FrozenPartitions | None = None  # stored rows that stay as they are
    slices: SlicedBuild | None = None  # the table is built slice by slice
    slice: Slice | None = None  # this run builds or replaces this part of the table alone
    has_remains: bool = False  # an unfinished build beside the table is not gone on with
    price: JobPrice | None = None  # of a job of executors on other machines; None: there are none

    @property
    def moves(self) -> Moves:
        """Which inputs have changed, and which of the others are small: the program of this run depends on both."""
        from sqlmesh_like.delta.program import Moves

        moved = {item.ref.unique_id for item in self.inputs if item.has_moved}
        small = {i.ref.unique_id for i in self.inputs if i.volume is not None and i.volume.bytes <= SMALL_INPUT}
        return Moves(frozenset(moved), frozenset(small - moved))

    @property
    def table(self) -> TablePlan:
        """What this run executes."""
        if self.slice is not None:
            return self.slice.table
        return self.compiled.table if self.edit is None else self.edit.table(self.compiled.table)

    @property
    def is_beside(self) -> bool:
        """Whether this run writes a table that takes the place of the model's once it is whole."""
        is_slice = self.slice is not None and self.slice.is_beside
        return is_slice or (self.slices is not None and not self.slices.is_in_place)

    @property
    def then(self) -> datetime | None:
        """The clock of the run that wrote the table; None if none did."""
        return datetime.fromisoformat(self.target.record.now) if self.target.record else None

    @property
    def unique_key(self) -> tuple[str, ...]:
        """The declared key, if its rows must be unique: with an author's other strategies, dbt does not require it."""
        model = self.compiled.model
        return model.config.unique_key if model.author_strategy in (None, "merge") else ()

    def require_allowed(self) -> None:
        """Raise NodeError with the reasons if the plan is refused."""
        if self.is_refused:
            why = "; ".join(f"{reason.rule} {reason.message}" for reason in self.reasons)
            model = self.compiled.model
            first = self.reasons[0] if self.reasons else None
            location = Location(model.path, first.line if first else None, first.column if first else None)
            message = f"refresh: strict forbids a full refresh of {model.table}: {why}"
            hint = "fix the cause, run with --full-refresh once, or set refresh: auto"
            raise NodeError(message, location=location, hint=hint)

    def require_inputs(self) -> None:
        """Raise NodeError if the table of an input does not exist, before an engine is started."""
        for item in self.inputs:
            require_table(item.ref.table, item.state)

    def as_recorded(self) -> PlannedModel:
        """The plan with the inputs as of the run that wrote the table, and the clock of that run.

        Raises NodeError if no run wrote it, or if an input no longer has the rows of then.
        """
        name, record = self.compiled.model.table, self.target.record
        if record is None:
            raise NodeError(f"{name} was not written by a run", hint="run it first")
        if record.slices_left:
            raise NodeError(f"{name} is not built yet: {len(record.slices_left)} slices are left", hint="run it first")
        inputs = tuple(replace(item, end=record.frontier.get(item.ref.unique_id)) for item in self.inputs)
        for item in inputs:
            if item.state.kind == "files" and item.end != item.state.frontier:
                hint = "run it first: files other than Hudi tables are read as they are now"
                raise NodeError(f"{name}: the files of {item.ref.table} changed since its last run", hint=hint)
        return replace(self, inputs=inputs, now=datetime.fromisoformat(record.now))

    def record(
        self,
        strategy: Strategy,
        buckets: int,
        rows: Mapping[str, int],
        started: datetime | None = None,
        done: JobsDone | None = None,
    ) -> TableRecord:
        """The record for the commit of this run.

        `started`: when work on the table began, later by what it has waited for `done`, the jobs of executors.
        """
        from sqlmesh_like.plan.edits.outline import stored_outline
        from sqlmesh_like.plan.edits.recorded_query import recorded_query
        from sqlmesh_like.plan.fingerprint import meaning
        from sqlmesh_like.plan.queries.query_changes import query_parts

        model = self.compiled.model
        recorded = strategy if model.config.snapshot is None else "snapshot"
        part = self.slice if self.slice is not None and self.slice.left else None
        others = [item for item in self.inputs if item.ref.unique_id != model.unique_id]
        frontier: dict[str, str] = {item.ref.unique_id: item.end for item in others if item.end is not None}
        price = self.price.recorded(self.target.record, done) if self.price is not None else {}
        return TableRecord(
            model.unique_id, self.fingerprint, frontier, self.now.isoformat(), recorded,
            model.config.partition_by, buckets, dict(rows), _repeating(self.inputs),
            (started or self.now).isoformat(), self._seconds_expected(strategy),
            {**paces(self.target), **price},
            query_parts(self.compiled), meaning(self.compiled), stored_outline(self.compiled),
            recorded_query(self.compiled),
            model.config.frozen_before or "", part.built if part else 0, (part.left or ()) if part else (),
        )  # fmt: skip

    def _seconds_expected(self, strategy: Strategy) -> float:
        if self.estimate is None or not self.target.exists:
            return 0.0  # how much a first build writes is not known in advance
        works = {**dict(self.estimate.ways), "full_refresh": self.estimate.full}
        return round(works[strategy].seconds_expected, 3) if strategy in works else 0.0


def plan_model(
    compiled: CompiledModel,
    target: TableState,
    states: Mapping[str, TableState],
    history: History,
    now: datetime,
    *,
    full_refresh: bool = False,
    awaited: Collection[str] = (),
) -> PlannedModel:
    """Plan one model. `states` are its inputs as pinned for this run, by unique id.

    `awaited` are inputs that the same run will change first; only `explain` plans before they have changed.
    """
    print_ = _fingerprint(compiled)
    if not full_refresh and target.record is not None and not target.record.has_fingerprint(print_):
        compiled, print_ = _as_recorded(target.record, compiled, print_)
    inputs = tuple(
        input_version(ref, states[ref.unique_id], target.record, history, awaits=ref.unique_id in awaited)
        for ref in _required_inputs(compiled, states)
    )
    is_later = is_clock_moved(compiled.clock_calls, target, now)
    is_idle = not full_refresh and not is_later and not any(item.has_moved for item in inputs)
    inputs = tuple(_with_repeats(item, target.record, history, is_idle) for item in inputs)
    forced = _reasons_to_rebuild(compiled, target, inputs, print_, history, full_refresh, not is_idle)
    inputs = inputs if is_idle and not forced else tuple(_with_volume(item, history) for item in inputs)
    declared = frozen_partitions(compiled)
    require_tables(compiled, declared, (item.state.kind for item in inputs))
    is_partial = target.record is not None and bool(target.record.slices_left)
    frozen = None if is_partial else kept_partitions(compiled, target, declared, full_refresh=full_refresh)
    kept = None if frozen or is_partial or not forced else _reconciliation(compiled, target, inputs, forced, history)
    edit = kept.edit if kept is not None else None
    follows = edit is not None and any(item.has_moved and not item.is_new for item in inputs)
    inputs = tuple(item.as_read() for item in inputs) if edit is not None else inputs
    if kept is not None and not kept.rewrites:
        return PlannedModel(
            compiled, target, kept.strategy, kept.reasons, inputs, print_, now,
            reconciles=True, edit=edit, follows=follows,
        )  # fmt: skip
    forced = kept.reasons if kept is not None else forced
    estimated: Estimate | None = None
    strategy: Strategy = "no_op"
    reasons: tuple[Reason, ...] = ()
    if not is_idle or forced:
        from sqlmesh_like.plan.choice import choose, estimate_work

        estimated = estimate_work(compiled, target, inputs, history)
        strategy, reasons = choose(compiled, target, forced, estimated, now)
    is_asked_for = full_refresh or not target.exists or is_partial
    is_refused = compiled.model.config.refresh == "strict" and strategy == "full_refresh" and not is_asked_for
    if frozen is not None:
        strategy, reasons = kept_strategy(compiled, target, frozen, strategy, reasons)
    return PlannedModel(
        compiled, target, strategy, reasons, inputs, print_, now, is_refused, estimated,
        advances=declared is not None, reconciles=frozen is not None and strategy == "recompute_merge",
        rewrites=kept is not None or (frozen is not None and strategy == "full_refresh"), edit=edit, follows=follows,
        frozen=frozen,
    )  # fmt: skip


def _fingerprint(compiled: CompiledModel) -> str:
    if compiled.known is not None:
        return compiled.known
    from sqlmesh_like.plan.fingerprint import fingerprint

    return fingerprint(compiled)


def _as_recorded(record: TableRecord, compiled: CompiledModel, print_: str) -> tuple[CompiledModel, str]:
    """The query with which the table goes on, and its fingerprint."""
    from sqlmesh_like.plan.edits.recorded_query import as_recorded

    recorded = as_recorded(record, compiled, print_)
    return (compiled, print_) if recorded is compiled else (recorded, _fingerprint(recorded))


def _reconciliation(
    compiled: CompiledModel,
    target: TableState,
    inputs: tuple[InputVersion, ...],
    forced: tuple[Reason, ...],
    history: History,
) -> Reconciliation | None:
    from sqlmesh_like.plan.edits.reconciliation import reconciliation

    return reconciliation(compiled, target, inputs, forced, history)


def _required_inputs(compiled: CompiledModel, states: Mapping[str, TableState]) -> list[InputRef]:
    """The inputs, without missing tables that only a comment of the query names (`-- depends_on:`)."""
    missing = [ref for ref in compiled.inputs if not states[ref.unique_id].exists]
    if not missing:
        return list(compiled.inputs)
    from sqlglot import exp

    named = {(table.db.lower(), table.name.lower()) for table in compiled.facts.tree.find_all(exp.Table)}
    unread = {r.unique_id for r in missing if (r.table.schema.lower(), r.table.identifier.lower()) not in named}
    return [ref for ref in compiled.inputs if ref.unique_id not in unread]


def is_clock_moved(calls: list[exp.Expr], target: TableState, now: datetime) -> bool:
    """Whether one of these calls has a different value than in the run that wrote the table."""
    then = target.record.now if target.record else None
    if not calls or then is None:
        return bool(calls)
    from sqlmesh_like.analyze.expressions.clock import has_moved

    return has_moved(calls, datetime.fromisoformat(then), now)


def _with_volume(item: InputVersion, history: History) -> InputVersion:
    is_known = not item.awaits and item.state.kind in ("cow", "mor")
    return replace(item, volume=volume_of(item.state, history)) if is_known else item


def volume_of(state: TableState, history: History) -> Volume:
    """How much a table holds at its newest commit."""
    return history.volume(state.uri, state.frontier) if state.frontier else Volume()


def input_version(
    ref: InputRef, state: TableState, record: TableRecord | None, history: History, *, awaits: bool
) -> InputVersion:
    """An input between the frontier in the record of its consumer's table and the one of its own state."""
    start = record.frontier.get(ref.unique_id) if record else None
    change = NO_CHANGE
    if start and state.frontier and start != state.frontier and state.kind in ("cow", "mor"):
        change = history.change(state.uri, start, state.frontier)
        if not change.files and not history.unreadable_reason(state.uri, start, state.frontier):
            start = state.frontier  # its commits advanced a frontier and wrote no rows
    return InputVersion(ref, state, start, state.frontier, change, awaits)


def _with_repeats(item: InputVersion, record: TableRecord | None, history: History, is_idle: bool) -> InputVersion:
    """Set `repeats_keys`: from the record if nothing changed, so that the input's timeline need not be read."""
    if is_idle:
        return replace(item, repeats_keys=record is not None and item.ref.unique_id in record.repeating)
    if item.end is None or item.state.kind not in ("cow", "mor"):
        return item
    return replace(item, repeats_keys=history.repeats_keys(item.state.uri, item.end))


def _reasons_to_rebuild(
    compiled: CompiledModel,
    target: TableState,
    inputs: tuple[InputVersion, ...],
    print_: str,
    history: History,
    full_refresh: bool,
    is_moved: bool,
) -> tuple[Reason, ...]:
    """Why history does not allow following the change; empty if it does."""
    if full_refresh:
        return (reason("CFG003", "asked for on the command line"),)
    if not target.exists or target.record is None:
        rule = ("HIS001", "first build") if not target.exists else ("HIS004", "no record of a run in its history")
        return (reason(*rule),)
    if target.record.slices_left:
        return (reason("HIS001", f"{len(target.record.slices_left)} slices of its first build are left"),)
    reasons: list[Reason] = []
    if target.is_foreign_on_top:
        reasons.append(reason("HIS004", "its newest commit was not written by a run of this project"))
    if not target.record.has_fingerprint(print_) and (change := _change_of_query(compiled, target, print_)):
        reasons.append(reason("HIS002", f"changed since the last run: {change}"))
    if set(target.record.frontier) != {item.ref.unique_id for item in inputs}:
        reasons.append(reason("HIS005", "the recorded frontier names other inputs"))
    elif target.record.repeating != _repeating(inputs):
        reasons.append(reason("HIS004", "plain inserts into an input: its record keys may repeat, rows get other keys"))
    for item in inputs:
        if lost := _unreadable_reason(item, history):
            reasons.append(reason("HIS003", f"{item.ref.table}: {lost}"))
    # A writer would mistake an older file of the group for the newest: merging a change into it would lose rows.
    if is_moved and not reasons and (missing := history.missing(target.uri)):
        reasons.append(reason("HIS006", missing))
    return tuple(reasons) or _config_reasons(compiled, inputs, target.record, is_moved)


def _change_of_query(compiled: CompiledModel, target: TableState, print_: str) -> str | None:
    """What differs from the query that wrote the table; None if it is of one meaning with it."""
    from sqlmesh_like.plan.fingerprint import is_of_query
    from sqlmesh_like.plan.queries.query_changes import change_of_query

    record = target.record
    assert record is not None
    return None if is_of_query(record, compiled, print_) else change_of_query(compiled, record, target)


def _repeating(inputs: tuple[InputVersion, ...]) -> tuple[str, ...]:
    return tuple(sorted(item.ref.unique_id for item in inputs if item.repeats_keys))


def _unreadable_reason(item: InputVersion, history: History) -> str | None:
    if item.start == item.end or item.start is None or item.state.kind not in ("cow", "mor"):
        return None
    if item.end is None:
        return "the table is gone"
    return history.unreadable_reason(item.state.uri, item.start, item.end)


def _config_reasons(
    compiled: CompiledModel, inputs: tuple[InputVersion, ...], record: TableRecord, is_moved: bool
) -> tuple[Reason, ...]:
    """Settings and kinds of input that require a rebuild; most do so only once an input or the clock has moved."""
    if not is_moved:
        return (reason("CFG002", "rebuilt each run"),) if _is_rebuilt_each_run(compiled) else ()
    config = compiled.model.config
    reasons: list[Reason] = []
    if config.refresh == "full":
        reasons.append(reason("CFG001", "configured"))
    if _is_rebuilt_each_run(compiled):
        reasons.append(reason("CFG002", "rebuilt each run"))
    for item in inputs:
        if item.state.kind == "files":
            reasons.append(reason("INP002", f"{item.ref.table} is not a Hudi table"))
    if not reasons and record.fingerprint.endswith(AS_WRITTEN):
        reasons.append(reason("TYP003", "the stored rows lack the state that a delta needs"))
    return tuple(reasons)


def _is_rebuilt_each_run(compiled: CompiledModel) -> bool:
    """Whether `materialized: table` requests a rebuild each run; not in a Python model, which is always a table."""
    return compiled.model.config.materialized == "table" and compiled.model.python is None
