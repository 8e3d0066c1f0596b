"""The cost of each sound strategy, and of a full refresh. Owns the estimate; all of them yield the same rows.

All of it comes from commit metadata: rows, files and bytes that commits wrote, and how long earlier runs of the same
table took. If a file group contains a changed row, copy-on-write rewrites all of it, so a change that is spread over a
table costs as much as the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import exp, log
from typing import TYPE_CHECKING, Literal, TypeAlias

from sqlmesh_like.plan.cluster.job_price import is_of_job
from sqlmesh_like.plan.history import ChangeVolume, TableRecord, TableState, Volume, completed_at

if TYPE_CHECKING:  # what has nothing to do imports none of it
    from sqlmesh_like.classify.strategy import Strategy

# Seconds per byte, measured on two cores. Merging reads, looks up and writes record by record: 1,000 rows spread over a
# million took several times as long as writing the million in bulk.
_SCAN, _SHUFFLE, _WRITE, _MERGE = 1e-8, 1e-8, 4e-8, 10e-8
_FIXED = 1.0
"""Seconds that jobs and the commit take whatever their size."""

CLEARLY = 1.5
"""A full refresh must be this many times cheaper: estimates are rough, and plans should not flip from run to run."""
MUCH_CHANGED = 0.5
"""Share of an input's rows that must have changed. Below it a rebuild may be quicker here, but hands every row to the
models downstream as changed."""
WORTH_IT = 100_000
"""Changed rows below which the difference is a matter of seconds."""
WORTH_SWITCHING = 1.0
"""Seconds that another strategy must save. Below, the jobs themselves count."""
WORTH_WEIGHING = 8_000_000
"""Bytes of the inputs below which every strategy is quick, and the default one is used."""

_LEAST, _MOST = 0.05, 20.0
"""A pace outside these bounds is not used: the machine slept, its clock was set, or a commit rewrote an older one."""


@dataclass(frozen=True)
class InputCost:
    """One input: how much it holds and how much of it changed since its consumer's frontier.

    `is_split`: it is partitioned as the target is, so only partitions that the change touches are read.
    """

    volume: Volume
    change: ChangeVolume
    is_split: bool = False

    @property
    def changed_share(self) -> float:
        """Between 0 and 1: the share of its rows, or of its bytes if the number of rows is not known."""
        if self.volume.rows:
            return min(1.0, self.change.rows / self.volume.rows)
        return min(1.0, self.change.bytes / self.volume.bytes) if self.volume.bytes else float(self.change.rows > 0)

    @property
    def touched_partitions(self) -> float:
        """Share of its partitions that the change touches, 1 if it has none."""
        return min(1.0, self.change.partitions / self.volume.partitions) if self.volume.partitions > 1 else 1.0

    def affected_partitions(self, target: Volume) -> float:
        """Share of the target's partitions that the change falls into; if not split alike, rows fall at random."""
        return self.touched_partitions if self.is_split else _touched_share(self.change.rows, max(1, target.partitions))

    def read_of(self, affected: float) -> float:
        """Bytes of this input that are read to look up this share of the target's partitions."""
        return self.volume.bytes * (affected if self.is_split else 1.0)


EngineName = Literal["duckdb", "spark"]


@dataclass(frozen=True)
class ClusterWork:
    """Who would do the work of a strategy where executors are on other machines, and the jobs that they would have.

    `duckdb` is the driver's process, `spark` the executors; None: nothing is scanned, computed or committed.
    `job_seconds`: the price of a job.
    """

    scans: EngineName | None
    computes: EngineName | None
    commits: EngineName | None
    jobs: int = 0
    job_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        return self.jobs * self.job_seconds


@dataclass(frozen=True)
class WorkEstimate:
    """Bytes that a run reads, shuffles and writes.

    `pace`: how many times as long such a run of this table takes as on two idle cores, according to earlier runs.
    `cluster` None: all of the work is done on one machine, or it is not known yet who does it.
    """

    read: int
    shuffled: int
    rewritten: int
    is_merge: bool = False
    pace: float = 1.0
    cluster: ClusterWork | None = None

    @property
    def has_jobs(self) -> bool:
        """Whether executors on other machines are expected to have jobs."""
        return self.cluster is not None and self.cluster.jobs > 0

    @property
    def seconds(self) -> float:
        return self.pace * self.seconds_expected + (self.cluster.seconds if self.cluster is not None else 0.0)

    @property
    def seconds_expected(self) -> float:
        """Seconds on two idle cores, whatever earlier runs took, and without jobs on other machines."""
        if not (self.read or self.rewritten):
            return 0.0
        write = _MERGE if self.is_merge else _WRITE
        return _FIXED + _SCAN * self.read + _SHUFFLE * self.shuffled + write * self.rewritten


NO_WORK = WorkEstimate(0, 0, 0)
Way: TypeAlias = "tuple[Strategy, WorkEstimate]"
"""A sound strategy and its work."""


@dataclass(frozen=True)
class Estimate:
    """The work of the sound strategies, the chosen one first, and of a full refresh.

    `is_timed`: seconds are based on earlier runs of this table; otherwise they are those of two idle cores.
    """

    changed_rows: int
    changed_files: int
    changed_share: float  # of the input that changed most
    ways: tuple[Way, ...]
    full: WorkEstimate
    is_timed: bool = False

    @property
    def strategy(self) -> Strategy:
        return self.ways[0][0]

    @property
    def incremental(self) -> WorkEstimate:
        return self.ways[0][1]

    @property
    def other(self) -> Way | None:
        """The strategy that the chosen one was preferred to; None if there was no other."""
        return self.ways[1] if len(self.ways) > 1 else None

    @property
    def is_full_clearly_cheaper(self) -> bool:
        is_large = self.changed_rows >= WORTH_IT and self.changed_share >= MUCH_CHANGED
        is_known = self.full.seconds > 0
        return is_known and is_large and self.incremental.seconds >= CLEARLY * self.full.seconds

    def work(self, strategy: Strategy) -> WorkEstimate:
        """The work of the strategy that runs: none, a full refresh, or the chosen incremental one."""
        if strategy == "no_op":
            return NO_WORK
        return self.full if strategy == "full_refresh" else self.incremental


def estimate(
    strategy: Strategy,
    inputs: Sequence[InputCost],
    target: Volume,
    *,
    alternatives: Sequence[Strategy] = (),
    has_logs: bool = False,
    has_whole_groups: bool = False,
    has_own_rows: bool = False,
    paces: Mapping[str, float] | None = None,
) -> Estimate:
    """Estimate the work of an incremental strategy on these inputs, and that of a full refresh.

    One of `alternatives` is chosen instead if it is clearly cheaper. `has_logs`: the target is merge-on-read, where
    changed rows are appended and no file is rewritten. `has_whole_groups`: something is computed over all rows of a
    query below, such as a window without PARTITION BY. `has_own_rows`: of groups that are recomputed the table itself
    holds what is needed, as a rule. `paces`: those of earlier runs, by strategy.

    >>> table = Volume(bytes=1000, rows=10, files=1, partitions=1)
    >>> burst = InputCost(table, ChangeVolume(rows=10, files=1, bytes=1000, partitions=1))
    >>> found = estimate("row_based", [burst], table)
    >>> found.incremental.read, found.incremental.rewritten, found.full.read, found.full.rewritten
    (2000, 1000, 1000, 1000)
    """
    everything = sum(item.volume.bytes for item in inputs)
    rows = sum(item.change.rows for item in inputs)

    def with_pace(item: Strategy, work: WorkEstimate) -> WorkEstimate:
        return replace(work, pace=_pace(item, paces or {}))

    def incremental(item: Strategy) -> WorkEstimate:
        if item == "group_recompute" and has_own_rows:
            work = _incremental("row_based", inputs, target, rows, has_logs, has_whole_groups)
            own = target.bytes if work.read else 0  # the changed rows meet those of the table
            return replace(work, read=work.read + own, shuffled=work.shuffled + own)
        return _incremental(item, inputs, target, rows, has_logs, has_whole_groups)

    ways = [(item, with_pace(item, incremental(item))) for item in (strategy, *alternatives)]
    return Estimate(
        changed_rows=rows,
        changed_files=sum(item.change.files for item in inputs),
        changed_share=max((item.changed_share for item in inputs if item.change.rows), default=0.0),
        ways=preferred(ways) if everything >= WORTH_WEIGHING else tuple(ways),
        full=with_pace("full_refresh", WorkEstimate(everything, everything, target.bytes)),
        is_timed=bool(paces),
    )


def preferred(ways: Sequence[Way]) -> tuple[Way, ...]:
    """The ways with one of them first: the first one, or the cheapest if that is clearly cheaper."""
    best = min(ways, key=lambda way: way[1].seconds)
    if not _is_clearly_cheaper(best[1], ways[0][1]):
        return tuple(ways)
    return (best, *(way for way in ways if way is not best))


def _pace(strategy: Strategy, paces: Mapping[str, float]) -> float:
    """The pace of a strategy; for one that has not run on this table yet, the geometric mean of the others.

    >>> _pace("row_based", {"row_based": 2.0}), _pace("row_based", {"full_refresh": 4.0, "recompute_merge": 1.0})
    (2.0, 2.0)
    """
    if strategy in paces or not paces:
        return paces.get(strategy, 1.0)
    return exp(sum(map(log, paces.values())) / len(paces))


def _is_clearly_cheaper(work: WorkEstimate, than: WorkEstimate) -> bool:
    return than.seconds >= CLEARLY * work.seconds and than.seconds - work.seconds >= WORTH_SWITCHING


def _incremental(
    strategy: Strategy, inputs: Sequence[InputCost], target: Volume, rows: int, has_logs: bool, has_whole_groups: bool
) -> WorkEstimate:
    everything = sum(input_.volume.bytes for input_ in inputs)
    moved = [input_ for input_ in inputs if input_.change.rows]
    # Changed rows are netted, as they were and as they are.
    read: float = sum(input_.change.read for input_ in moved)
    shuffled = sum(2 * input_.changed_share * input_.volume.bytes for input_ in moved)
    affected = max((input_.affected_partitions(target) for input_ in moved), default=0.0)
    narrowed = sum(input_.read_of(affected) for input_ in inputs) if moved else 0
    match strategy:
        case "partition_rescan":
            # Only the partitions of changed rows matter, and they are few.
            rescanned = affected * everything if moved else 0
            return WorkEstimate(round(read + narrowed), round(rescanned), round(affected * target.bytes))
        case "group_recompute":
            # The groups of changed rows are looked up in the inputs as they were and as they are.
            share = max((input_.changed_share for input_ in moved), default=0.0)
            if has_whole_groups and moved:
                share, narrowed = 1.0, everything
            read += 2 * narrowed
            shuffled += 2 * share * everything
        case "recompute_merge":
            # The table is compared with all rows that it should hold.
            read, shuffled = everything + target.bytes, everything + 2 * target.bytes
        case _:
            # Changed rows of one side of a join are joined with all rows of the others.
            read += sum(everything - input_.volume.bytes for input_ in moved)
    if has_logs:
        appended = min(1.0, rows / target.rows) if target.rows else 0.0
        return WorkEstimate(round(read), round(shuffled), round(appended * target.bytes))
    return WorkEstimate(
        round(read), round(shuffled), round(_rewritten_share(moved, target, rows) * target.bytes), is_merge=True
    )


def _rewritten_share(moved: Sequence[InputCost], target: Volume, rows: int) -> float:
    """Share of the target's bytes that a merge of this many rows rewrites: file groups, inside known partitions."""
    within = max((input_.touched_partitions if input_.is_split else 1.0 for input_ in moved), default=0.0)
    return within * _touched_share(rows, max(1.0, within * target.files)) if target.files else 0.0


def _touched_share(rows: int, places: float) -> float:
    """Expected share of file groups, or of partitions, that hold at least one of this many rows, as keys are hashed.

    >>> _touched_share(1, 4), round(_touched_share(4, 4), 2), _touched_share(1000, 4)
    (0.25, 0.68, 1.0)
    """
    return 1 - (1 - 1 / places) ** rows


def paces(state: TableState) -> Mapping[str, float]:
    """Seconds taken ÷ seconds expected, by strategy: a mean of its runs in which older ones count for less.

    A commit records when its work began and how long it was expected to take; Hudi's completion time says when it
    ended. That is known only afterwards, so each commit records the paces of the runs before it.
    """
    record = state.record
    if record is None:
        return {}
    earlier = {name: pace for name, pace in record.paces.items() if not is_of_job(name)}
    if (taken := _seconds(state, record)) is None:
        return earlier
    pace = taken / record.seconds_expected
    if not _LEAST <= pace <= _MOST:
        return earlier
    before = earlier.get(record.strategy, pace)
    return {**earlier, record.strategy: round((pace + before) / 2, 3)}


def _seconds(state: TableState, record: TableRecord) -> float | None:
    """How long the newest run took; None if its commit does not record it."""
    try:
        began = datetime.fromisoformat(record.started)
        taken = (completed_at(state.frontier) - began).total_seconds()
    except (ValueError, TypeError):
        return None
    return taken if taken > 0 and record.seconds_expected > 0 else None
