"""The strategy of a run that has something to do. Owns the choice between what its SQL allows and what costs less."""

from __future__ import annotations

from datetime import datetime

from sqlmesh_like.analyze.algebra.lineage import is_one_group, split_columns
from sqlmesh_like.analyze.algebra.relation import Windowed, walk
from sqlmesh_like.classify.clock import time_value_calls, time_value_reasons
from sqlmesh_like.classify.rules import Reason, reason
from sqlmesh_like.classify.strategy import Strategy
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.delta.compile import goes_on_from_its_rows
from sqlmesh_like.delta.whole_window import with_rows_below
from sqlmesh_like.plan.cost import Estimate, InputCost, estimate, paces
from sqlmesh_like.plan.history import History, TableState, Volume
from sqlmesh_like.plan.model_plan import InputVersion, is_clock_moved, volume_of


def choose(
    compiled: CompiledModel, target: TableState, forced: tuple[Reason, ...], estimate: Estimate | None, now: datetime
) -> tuple[Strategy, tuple[Reason, ...]]:
    """The strategy with its reasons. `forced`: why history does not allow following the change."""
    if forced:
        return "full_refresh", forced
    facts = compiled.facts
    if facts.relation is not None and is_clock_moved(time_value_calls(facts.relation), target, now):
        return "full_refresh", time_value_reasons(facts.relation, facts)
    return chosen_by_cost(compiled, estimate)


def chosen_by_cost(compiled: CompiledModel, estimate: Estimate | None) -> tuple[Strategy, tuple[Reason, ...]]:
    """The strategy that the SQL allows, or a sound one that is clearly cheaper, and why."""
    if estimate and estimate.is_full_clearly_cheaper and compiled.model.config.refresh == "auto":
        share = f"{estimate.changed_rows:,} changed rows, {estimate.changed_share:.0%} of an input"
        times = estimate.incremental.seconds / estimate.full.seconds
        return "full_refresh", (reason("CST001", f"{share}: following them would cost {times:.1f} times as much"),)
    if estimate and estimate.other and estimate.strategy != compiled.classification.strategy:
        rule = "CST003" if estimate.strategy == "recompute_merge" else "CST002"
        # Why the chosen strategy is preferred to the default one.
        strategy, work = estimate.other
        ratio = work.seconds / estimate.incremental.seconds if estimate.incremental.seconds else float("inf")
        change = f"{estimate.changed_rows:,} changed rows in {estimate.changed_files:,} file groups"
        jobs = f", with {work.cluster.jobs} jobs of executors" if work.cluster and work.cluster.jobs else ""
        why = f"{change}: {strategy} would cost {ratio:.1f} times as much{jobs}"
        return estimate.strategy, (reason(rule, why),)
    return compiled.classification.strategy, compiled.classification.reasons


def estimate_work(
    compiled: CompiledModel, target: TableState, inputs: tuple[InputVersion, ...], history: History
) -> Estimate | None:
    """What each way of following the change would cost; None where it is not known what will have changed."""
    if any(item.awaits or item.state.kind not in ("cow", "mor") for item in inputs):
        return None
    split = _split_inputs(compiled, inputs)
    sizes = [InputCost(i.volume or Volume(), i.change, i.ref.unique_id in split) for i in inputs]
    # Other strategies that yield the same rows, keys and state. Only `refresh: auto` considers the whole query.
    allowed = compiled.classification
    others: tuple[Strategy, ...] = (allowed.alternative,) if allowed.alternative else ()
    has_build = compiled.table.build is not None and allowed.strategy != "full_refresh"
    alternatives = (*others, "recompute_merge") if has_build and compiled.model.config.refresh == "auto" else others
    return estimate(
        compiled.classification.strategy, sizes, volume_of(target, history), alternatives=alternatives,
        has_logs=target.kind == "mor", has_whole_groups=_has_whole_groups(compiled),
        has_own_rows=goes_on_from_its_rows(compiled.facts), paces=paces(target),
    )  # fmt: skip


def _has_whole_groups(compiled: CompiledModel) -> bool:
    """Whether something is computed over all rows of a query below; not of one whose rows the table itself holds.

    Of an aggregate over all rows that is not merged, such as COUNT(DISTINCT), it holds the result alone.
    """
    relation = compiled.facts.relation
    if relation is None:
        return False
    if isinstance(relation, Windowed):
        is_held = with_rows_below(relation) is not None
    else:
        is_held = compiled.classification.strategy != "group_recompute"
    return any(is_one_group(node) for node in walk(relation) if node is not relation or not is_held)


def _split_inputs(compiled: CompiledModel, inputs: tuple[InputVersion, ...]) -> set[str]:
    """Inputs whose partition columns are, by lineage, those of the target: only their affected partitions are read."""
    partition_by = compiled.model.config.partition_by
    if compiled.facts.relation is None or not partition_by:
        return set()
    origins = split_columns(compiled.facts.relation)
    input_ids: set[str] = set()
    for item in inputs:
        traced = {origins.get(name.lower(), {}).get(item.ref.unique_id, "").lower() for name in partition_by}
        laid_out = {name.lower() for name in item.state.layout.columns}
        input_ids |= {item.ref.unique_id} if laid_out and laid_out <= traced else set()
    return input_ids
