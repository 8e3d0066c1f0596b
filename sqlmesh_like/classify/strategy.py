"""QueryFacts → the cheapest sound strategy, with reasons. Owns the ladder; knows nothing of history or cost.

What no rule proves is a full refresh.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from sqlmesh_like.analyze.facts import QueryFacts
from sqlmesh_like.analyze.lineage import split_columns
from sqlmesh_like.analyze.reader import TIE_SENSITIVE
from sqlmesh_like.analyze.relation import (
    Aggregate,
    Distinct,
    Relation,
    Scan,
    Windowed,
    columns,
    inputs,
    is_row_wise,
    used_columns,
    walk,
)
from sqlmesh_like.analyze.scope import offset_of
from sqlmesh_like.analyze.types import is_exact_key
from sqlmesh_like.classify.aggregates import AggregateVerdict, judge
from sqlmesh_like.classify.rules import Reason, reason

Strategy = Literal["no_op", "row_based", "aggregate_merge", "group_recompute", "partition_rescan", "full_refresh"]


@dataclass(frozen=True)
class Classification:
    """The strategy that a model's SQL allows, whatever its history. `is_provable`: the query is in the algebra."""

    strategy: Strategy
    aggregates: tuple[AggregateVerdict, ...]
    reasons: tuple[Reason, ...]


def classify(facts: QueryFacts) -> Classification:
    """The cheapest sound strategy of a model's query and why."""
    if facts.obstacle is not None or facts.relation is None:
        assert facts.obstacle is not None
        obstacle = facts.obstacle
        found = reason(obstacle.rule, obstacle.message, (obstacle.line, obstacle.column))
        return Classification("full_refresh", (), (found,))
    relation = facts.relation
    verdicts = _verdicts(relation, facts)
    reasons = _reasons_against_delta(relation, verdicts, facts)
    if maps := _maps(relation):
        return Classification("full_refresh", verdicts, (reason("TYP002", f"column {maps[0]} is a map"),))
    if not reasons:
        return _incremental(relation, verdicts)
    return _rescan_or_rebuild(facts, relation, verdicts, reasons)


def _incremental(relation: Relation, verdicts: tuple[AggregateVerdict, ...]) -> Classification:
    if isinstance(relation, Aggregate):
        found = tuple(verdict.reason for verdict in verdicts) or (
            reason("AGG001", "groups live as long as their hidden row count is above 0"),
        )
        return Classification("aggregate_merge", verdicts, found)
    return Classification("row_based", (), (reason("ROW001", "projection, filter or UNION ALL of single rows"),))


def _rescan_or_rebuild(
    facts: QueryFacts, relation: Relation, verdicts: tuple[AggregateVerdict, ...], reasons: tuple[Reason, ...]
) -> Classification:
    partition_by = facts.model.config.partition_by
    reasons += _reasons_against_rescan(relation)
    if not partition_by or any(found.rule in _NEVER_RESCANNED for found in reasons):
        return Classification("full_refresh", verdicts, reasons)
    origins = split_columns(relation)
    wanted = inputs(relation)
    for name in partition_by:
        origin = origins.get(name.lower(), {})
        if any(input_id not in origin for input_id in wanted):
            unproven = reason("PAR002", f"partition column {name!r} is not copied from every input through the query")
            return Classification("full_refresh", verdicts, (*reasons, unproven))
    proven = reason("PAR001", f"partitions by {', '.join(partition_by)} are recomputed where the change falls")
    return Classification("partition_rescan", verdicts, (*reasons, proven))


def _verdicts(relation: Relation, facts: QueryFacts) -> tuple[AggregateVerdict, ...]:
    return tuple(judge(call, facts) for node in walk(relation) if isinstance(node, Aggregate) for call in node.calls)


def _reasons_against_delta(
    relation: Relation, verdicts: tuple[AggregateVerdict, ...], facts: QueryFacts
) -> tuple[Reason, ...]:
    """Empty where the change of the result can be derived from the change of the inputs."""
    if is_row_wise(relation):
        return ()
    if isinstance(relation, Aggregate) and is_row_wise(relation.child):
        return tuple(v.reason for v in verdicts if v.verdict == "rescan") + _inexact_keys(relation, facts)
    found: list[Reason] = [verdict.reason for verdict in verdicts if verdict.verdict == "rescan"]
    for node in walk(relation):
        if isinstance(node, Distinct):
            found.append(reason("DST001", "DISTINCT", facts.position(node.offset)))
        elif isinstance(node, Windowed):
            found += _window_reasons(node, facts)
        elif isinstance(node, Aggregate):
            found.append(reason("NST001", "GROUP BY below or above another operator", _place(node, facts)))
    return tuple(found)


_NEVER_RESCANNED = {"AGG006", "KEY002"}


def _reasons_against_rescan(relation: Relation) -> tuple[Reason, ...]:
    """A rescanned row is keyed by the text of its group's values: different values must have different text."""
    keyed = {
        (name, type_)
        for node in walk(relation)
        for name, type_ in _row_keys(node)
        if not is_exact_key(type_) and type_ not in ("float", "double")
    }
    return tuple(reason("KEY002", f"{name} has type {type_ or 'not proven'}") for name, type_ in sorted(keyed, key=str))


def _row_keys(node: Relation) -> list[tuple[str, str | None]]:
    if isinstance(node, Aggregate):
        return [(named.expression.sql("spark"), named.type) for named in node.keys]
    return [(column.name, column.type) for column in columns(node)] if isinstance(node, Distinct) else []


def _place(aggregate: Aggregate, facts: QueryFacts) -> tuple[int | None, int | None]:
    return facts.position(next((call.offset for call in aggregate.calls), None))


def _inexact_keys(aggregate: Aggregate, facts: QueryFacts) -> tuple[Reason, ...]:
    return tuple(
        reason(
            "KEY001",
            f"group key {named.expression.sql('spark')} has type {named.type or 'not proven'}",
            facts.position(offset_of(named.expression)),
        )
        for named in aggregate.keys
        if not is_exact_key(named.type)
    )


def _window_reasons(windowed: Windowed, facts: QueryFacts) -> list[Reason]:
    windows = [window for item in windowed.items for window in item.expression.find_all(exp.Window)]
    found = [reason("WIN001", window.sql("spark"), facts.position(offset_of(window))) for window in windows]
    ties = [window for window in windows if isinstance(window.this, TIE_SENSITIVE)]
    return found + [
        reason("WIN002", f"the row key ends ORDER BY of {window.this.sql('spark')}", facts.position(offset_of(window)))
        for window in ties
    ]


def _maps(relation: Relation) -> list[str]:
    """Used columns that hold a map anywhere: Spark cannot group by them."""
    used = used_columns(relation)
    return [
        column.name
        for node in walk(relation)
        if isinstance(node, Scan)
        for column in node.schema
        if column.name in used[node.input_id] and "map<" in (column.type or "")
    ]
