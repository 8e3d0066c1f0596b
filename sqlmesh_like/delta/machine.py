"""The machine that brings a table up to date by its plan. Owns what every engine does alike.

That is: which program a strategy runs, the order of its steps, the clock, what is known to be empty, rescans and
recomputes as signed rows, netting to one action per key, and the check of keys. An engine is a `Backend`, which
creates steps from queries, and a `TableWriter`, which commits what they hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Literal, Protocol, TypeVar

from sqlglot import exp

from sqlmesh_like.analyze.expressions.clock import clock_calls
from sqlmesh_like.classify.rules import Reason
from sqlmesh_like.classify.strategy import Strategy
from sqlmesh_like.delta import actions
from sqlmesh_like.delta.actions import ACTIONS
from sqlmesh_like.delta.affected_keys import key_columns
from sqlmesh_like.delta.clock_boundary import at_clocks
from sqlmesh_like.delta.emptiness import without_empty
from sqlmesh_like.delta.frozen import FrozenPartitions
from sqlmesh_like.delta.keys import column, weight_of
from sqlmesh_like.delta.partitions import AFFECTED
from sqlmesh_like.delta.program import (
    TARGET,
    DeltaProgram,
    Moves,
    ProgramStep,
    Prune,
    RescanProgram,
    TablePlan,
    name_of,
    relation,
    split_relation,
)
from sqlmesh_like.delta.rows import union_all
from sqlmesh_like.names import IS_DELETED, KEY, WEIGHT

_LIVE, _FROZEN = "_sml_live", "_sml_frozen"
"""Steps of a table with frozen partitions: its signed rows, those that are applied and those that are not."""
FRESH, SIGNED = "_sml_fresh", "_sml_signed"
"""Steps of a recompute: the rows as they are to be; these and the rows that they replace, signed."""
Need = Literal["once", "repeatedly", "at once"]
"""What is done with the rows of a step: read by one other step; read by several; awaited before the next step."""
Result = TypeVar("Result", covariant=True)
Output = TypeVar("Output")


@dataclass(frozen=True)
class ReadyStep:
    """A step to be created. `query` has the clocks of the run and lacks what has no rows; it must not be modified.

    `is_empty`: it has no rows and is read all the same, by an aggregate or an outer join: only its columns matter.
    `is_proven`: all engines compute its query alike, over steps whose values are those of Spark.
    """

    name: str
    query: exp.Query
    prunes: tuple[Prune, ...] = ()
    need: Need = "once"
    is_empty: bool = False
    is_proven: bool = False


class Backend(Protocol):
    """Where the steps of one run are: relations are bound to tables, and a step is read by its name.

    `nets_by`: the form of netting that is cheap here, see `actions`.
    """

    nets_by: Literal["group", "join"]

    def empty_relations(self) -> Iterable[str]:
        """Outside relations (`changes.<input>`) that are known to have no rows."""
        ...

    def create_step(self, step: ReadyStep) -> bool:
        """Create a step. Returns whether it is known to have no rows."""
        ...

    def columns(self, name: str) -> Sequence[str]:
        """Columns of a step, or of `target.this`."""
        ...

    def first_row(self, query: exp.Query) -> tuple[object, ...]:
        """The first row of a query over steps and relations that all engines compute alike; it must not be modified."""
        ...


@dataclass(frozen=True)
class Actions:
    """What a run does to its table: the step `ACTIONS` has one row per key. `has_images`: also the column `BEFORE`.

    `signed` is the step that they were netted from; `notes`: what the run says of its work.
    """

    signed: str
    upserts: int
    deletes: int
    has_images: bool
    notes: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class MaintainedTable:
    """What the machine must know of the table. `at`: the columns that determine where a row of a key is stored.

    `unique_key`: the declared key, if its rows must be unique.
    """

    name: str
    at: tuple[str, ...] = (KEY,)
    unique_key: tuple[str, ...] = ()


class TableWriter(Protocol[Result]):
    """Commits a run to its table.

    `overwrites_partitions`: recomputed partitions replace the stored ones as a whole, instead of row by row.
    """

    overwrites_partitions: bool

    def stored_form(self, signed: str) -> str:
        """The step that has the rows of a step of signed rows as the table stores them: it may be another one."""
        ...

    def apply_actions(self, done: Actions) -> Result: ...

    def overwrite_partitions(self, rescan: RescanProgram) -> Result:
        """Replace the partitions of the step `AFFECTED` by the rows of the step `FRESH`."""
        ...

    def keep(self, notes: tuple[Reason, ...] = ()) -> Result:
        """No row changes. `notes`: what the run says of its work."""
        ...

    def rebuild(self) -> Result:
        """Replace all rows but those of frozen partitions. Raises NodeError where these cannot be kept."""
        ...

    def apply_author_strategy(self) -> Result:
        """Write the rows of the query as the author's `incremental_strategy` says."""
        ...


@dataclass
class PreparedQueries:
    """Queries with their clocks and without empty parts, for programs that run more than once.

    Preparing a query, and generating its text, takes longer than running it over a few rows.
    """

    kept: dict[tuple[object, ...], tuple[exp.Query, exp.Query | None]] = field(default_factory=dict)
    _reads: dict[int, frozenset[str]] = field(default_factory=dict)

    def query(self, query: exp.Query, now: datetime, then: datetime | None, empty: frozenset[str]) -> exp.Query | None:
        if id(query) not in self._reads:
            self._reads[id(query)] = frozenset(tables_of(query))
        known = (id(query), now, then, empty & self._reads[id(query)])
        if known not in self.kept:
            self.kept[known] = (query, ready_query(query, now, then, empty))  # the key is valid while `query` lives
        return self.kept[known][1]


@dataclass
class Machine(Generic[Output]):
    """One run of a plan. `prepared`: what earlier runs of it prepared. `frozen`: stored rows that stay as they are."""

    plan: TablePlan
    backend: Backend
    writer: TableWriter[Output]
    table: MaintainedTable
    now: datetime
    then: datetime | None
    prepared: PreparedQueries | None = None
    frozen: FrozenPartitions | None = None
    _empty: set[str] = field(default_factory=set)
    _skipped: dict[str, ProgramStep] = field(default_factory=dict)
    _notes: tuple[Reason, ...] = ()
    _counts_groups: bool = False

    def run(self, strategy: Strategy, moves: Moves) -> Output:
        """Bring the table up to date. Raises NodeError where a key is NULL or not unique; nothing is committed then."""
        self._empty |= set(self.backend.empty_relations())
        match work_of(self.plan, strategy, moves):
            case DeltaProgram() as program:
                return self._apply(self._signed_rows(program))
            case RescanProgram() as rescan:
                return self._rescan(rescan)
            case exp.Query() as build:
                self._create(ProgramStep(FRESH, build))
                if not set(self.backend.columns(FRESH)) <= set(self.backend.columns(_STORED)):
                    return self.writer.rebuild()
                return self._replace(None)
            case "author's":
                return self.writer.apply_author_strategy()
            case "nothing":
                return self.writer.keep()
            case "all rows":
                return self.writer.rebuild()

    def _rescan(self, rescan: RescanProgram) -> Output:
        if rescan.prune is None:
            self._create(ProgramStep(FRESH, rescan.query), "repeatedly")
        if self._create(ProgramStep(AFFECTED, rescan.affected), "repeatedly"):
            return self.writer.keep()
        if rescan.prune is not None:
            self._create(ProgramStep(FRESH, rescan.query, prunes=(rescan.prune,)))
        pairs = tuple(zip(rescan.partition_by, key_columns(len(rescan.partition_by)), strict=True))
        if not self.writer.overwrites_partitions:
            return self._replace(pairs)
        if self.table.unique_key:
            entering = exp.select(*map(column, self.table.unique_key)).from_(exp.table_(FRESH, quoted=True))
            self._require_unique(entering, _matching(AFFECTED, pairs, self.table.unique_key, join_type="anti"))
        return self.writer.overwrite_partitions(rescan)

    def _replace(self, part: tuple[tuple[str, str], ...] | None) -> Output:
        """Replace rows of the table by those of `FRESH`: all, or those that a row of `AFFECTED` names (`part`)."""
        names = self.backend.columns(FRESH)
        old = (
            _matching(AFFECTED, part, names, join_type="semi")
            if part
            else exp.select(*_columns(names, "t")).from_(_STORED_AS)
        )
        old = old.select(weight_of(-1))
        new = exp.select(*_columns(names), weight_of(1)).from_(exp.table_(FRESH, quoted=True))
        is_empty = self._create_proven(SIGNED, union_all([new, old]))
        return self._apply(None if is_empty else SIGNED)

    def _apply(self, signed: str | None) -> Output:
        """Net signed rows to one action per key, check the keys, and commit."""
        if signed is None:
            return self.writer.keep(self._notes)
        signed = self.writer.stored_form(signed)
        names = tuple(name for name in self.backend.columns(signed) if name != WEIGHT)
        if self.frozen is not None:
            if not self._counts_groups:
                self._note_frozen_rows(signed, names, self.frozen)
            if self._create_proven(_LIVE, _rows_of(signed, self.frozen.is_live())):
                return self.writer.keep(self._notes)
            signed = _LIVE
        by_group = self.backend.nets_by == "group" or not self._are_single(signed)
        net = actions.actions_by_group if by_group else actions.actions_by_join
        self._create_proven(ACTIONS, net(signed, names, self.table.at), "repeatedly")
        upserts, deletes, copies = self.backend.first_row(actions.action_counts(has_copies=by_group))
        actions.require_unique(self.table.name, self.table.unique_key, copies=_number(copies))
        if upserts and self.table.unique_key:
            rows = exp.table_(ACTIONS, quoted=True)
            entering = exp.select(*map(column, self.table.unique_key)).from_(rows)
            entering = entering.where(exp.not_(column(IS_DELETED)))
            staying = _matching(ACTIONS, ((KEY, KEY),), self.table.unique_key, join_type="anti")
            if self.frozen is not None:  # a row that has moved may be there, too
                staying = staying.where(self.frozen.is_live("t"))
            self._require_unique(entering, staying)
        return self.writer.apply_actions(Actions(signed, _number(upserts), _number(deletes), by_group, self._notes))

    def _note_frozen_rows(self, signed: str, names: tuple[str, ...], frozen: FrozenPartitions) -> None:
        """Count the rows of frozen partitions that would have come, changed or gone."""
        if self._create_proven(_FROZEN, _rows_of(signed, frozen.is_frozen()), "repeatedly"):
            return
        upserts, deletes = self.backend.first_row(actions.frozen_counts(_FROZEN, names, self.table.at))
        self._notes = (*self._notes, *frozen.left_out(_number(upserts), _number(deletes)))

    def _note_frozen_groups(self, program: DeltaProgram) -> None:
        """Count the groups of frozen partitions that would have changed, if the program merges stored states."""
        if self.frozen is None or program.partitions is None or program.groups in self._empty:
            return
        self._counts_groups = True
        groups = exp.select("*").from_(program.partitions.subquery("g")).where(self.frozen.is_frozen())
        if not self._create(ProgramStep(_FROZEN, groups)):
            [count] = self.backend.first_row(actions.row_count(_FROZEN))
            self._notes = (*self._notes, *self.frozen.left_out(_number(count), 0))

    def _are_single(self, signed: str) -> bool:
        """Whether at most one row of each key leaves. Raises NodeError if more than one enters."""
        entering, leaving = map(_number, self.backend.first_row(actions.copies_of_keys(signed, self.table.at)))
        actions.require_unique(self.table.name, self.table.unique_key, copies=entering)
        return leaving <= 1

    def _require_unique(self, entering: exp.Select, staying: exp.Select) -> None:
        copies, nulls = self.backend.first_row(actions.key_conflicts(entering, staying, self.table.unique_key))
        actions.require_unique(self.table.name, self.table.unique_key, copies=_number(copies), nulls=_number(nulls))

    def _signed_rows(self, program: DeltaProgram) -> str | None:
        """Run the steps of a program; None where they show that no row changes, else the step with the signed rows."""
        needs = needs_of_steps(program)
        for step in program.steps:
            self._create(step, needs[step.name])
        self._notes = tuple(note for step, note in program.notes if step not in self._empty)
        self._note_frozen_groups(program)
        return None if not program.steps or program.result in self._empty else program.result

    def _create(self, step: ProgramStep, need: Need = "once") -> bool:
        """Create a step, unless what is known to be empty shows that it has no rows. Returns whether it has none."""
        query = None if step.unless_empty in self._empty else self._ready(step.query)
        if query is None:
            self._skipped[step.name] = step
            is_empty = True
        else:
            self._create_skipped_steps(query)
            is_empty = self.backend.create_step(ReadyStep(step.name, query, step.prunes, need))
        (self._empty.add if is_empty else self._empty.discard)(step.name)
        return is_empty

    def _create_skipped_steps(self, query: exp.Query) -> None:
        """Create skipped steps that a query reads all the same, in an aggregate or an outer join, without rows."""
        for name in tables_of(query):
            if (step := self._skipped.pop(name, None)) is not None:
                self._create_skipped_steps(step.query)
                whole = at_clocks(step.query, self.now, self.then)
                self.backend.create_step(ReadyStep(name, whole, is_empty=True))

    def _create_proven(self, name: str, query: exp.Query, need: Need = "once") -> bool:
        return self.backend.create_step(ReadyStep(name, query, need=need, is_proven=True))

    def _ready(self, query: exp.Query) -> exp.Query | None:
        make = ready_query if self.prepared is None else self.prepared.query
        return make(query, self.now, self.then, frozenset(self._empty))


def work_of(
    plan: TablePlan, strategy: Strategy, moves: Moves
) -> DeltaProgram | RescanProgram | exp.Query | Literal["author's", "nothing", "all rows"]:
    """What a strategy runs: the program of a change, a rescan, or the whole query whose rows are compared.

    In the other cases it runs no program: the author's SQL decides, nothing changes, or all rows are replaced.
    """
    match strategy:
        case "row_based" | "aggregate_merge" | "group_recompute":
            return plan.program_for(moves) or "all rows"
        case "partition_rescan":
            return plan.rescan or "all rows"
        case "recompute_merge":
            return plan.build or "all rows"
        case "append" | "merge" | "delete+insert" | "insert_overwrite":
            return "author's"
        case "no_op":
            return "nothing"
        case "full_refresh":
            return "all rows"


def ready_query(query: exp.Query, now: datetime, then: datetime | None, empty: frozenset[str]) -> exp.Query | None:
    """A query with the clocks of two runs, without the parts that have no rows; None if none has any.

    The query itself if nothing has to be changed.
    """
    if empty.isdisjoint(tables_of(query)) and not clock_calls(query):
        return query
    return without_empty(at_clocks(query, now, then), lambda table: name_of(table) in empty)


def tables_of(query: exp.Expr) -> list[str]:
    """Steps and outside relations that a query reads, each once."""
    return list(dict.fromkeys(name_of(table) for table in query.find_all(exp.Table)))


def reads_table(query: exp.Expr) -> bool:
    """Whether a query reads rows of a table, or of a change, and not only of steps."""
    return any(split_relation(table) for table in query.find_all(exp.Table))


_STORED = f"target.{TARGET}"
_STORED_AS = exp.alias_(relation("target", TARGET), "t", table=True)


def needs_of_steps(program: DeltaProgram) -> Mapping[str, Need]:
    """What is done with each step: rows that decide whether and where a table is read are awaited."""
    reading = {step.name for step in program.steps if reads_table(step.query)}
    readers = Counter(name_of(table) for step in program.steps for table in step.query.find_all(exp.Table))
    deciding = {
        name for step in program.steps if step.name in reading for name in (step.unless_empty, *tables_of(step.query))
    }
    return {
        step.name: "at once" if step.name in reading | deciding or readers[step.name] > 1 else "once"
        for step in program.steps
    }


def _rows_of(step: str, condition: exp.Expr) -> exp.Select:
    return exp.select("*").from_(exp.table_(step, quoted=True)).where(condition)


def _matching(
    step: str, pairs: Sequence[tuple[str, str]], names: Sequence[str], *, join_type: Literal["semi", "anti"]
) -> exp.Select:
    """Columns of stored rows for which a step has a row (`semi`) or none (`anti`). `pairs`: equal columns of both."""
    same = [exp.NullSafeEQ(this=column(own, "t"), expression=column(its, "a")) for own, its in pairs]
    other = exp.alias_(exp.table_(step, quoted=True), "a", table=True)
    return exp.select(*_columns(names, "t")).from_(_STORED_AS).join(other, on=exp.and_(*same), join_type=join_type)


def _columns(names: Sequence[str], table: str | None = None) -> list[exp.Expr]:
    return [column(name, table) for name in names]


def _number(value: object) -> int:
    """A count that an engine returned; NULL is 0."""
    return 0 if value is None else int(str(value))
