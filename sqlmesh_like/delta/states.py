"""Hidden state of mergeable aggregates. Owns which columns an aggregate keeps and how its value is read from them.

States are commutative monoids: the state of a union of rows is the states summed (or their MIN/MAX). SUM and AVG keep
an exact sum and the count of non-NULL values: only the count distinguishes a total of 0, NULL and overflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Aggregate, Call
from sqlmesh_like.analyze.expressions.types import INTEGERS, averages_doubles, avg_type, decimal_of, sum_type
from sqlmesh_like.delta.keys import column
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.names import ROWS

StateKind = Literal["rows", "count", "sum", "min", "max"]


@dataclass(frozen=True)
class AggregateState:
    """One hidden column: what it holds and over which argument (None: over rows)."""

    name: str
    kind: StateKind
    argument: exp.Expr | None
    type: str
    counted_by: str | None = None  # for sums: the state with the number of summed values


def states_of(aggregate: Aggregate) -> tuple[AggregateState, ...]:
    """The states that all calls of an aggregate need, each once; the first counts rows."""
    entries: dict[tuple[str, str], AggregateState] = {}
    numbers: dict[str, int] = {}

    def add(kind: StateKind, argument: exp.Expr, type_: str, counted_by: str | None = None) -> str:
        sql = argument.sql(SPARK)
        number = numbers.setdefault(sql, len(numbers))
        return entries.setdefault(
            (kind, sql), AggregateState(f"_sml_{kind}_{number}", kind, argument, type_, counted_by)
        ).name

    for call in aggregate.calls:
        if call.argument is None:
            continue
        match call.function:
            case "COUNT":
                add("count", call.argument, "bigint")
            case "SUM" | "AVG":
                counted = add("count", call.argument, "bigint")
                add("sum", call.argument, _sum_state_type(call.argument_type), counted)
            case "LOGICAL_AND" | "LOGICAL_OR":
                add("count", call.argument, "bigint")
                add("count", _deciding(call), "bigint")
            case "MIN":
                add("min", call.argument, call.argument_type or "")
            case "MAX":
                add("max", call.argument, call.argument_type or "")
    return (AggregateState(ROWS, "rows", None, "bigint"), *entries.values())


def _sum_state_type(argument: str | None) -> str:
    """The widest decimal that Spark allows, so that intermediate totals do not overflow before the visible type."""
    decimal = decimal_of(argument)
    assert decimal is not None, "only exact numbers are summed incrementally"
    return f"decimal(38,{decimal[1]})"


def value(call: Call, states: tuple[AggregateState, ...]) -> exp.Expr:
    """The aggregate's value, of Spark's type, from the states of its group."""
    if call.argument is None:
        return column(ROWS)
    sql = call.argument.sql(SPARK)
    by_kind = {state.kind: state for state in states if state.argument is not None and state.argument.sql(SPARK) == sql}
    match call.function:
        case "COUNT":
            return column(by_kind["count"].name)
        case "SUM":
            return _unless_empty(by_kind["count"], cast(column(by_kind["sum"].name), sum_type(call.argument_type)))
        case "AVG":
            return _unless_empty(by_kind["count"], _average(call, by_kind["sum"], by_kind["count"]))
        case "LOGICAL_AND" | "LOGICAL_OR":
            return _unless_empty(by_kind["count"], _decided(call, states))
        case "MIN":
            return column(by_kind["min"].name)
        case "MAX":
            return column(by_kind["max"].name)
    raise AssertionError(f"{call.function} has no state")


def _average(call: Call, total: AggregateState, count: AggregateState) -> exp.Expr:
    """The mean with the digits that Spark gives it.

    Of integers, and of decimals of few digits (`averages_doubles`), Spark divides doubles: for decimals the sum of
    their digits by the count, then by the power of ten of the scale. Of other decimals it divides the sum by a
    decimal(20,0) and rounds half up once. Rounding the quotient first to the wider type of `/` gives the same digits
    for fewer than 10^11 rows in a group.
    """
    if call.argument_type in INTEGERS:
        return _quotient(column(total.name), column(count.name))
    shown = cast(column(total.name), sum_type(call.argument_type))
    if not averages_doubles(call.argument_type):
        quotient = exp.Div(this=shown, expression=cast(column(count.name), "decimal(20,0)"), safe=True)
        return cast(quotient, avg_type(call.argument_type))
    decimal = decimal_of(call.argument_type)
    assert decimal is not None
    digits, scale = decimal
    power = cast(exp.Literal.number(10**scale), f"decimal({scale + 1},0)")
    unscaled = cast(exp.Mul(this=shown, expression=power.copy()), f"decimal({digits + 10},0)")
    return cast(_quotient(_quotient(unscaled, column(count.name)), power), avg_type(call.argument_type))


def _quotient(dividend: exp.Expr, divisor: exp.Expr) -> exp.Expr:
    return exp.Div(this=cast(dividend, "double"), expression=cast(divisor, "double"), safe=True)


def _deciding(call: Call) -> exp.Expr:
    """Non-NULL for the values that settle the result: one false one for BOOL_AND, one true one for BOOL_OR."""
    assert call.argument is not None
    value_ = exp.Paren(this=call.argument.copy())
    settles = exp.Not(this=value_) if call.function == "LOGICAL_AND" else value_
    return exp.Case().when(settles, exp.Literal.number(1))


def _decided(call: Call, states: tuple[AggregateState, ...]) -> exp.Expr:
    sql = _deciding(call).sql(SPARK)
    count = next(s for s in states if s.argument is not None and s.kind == "count" and s.argument.sql(SPARK) == sql)
    compare = exp.EQ if call.function == "LOGICAL_AND" else exp.GT
    return compare(this=column(count.name), expression=exp.Literal.number(0))


def _unless_empty(count: AggregateState, expression: exp.Expr) -> exp.Expr:
    """The expression, or NULL where the count is 0: these aggregates are NULL over no values."""
    return exp.Case().when(exp.GT(this=column(count.name), expression=exp.Literal.number(0)), expression)


def cast(expression: exp.Expr, type_: str | None) -> exp.Expr:
    assert type_ is not None
    return exp.TryCast(this=expression, to=exp.DataType.build(type_, dialect="spark"))
