"""Plans as trees for people. Owns the text form of `sml explain`; `plan.explain` owns the JSON form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from click import unstyle

from sqlmesh_like.classify.aggregates import AggregateVerdict
from sqlmesh_like.classify.rules import Reason
from sqlmesh_like.classify.strategy import Strategy
from sqlmesh_like.cli.printing.output import size
from sqlmesh_like.cli.printing.writer import style_text
from sqlmesh_like.control_characters import escape_line
from sqlmesh_like.plan.catalog import Catalog
from sqlmesh_like.plan.cost import EngineName, Estimate, WorkEstimate
from sqlmesh_like.plan.model_plan import InputVersion, PlannedModel
from sqlmesh_like.plan.router import Route
from sqlmesh_like.plan.write_cost import WriteCost

_COLOURS = {
    "no_op": "bright_black", "row_based": "green", "aggregate_merge": "cyan", "partition_rescan": "blue",
    "group_recompute": "magenta", "recompute_merge": "bright_yellow", "full_refresh": "yellow",
    "mergeable": "green", "rescan": "yellow",
}  # fmt: skip
_ENGINES = {"duckdb": "DuckDB", "spark": "Spark"}
_WIDTH = len("aggregates")
PlanRow = Sequence[str]


@dataclass(frozen=True)
class Branch:
    """A word with a text or a single row beside it, or with aligned rows below it."""

    word: str
    text: str = ""
    rows: tuple[PlanRow, ...] = ()


def plan_tree(plan: PlannedModel, route: Route) -> str:
    """Return one model's plan with colours, which `echo_styled` removes where there is no terminal.

    The engine is named where Spark does some of the work, or a cluster's driver does it.
    """
    compiled = plan.compiled
    aggregates = compiled.advised.aggregates
    verdict_reasons = {verdict.reason for verdict in aggregates}
    reasons = [reason for reason in compiled.advised.reasons if reason not in verdict_reasons]
    because = ""
    if plan.reasons != compiled.classification.reasons and plan.reasons:
        because = escape_line(": " + "; ".join(f"{reason.rule} {reason.message}" for reason in plan.reasons))
    refused = " – refused by refresh: strict" if plan.is_refused else ""
    branches = [
        Branch("because", rows=tuple(_reason(plan, reason) for reason in dict.fromkeys(reasons))),
        Branch("aggregates", rows=tuple(_aggregate(plan, verdict) for verdict in aggregates)),
        Branch("reads", rows=tuple((escape_line(str(item.ref.table)), _input_state(item)) for item in plan.inputs)),
        Branch("estimate", _cost(plan, plan.estimate) if plan.estimate is not None else ""),
        Branch("engine", _engine(route)),
        Branch("ways", rows=_ways(plan)),
        Branch("slices", escape_line(plan.slices.progress()) if plan.slices is not None else ""),
        Branch("next run", f"{_color_word(plan.strategy)}{refused}{because}"),
    ]
    head = f"{style_text(str(compiled.model.table), bold=True)}  {_color_word(compiled.classification.strategy)}"
    return "\n".join([head, *_lines([branch for branch in branches if branch.text or branch.rows]), ""])


def _engine(route: Route) -> str:
    if route.engine is None or not route.because:
        return ""
    return f"{_doers(route.scans, route.engine, route.commits)}: {route.because}"


def _doers(scans: EngineName | None, computes: EngineName | None, commits: EngineName | None) -> str:
    doers = [(scans, "scans"), (computes, "computes"), (commits, "commits")]
    parts = [(engine, [work for _, work in group]) for engine, group in groupby(doers, key=lambda doer: doer[0])]
    done = (f"{_ENGINES[engine]} {' and '.join(', '.join(works).rsplit(', ', 1))}" for engine, works in parts if engine)
    return ", ".join(done)


def _ways(plan: PlannedModel) -> tuple[PlanRow, ...]:
    """Who does the work of each strategy where executors are on other machines, the jobs and the seconds expected."""
    if plan.estimate is None or plan.price is None or not plan.target.exists:
        return ()
    ways = dict([*plan.estimate.ways, ("full_refresh", plan.estimate.full)])
    each = "measured" if plan.price.measured is not None else "not measured yet"
    return tuple(
        (
            _color_word(name),
            _doers(done.scans, done.computes, done.commits),
            f"{done.jobs} job{'' if done.jobs == 1 else 's'}",
            f"about {work.seconds:.2g} s",
            f"{done.job_seconds:.2g} s a job ({each})" if done.jobs else "",
        )
        for name, work in ways.items()
        if (done := work.cluster) is not None
    )


def plan_summary(plans: Iterable[PlannedModel]) -> str:
    """Return a line with the number of plans by strategy, and by the strategy of the next run.

    >>> plan_summary([])
    'no tables'
    """
    planned = list(plans)
    if not planned:
        return "no tables"
    kept = Counter(plan.compiled.classification.strategy for plan in planned)
    following = Counter(plan.strategy for plan in planned)
    count = f"{len(planned)} table{'s' if len(planned) > 1 else ''}"
    return f"{count}: {_count_text(kept)} – next run: {_count_text(following)}"


def write_costs_text(catalog: Catalog, costs: Iterable[WriteCost]) -> str:
    """Return a line for each table with what its newest commits rewrote, in descending order of bytes."""
    rows = [
        (
            escape_line(str(catalog.places[cost.unique_id].table)),
            f"{cost.amplification:,.0f} rows written for one that changed",
            f"{size(cost.bytes)} in {cost.commits} commit{'s' if cost.commits > 1 else ''}",
            f"{cost.files:,} file{'s' if cost.files > 1 else ''}",
            style_text(f"→ {cost.advice}", fg="yellow") if cost.advice else "",
        )
        for cost in sorted(costs, key=lambda cost: -cost.bytes)
    ]
    return "\n".join(["written lately", *(f"  {row}" for row in _align_cells(rows)), ""])


def _count_text(counts: Mapping[Strategy, int]) -> str:
    return ", ".join(f"{count} {_color_word(name)}" for name, count in sorted(counts.items(), key=lambda one: -one[1]))


def _lines(branches: Sequence[Branch]) -> list[str]:
    lines: list[str] = []
    for number, branch in enumerate(branches, 1):
        is_last = number == len(branches)
        rows = _align_cells(branch.rows)
        beside = rows.pop() if len(rows) == 1 else branch.text
        lines.append(f"{'└─' if is_last else '├─'} {branch.word.ljust(_WIDTH)} {beside}".rstrip())
        stem = "   " if is_last else "│  "
        lines += [f"{stem}{'└─' if place == len(rows) else '├─'} {row}" for place, row in enumerate(rows, 1)]
    return lines


def _align_cells(rows: Sequence[PlanRow]) -> list[str]:
    """Align the cells of each column; cells of more than 60 characters do not widen it, trailing blanks are removed."""
    columns = max((len(row) for row in rows), default=0)
    widths = [
        max((n for row in rows if len(row) > i and (n := len(unstyle(row[i]))) <= 60), default=0)
        for i in range(columns)
    ]
    return [
        "  ".join(cell + " " * (widths[i] - len(unstyle(cell))) for i, cell in enumerate(row)).rstrip() for row in rows
    ]


def _reason(plan: PlannedModel, reason: Reason) -> PlanRow:
    return reason.rule, escape_line(f"{reason.message}{_hint(reason)}"), _place(plan, reason)


def _aggregate(plan: PlannedModel, verdict: AggregateVerdict) -> PlanRow:
    reason = verdict.reason
    why = f"{reason.rule} {reason.message}{_hint(reason)}" if reason.rule != "AGG001" else ""
    return _color_word(verdict.verdict), escape_line(verdict.sql), _place(plan, reason), escape_line(why)


def _input_state(item: InputVersion) -> str:
    if item.awaits:
        return "changes before, in the same run"
    if item.end is None:
        return style_text("not there yet", fg="yellow")
    if item.start is None:
        return "not read yet"
    if not item.has_moved:
        return "up to date"
    compared = f" (file slices are compared: {item.change.compared})" if item.change.compared else ""
    return style_text(f"{item.change.rows:,} rows pending", bold=True) + compared


def _cost(plan: PlannedModel, estimate: Estimate) -> str:
    """Return the cost of the next run and, where there was a choice, of the alternatives."""
    if not plan.target.exists:
        return f"reads {size(estimate.full.read)}"  # the size of the result is not known yet
    work = _work(estimate.work(plan.strategy))
    change = f"{estimate.changed_rows:,} changed rows in {estimate.changed_files:,} file groups"
    source = "" if estimate.is_timed else " (by size alone: no run of this table has been timed)"
    if plan.strategy != "full_refresh":
        others = "".join(f"; {name} {_work(other)}" for name, other in estimate.ways[1:])
        return f"{change}: {work}{others}; a full refresh {_work(estimate.full)}{source}"
    is_chosen = any(reason.rule == "CST001" for reason in plan.reasons)
    return f"{change}: {work}; following them {_work(estimate.incremental)}{source}" if is_chosen else work


def _work(work: WorkEstimate) -> str:
    return f"reads {size(work.read)}, rewrites {size(work.rewritten)} in about {work.seconds:.2g} s"


def _hint(reason: Reason) -> str:
    """Return what has been tried and makes the plan cheaper, empty if nothing has."""
    return f" ({reason.hint})" if reason.hint else ""


def _place(plan: PlannedModel, reason: Reason) -> str:
    if not reason.line:
        return ""
    return style_text(f"{plan.compiled.model.path}:{reason.line}:{reason.column}", fg="bright_black")


def _color_word(word: str) -> str:
    return style_text(word, fg=_COLOURS.get(word))
