"""QueryFacts → the cheapest sound strategy, with reasons. Owns their order; ignores history and cost.

Without a proof by a rule the strategy is a full refresh.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from sqlmesh_like.analyze.algebra.column_pruning import prune_columns
from sqlmesh_like.analyze.algebra.lineage import split_columns, window_keys
from sqlmesh_like.analyze.algebra.relation import (
    Aggregate,
    Call,
    Distinct,
    Join,
    Relation,
    ScalarValue,
    Scan,
    TopK,
    Windowed,
    columns,
    inputs,
    is_linear,
    used_columns,
    walk,
)
from sqlmesh_like.analyze.binding.differences import COPY
from sqlmesh_like.analyze.binding.limits import has_total_order
from sqlmesh_like.analyze.binding.scope import offset_of
from sqlmesh_like.analyze.binding.ties import core, is_tied
from sqlmesh_like.analyze.binding.windows_over_groups import as_written
from sqlmesh_like.analyze.expressions.types import infer, is_exact_key, is_group_key
from sqlmesh_like.analyze.functions.aggregates import aggregate_named, aggregate_of
from sqlmesh_like.analyze.query_analysis import QueryFacts
from sqlmesh_like.analyze.spark_types import one_zero
from sqlmesh_like.classify.aggregates import AggregateVerdict, classify_aggregate
from sqlmesh_like.classify.clock import clock_reasons, time_filter_calls
from sqlmesh_like.classify.group_tops import group_top
from sqlmesh_like.classify.rules import TIED, Reason, reason
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import with_article
from sqlmesh_like.project.nodes import AuthorStrategy
from sqlmesh_like.project.reading.session_settings import setting_not_followed

Strategy = (
    Literal[
        "no_op",
        "row_based",
        "aggregate_merge",
        "group_recompute",
        "partition_rescan",
        "recompute_merge",
        "full_refresh",
    ]
    | AuthorStrategy
)
"""What a run does with a table. `recompute_merge` runs the whole query and writes only the differences; it is not
chosen from the SQL, but by a run for which following the change would cost more."""


@dataclass(frozen=True)
class Classification:
    """The strategy that a model's SQL allows, whatever its history.

    `alternative` is another sound one that leaves the same stored rows: each run may choose either.
    """

    strategy: Strategy
    aggregates: tuple[AggregateVerdict, ...]
    reasons: tuple[Reason, ...]
    alternative: Strategy | None = None


def classify(facts: QueryFacts) -> Classification:
    """The cheapest sound strategy of a model's query, with reasons; the author strategy if the model has one."""
    if (strategy := facts.model.author_strategy) is not None:
        place = facts.model.place_of("is_incremental")
        authors = reason("CFG005", f"incremental_strategy: {strategy}", (place.line, place.column))
        return Classification(strategy, (), (authors,))
    if (setting := setting_not_followed(facts.model.session)) is not None:
        return Classification("full_refresh", (), (reason("CFG007", setting),))
    if facts.unsupported_reason is not None or facts.relation is None:
        assert facts.unsupported_reason is not None
        unsupported_reason = facts.unsupported_reason
        blocker = reason(
            unsupported_reason.rule, unsupported_reason.message, (unsupported_reason.line, unsupported_reason.column)
        )
        return Classification("full_refresh", (), (blocker,))
    relation = facts.relation
    # Without duplicates: a CTE that is read twice has each call twice.
    calls = (call for node in walk(relation) if isinstance(node, Aggregate) for call in node.calls)
    verdicts = tuple(dict.fromkeys(classify_aggregate(call, facts) for call in calls))
    if maps := _maps(relation):
        return Classification("full_refresh", verdicts, (reason("TYP002", f"column {maps[0]} is a map"),))
    chosen = _ladder(facts, relation, verdicts)
    tied = () if chosen.strategy == "full_refresh" else (v.reason for v in verdicts if v.reason.rule in TIED)
    return replace(chosen, reasons=(*dict.fromkeys((*chosen.reasons, *tied)), *clock_reasons(relation, facts)))


def _ladder(facts: QueryFacts, relation: Relation, verdicts: tuple[AggregateVerdict, ...]) -> Classification:
    costly = _reasons_against_merging(relation, verdicts, facts)
    if not costly:
        return _incremental(facts, relation, verdicts)
    if unsound := reasons_against_recompute(relation, verdicts, facts):
        return Classification("full_refresh", verdicts, tuple(dict.fromkeys((*unsound, *costly))))
    if isinstance(relation, Aggregate) and _merges_groups(relation, facts):
        merged = reason("MRG001", "the groups of the outermost GROUP BY are adjusted by what changes below it")
        return Classification("aggregate_merge", verdicts, (*costly, merged))
    return _recompute(facts, relation, verdicts, costly)


def _merges_groups(aggregate: Aggregate, facts: QueryFacts) -> bool:
    """Whether the change of an aggregate's rows, however it is computed, and its stored state are enough.

    Recomputing its groups would need the same change, to know which groups these are. If the table is partitioned, that
    may still be cheaper, because only touched partitions are read.
    """
    verdicts = (classify_aggregate(call, facts) for call in aggregate.calls)
    is_partitioned = bool(facts.model.config.partition_by)
    return not is_partitioned and not _inexact_keys(aggregate, facts) and all(v.verdict != "rescan" for v in verdicts)


def _incremental(facts: QueryFacts, relation: Relation, verdicts: tuple[AggregateVerdict, ...]) -> Classification:
    places = [_join_place(node, facts) for node in walk(relation) if isinstance(node, Join)]
    first = min(places, key=lambda place: (place[0] or 0, place[1] or 0), default=(None, None))
    joined = (reason("JOI001", "inner joins: changed rows of one side meet the other side", first),) if places else ()
    if isinstance(relation, Aggregate):
        reasons = tuple(verdict.reason for verdict in verdicts) or (
            reason("AGG001", "groups live as long as their hidden row count is above 0"),
        )
        return Classification("aggregate_merge", verdicts, reasons + joined)
    return Classification(
        "row_based", (), joined or (reason("ROW001", "projection, filter or UNION ALL of single rows"),)
    )


def _recompute(
    facts: QueryFacts, relation: Relation, verdicts: tuple[AggregateVerdict, ...], costly: tuple[Reason, ...]
) -> Classification:
    """Whole partitions if the table has some and lineage proves them, else groups."""
    partition_by = facts.model.config.partition_by
    if partition_by:
        unproven = _unproven_partition(relation, partition_by)
        if unproven is None:
            proven = reason("PAR001", f"partitions by {', '.join(partition_by)} are recomputed where the change falls")
            return Classification("partition_rescan", verdicts, (*costly, proven), "group_recompute")
        costly = (*costly, unproven)
    if (top := group_top(relation)) is not None:
        rows = f"the first {top.count} rows of each group" if top.count > 1 else "the first row of each group"
        rows += ", with those that tie" if top.has_ties else ""
        place = facts.position(offset_of(top.window))
        others = (each for each in costly if each.rule != "WIN001" or (each.line, each.column) != place)
        costly = (*others, reason("LIM005", rows, place))
    grouped = reason("GRP001", "groups, windows and join keys that the change touches are recomputed")
    return Classification("group_recompute", verdicts, (*costly, grouped))


def _unproven_partition(relation: Relation, partition_by: tuple[str, ...]) -> Reason | None:
    if time_filter_calls(relation):
        return reason("CLK003", f"the partitions by {', '.join(partition_by)} that the clock touches are not known")
    origins = split_columns(relation)
    wanted = inputs(relation)
    for name in partition_by:
        origin = origins.get(name.lower(), {})
        if any(input_id not in origin for input_id in wanted):
            return reason("PAR002", f"partition column {name!r} is not copied from every input through the query")
    return None


def _reasons_against_merging(
    relation: Relation, verdicts: tuple[AggregateVerdict, ...], facts: QueryFacts
) -> tuple[Reason, ...]:
    """Reasons why changed rows and stored state are not enough; empty if they are."""
    if is_linear(relation):
        return ()
    if isinstance(relation, Aggregate) and is_linear(relation.child):
        return tuple(v.reason for v in verdicts if v.verdict == "rescan") + _inexact_keys(relation, facts)
    reasons: list[Reason] = [verdict.reason for verdict in verdicts if verdict.verdict == "rescan"]
    for node in walk(relation):
        match node:
            case Distinct():
                reasons.append(reason("DST001", "DISTINCT", facts.position(node.offset)))
            case Windowed():
                reasons += _window_reasons(node, facts)
            case Aggregate():
                reasons.append(reason("NST001", "GROUP BY below or above another operator", _place(node, facts)))
            case Join() if node.kind != "inner":
                place = _join_place(node, facts)
                join = with_article(f"{node.kind} join")
                if not node.pairs:
                    reasons.append(reason("JOI003", f"{join} without an equality of one exact type", place))
                reasons.append(reason("JOI002", join, place))
            case ScalarValue():
                place = facts.position(node.offset, node.keyword)
                reasons.append(reason("SUB001", "a subquery that must have one row at most", place))
            case TopK():
                reasons += _limit_reasons(node, facts, is_below=node is not relation)
    return tuple(dict.fromkeys(reasons))


def reasons_against_recompute(
    relation: Relation, verdicts: tuple[AggregateVerdict, ...], facts: QueryFacts
) -> tuple[Reason, ...]:
    """Why groups cannot be recomputed independently: rows have no exact keys, or values depend on order."""
    reasons = [verdict.reason for verdict in verdicts if verdict.reason.rule == "AGG006"]
    for node in walk(relation):
        reasons += [
            reason("KEY002", f"{name} has type {type_ or 'not proven'}")
            for name, type_ in _row_keys(node)
            if not is_group_key(type_)
        ]
        match node:
            case Aggregate() | Windowed() if _is_inexact(node, _columns_used_above(node, relation)):
                reasons.append(
                    reason("AGG007", "floating values are computed on and then used", _node_place(node, facts))
                )
    return tuple(dict.fromkeys(reasons))


def _columns_used_above(node: Aggregate | Windowed, relation: Relation) -> frozenset[str] | None:
    """The columns of a node on which the rest of a query depends; None for all of them."""
    if isinstance(relation, TopK) and relation.child is node:
        return frozenset(term.column for term in relation.order)
    return frozenset() if node is relation else None


def _is_inexact(node: Aggregate | Windowed, names: frozenset[str] | None) -> bool:
    """Whether recomputing may change the last digits of these columns, so that nothing above may depend on them."""
    items = [item for item in node.items if names is None or item.name in names]
    if isinstance(node, Aggregate):
        read = {column.name for item in items for column in item.expression.find_all(exp.Column)}
        calls = [call for call in node.calls if names is None or call.name in read]
        return any(map(_is_inexact_call, calls))
    known = {column.name.lower(): column.type for column in columns(node.child)}
    windows = (window.this for item in items for window in item.expression.find_all(exp.Window))
    return any(_is_inexact_window(call, known) for call in windows)


def _is_inexact_window(call: exp.Expr, known: Mapping[str, str | None]) -> bool:
    function = core(call)
    record = aggregate_of(function)
    if record is None or not record.adds:
        return False
    type_ = infer(function.this, known)
    is_as_written = record.by_states(type_) and (function is not call or isinstance(function.this, exp.Distinct))
    return is_as_written or not record.is_repeatable(type_)


def _is_inexact_call(call: Call) -> bool:
    record = aggregate_named(call.function)
    is_as_written = record is not None and record.by_states(call.argument_type) and call.distinct
    return record is None or is_as_written or not record.is_repeatable(call.argument_type)


def _row_keys(node: Relation) -> list[tuple[str, str | None]]:
    if isinstance(node, Aggregate):
        return [(one_zero.as_written(named.expression).sql(SPARK), named.type) for named in node.keys]
    return [(column.name, column.type) for column in columns(node)] if isinstance(node, Distinct) else []


def _place(aggregate: Aggregate, facts: QueryFacts) -> tuple[int | None, int | None]:
    return facts.position(next((call.offset for call in aggregate.calls), None))


def _inexact_keys(aggregate: Aggregate, facts: QueryFacts) -> tuple[Reason, ...]:
    return tuple(
        reason(
            "KEY001",
            f"group key {one_zero.as_written(named.expression).sql(SPARK)} has type {named.type or 'not proven'}",
            facts.position(offset_of(named.expression)),
        )
        for named in aggregate.keys
        if not is_exact_key(named.type)
    )


def _join_place(join: Join, facts: QueryFacts) -> tuple[int | None, int | None]:
    if join.offset is not None or join.condition is None:
        return facts.position(join.offset, join.keyword)
    return facts.position(offset_of(join.condition))


def _window_place(windowed: Windowed, facts: QueryFacts) -> tuple[int | None, int | None]:
    windows = (window for item in windowed.items for window in item.expression.find_all(exp.Window))
    return facts.position(next((offset_of(window) for window in windows), None))


def _node_place(node: Aggregate | Windowed, facts: QueryFacts) -> tuple[int | None, int | None]:
    return _place(node, facts) if isinstance(node, Aggregate) else _window_place(node, facts)


def _limit_reasons(limit: TopK, facts: QueryFacts, *, is_below: bool) -> list[Reason]:
    place = facts.position(limit.offset, limit.keyword)
    several = "all rows" if limit.count is None else f"the first {limit.count} rows"
    first = "the first row" if limit.count == 1 else several
    first += f" behind {limit.skipped}" if limit.skipped else ""
    kept = reason("LIM004" if is_below else "LIM001", first, place)
    return (
        [kept]
        if has_total_order(limit)
        else [kept, reason("LIM002", f"the row key ends ORDER BY of {limit.keyword}", place)]
    )


def _window_reasons(windowed: Windowed, facts: QueryFacts) -> list[Reason]:
    windows = [window for item in windowed.items for window in item.expression.find_all(exp.Window)]
    if any(item.name.endswith(COPY) for item in windowed.items):
        return [reason("SET001", "INTERSECT ALL or EXCEPT ALL", facts.position(offset_of(windows[0])))]
    reasons = [reason("WIN001", as_written(window), facts.position(offset_of(window))) for window in windows]
    ties = [window for window in windows if is_tied(window)]
    if not window_keys(windowed):
        message = "window functions share no PARTITION BY expression"
        reasons.append(reason("WIN003", message, _window_place(windowed, facts)))
    return reasons + [
        reason("WIN002", f"the row key ends ORDER BY of {as_written(window.this)}", facts.position(offset_of(window)))
        for window in ties
    ]


def _maps(relation: Relation) -> list[str]:
    """Columns that are read or made whose type contains a map, by which Spark cannot group."""
    if not any(map(_has_map, walk(relation))):
        return []
    used = used_columns(relation)
    return [
        column.name
        for node in walk(prune_columns(relation))
        for column in columns(node)
        if "map<" in (column.type or "") and (not isinstance(node, Scan) or column.name in used[node.input_id])
    ]


def _has_map(node: Relation) -> bool:
    return any("map<" in (column.type or "") for column in columns(node))
