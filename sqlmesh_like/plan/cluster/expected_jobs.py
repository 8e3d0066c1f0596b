"""How many jobs of executors the next run of a model will start. Owns the count, before anything is read.

It follows the program as the machine runs it: steps that an unmoved input leaves empty are not run, nor are those that
seldom have rows (`ProgramStep.is_rare`). What a step has to look up is not known yet: each is taken to have rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from sqlmesh_like.delta.machine import needs_of_steps, ready_query, tables_of, work_of
from sqlmesh_like.delta.program import (
    DeltaProgram,
    ProgramStep,
    Prune,
    RelationRole,
    RescanProgram,
    split_relation,
)
from sqlmesh_like.plan.cluster.lookup_columns import lookup_pairs
from sqlmesh_like.plan.model_plan import SMALL_INPUT, InputVersion, PlannedModel

LOOKUP_JOBS = 2
"""Of a question for rows by keys: one that reads the table, one that sends the keys to executors."""
_COMMIT_JOBS, _COMPARE_JOBS = 6, 3
"""Of a commit by executors: Hudi tags, groups, writes and reports in jobs of their own. Of rows that are compared with
the stored ones before it: those that differ are counted, and so are copies of a key."""


def jobs_for_driver(planned: PlannedModel, most_bytes: int) -> int:
    """Jobs of a change that the driver computes: questions about tables that it may not read, above `most_bytes`."""
    if _most_read(planned) <= most_bytes:
        return 0
    reads = _DriverReads(planned, most_bytes)
    for query, prunes in _ready_steps(planned):
        reads.add(query, prunes)
    return reads.jobs


def jobs_of_executors(planned: PlannedModel) -> int:
    """Jobs of a run that executors do as a whole: steps whose rows are awaited, and the commit."""
    work = work_of(planned.table, planned.strategy, planned.moves)
    if not isinstance(work, DeltaProgram):
        is_compared = planned.strategy != "full_refresh"
        return len(planned.inputs) + _COMMIT_JOBS + (_COMPARE_JOBS if is_compared else 0)
    needs, ready = needs_of_steps(work), _non_empty(planned, work.steps)
    awaited = [query for step, query in ready if needs[step.name] == "at once"]
    return sum(1 + len(_outside(query)) for query in awaited) + _COMMIT_JOBS


def _most_read(planned: PlannedModel) -> int:
    """Bytes of all tables and changes of a plan."""
    target = planned.estimate.full.rewritten if planned.estimate is not None else 0
    volumes = (item.volume.bytes for item in planned.inputs if item.volume is not None)
    return target + sum(volumes) + sum(item.change.read for item in planned.inputs)


def _ready_steps(planned: PlannedModel) -> Iterable[tuple[exp.Query, Sequence[Prune]]]:
    """The queries that a strategy runs, without what is taken to be empty."""
    match work_of(planned.table, planned.strategy, planned.moves):
        case DeltaProgram() as program:
            return [(query, step.prunes) for step, query in _non_empty(planned, program.steps)]
        case RescanProgram() as rescan:
            prunes = () if rescan.prune is None else (rescan.prune,)
            return [(rescan.affected, ()), (rescan.query, prunes)]
        case exp.Query() as build:
            return [(build, ())]
    return ()


def _non_empty(planned: PlannedModel, steps: Sequence[ProgramStep]) -> list[tuple[ProgramStep, exp.Query]]:
    empty = {f"changes.{item.ref.unique_id}" for item in planned.inputs if not item.has_moved}
    ready: list[tuple[ProgramStep, exp.Query]] = []
    for step in steps:
        is_skipped = step.is_rare or step.unless_empty in empty
        query = None if is_skipped else ready_query(step.query, planned.now, planned.then, frozenset(empty))
        if query is None:
            empty.add(step.name)
        else:
            ready.append((step, query))
    return ready


@dataclass
class _DriverReads:
    """The tables that a program has read so far on the driver, as `duckdb.programs.read_limit` counts them."""

    planned: PlannedModel
    most: int
    jobs: int = 0
    _bytes: int = 0
    _counted: set[tuple[RelationRole, str]] = field(default_factory=set)
    _asked: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)

    def add(self, query: exp.Query, prunes: Sequence[Prune]) -> None:
        """Count a step: what the driver reads for it, and the jobs by which executors read the rest."""
        outside = _outside(query)
        is_too_large = self._bytes + sum(self._size(*each) for each in set(outside) - self._counted) > self.most
        if is_too_large and (own := self._lookup(outside, prunes, query)) is not None:
            self.jobs += 0 if own in self._asked else LOOKUP_JOBS
            self._asked.add(own)
        elif is_too_large and any(role != "changes" for role, _ in outside):
            self.jobs += 1 + len(tables_of(query))  # each table and each step that is sent along is broadcast
        else:
            self._bytes += sum(self._size(*each) for each in set(outside) - self._counted)
            self._counted |= set(outside)

    def _lookup(
        self, outside: Sequence[tuple[RelationRole, str]], prunes: Sequence[Prune], query: exp.Query
    ) -> tuple[str, tuple[str, ...]] | None:
        """The input in which the step looks rows up by keys, and their columns; None if it is another kind of step."""
        if len(outside) != 1 or outside[0][0] != "current" or query.find(exp.Star):
            return None
        item = self._input(outside[0][1])
        is_large = item.volume is not None and item.volume.bytes > SMALL_INPUT and item.state.kind == "cow"
        pairs = lookup_pairs(prunes, item.ref.unique_id, item.state.stored or (), None) if is_large else None
        return None if pairs is None else (item.ref.unique_id, tuple(own for own, _ in pairs[0]))

    def _size(self, role: RelationRole, name: str) -> int:
        if role == "target":
            return self.planned.estimate.full.rewritten if self.planned.estimate is not None else 0
        item = self._input(name)
        if role == "changes":
            return item.change.read
        return item.volume.bytes if item.volume is not None else 0

    def _input(self, unique_id: str) -> InputVersion:
        return next(item for item in self.planned.inputs if item.ref.unique_id == unique_id)


def _outside(query: exp.Query) -> list[tuple[RelationRole, str]]:
    """The outside relations of a query, one entry for each time that it reads one."""
    return [outside for table in query.find_all(exp.Table) if (outside := split_relation(table))]
