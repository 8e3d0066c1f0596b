"""Hidden state of mergeable aggregates. Owns which columns a table keeps, each once; `merging` says what they hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Aggregate, Call
from sqlmesh_like.analyze.binding.ties import core
from sqlmesh_like.analyze.expressions.types import infer
from sqlmesh_like.analyze.functions.aggregates import aggregate_named, aggregate_of
from sqlmesh_like.analyze.functions.merging import KeptState, Merge, StateKind, cast
from sqlmesh_like.delta.keys import column
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.names import ROWS


@dataclass(frozen=True)
class AggregateState:
    """One hidden column: what it holds and over which argument (None: over rows)."""

    name: str
    kind: StateKind
    argument: exp.Expr | None
    type: str
    counted_by: str | None = None  # for sums: the state with the number of summed values
    order: tuple[str, ...] = ()  # for the value of a row: the states by which it is first or last, maybe itself
    order_arguments: tuple[exp.Expr, ...] = ()  # of those states but itself
    tolerance: float | None = None  # of a sum of floating numbers


def states_of(aggregate: Aggregate) -> tuple[AggregateState, ...]:
    """The states that all calls of an aggregate need, each once; the first counts rows."""
    entries: dict[tuple[str, str, tuple[str, ...]], AggregateState] = {}
    numbers: dict[tuple[str, tuple[str, ...]], int] = {}
    for call in aggregate.calls:
        own: list[AggregateState] = []
        for kept in _call_states(call):
            sql = kept.argument.sql(SPARK)
            before = tuple(own[position] for position in kept.order if position < len(own))
            order = tuple(state.name for state in before)
            name = f"_sml_{kept.kind}_{numbers.setdefault((sql, order), len(numbers))}"
            state = AggregateState(
                name,
                kept.kind,
                kept.argument,
                kept.type,
                None if kept.counted_by is None else own[kept.counted_by].name,
                order if len(before) == len(kept.order) else (*order, name),
                tuple(state.argument for state in before if state.argument is not None),
                call.tolerance if kept.kind == "floating" else None,
            )
            own.append(entries.setdefault((kept.kind, sql, order), state))
    return (AggregateState(ROWS, "rows", None, "bigint"), *entries.values())


def value(call: Call, states: tuple[AggregateState, ...]) -> exp.Expr:
    """The aggregate's value, of Spark's type, from the states of its group."""
    if call.argument is None:
        return column(ROWS)
    own: list[str] = []
    for kept in _call_states(call):
        sql, order = kept.argument.sql(SPARK), tuple(own[position] for position in kept.order if position < len(own))
        alike = (state for state in states if state.kind == kept.kind and state.order[: len(order)] == order)
        own.append(next(each.name for each in alike if each.argument is not None and each.argument.sql(SPARK) == sql))
    return _merge(call).value(call.argument_type, *[column(name) for name in own])


def value_of_rows(call: Call) -> exp.Expr | None:
    """The value from the states of all rows of a group, as one aggregate expression; None where the call itself is it.

    Spark adds doubles in the order in which rows happen to come: what is computed on the value could then differ from
    one run to the next.
    """
    record = aggregate_named(call.function)
    if record is None or record.merge is None or call.distinct or call.argument is None:
        return None
    if not record.by_states(call.argument_type):
        return None
    states = [_of_all_rows(kept) for kept in record.merge.states(call.argument, call.argument_type)]
    return record.merge.value(call.argument_type, *states)


def value_of_frame(window: exp.Window, types: Mapping[str, str | None]) -> exp.Expr | None:
    """A window function's value from the states of its frame, over columns of these types; None as for a group."""
    record = aggregate_of(window.this)
    if record is None or record.merge is None or isinstance(window.this.this, exp.Distinct):
        return None
    type_ = infer(window.this.this, types)
    if not record.by_states(type_):
        return None
    values: list[exp.Expr] = []
    for kept in record.merge.states(window.this.this, type_):
        values.append(window.copy())
        values[-1].set("this", _of_all_rows(kept))
    return exp.Paren(this=record.merge.value(type_, *values))


def _of_all_rows(kept: KeptState) -> exp.Expr:
    if kept.kind == "count":
        return exp.Count(this=kept.argument.copy())
    assert kept.kind == "sum", kept
    return exp.Sum(this=cast(kept.argument, kept.type))


def _call_states(call: Call) -> tuple[KeptState, ...]:
    if call.argument is None:
        return ()
    merge = _merge(call)
    states = merge.states(call.argument, call.argument_type)
    if merge.chooses is None:
        return states
    order = tuple(range(len(states)))
    return (*states, KeptState(merge.chooses, core(call.call).this, call.type or "", order=order))


def _merge(call: Call) -> Merge:
    record = aggregate_named(call.function)
    merge = record.merging(call.argument_type, call.tolerance) if record is not None else None
    assert merge is not None, f"{call.function} has no state"
    return merge
