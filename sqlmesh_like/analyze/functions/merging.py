"""How the value of an aggregate follows a change of its group. Owns what is kept for it, and the value from that.

States are commutative monoids: the state of a union of rows is the states summed (or their MIN/MAX). Counts and sums
have an inverse: rows that leave are subtracted. A minimum or maximum has none: its group is stale, and recomputed, once
a value that equals it leaves. So it is with the value of the first or last row in an order that the row key ends. A sum
is NULL only if it overflowed, which makes its group stale as well. `delta` writes the program of these kinds of states;
an aggregate that is made of them needs no more than a record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from sqlmesh_like.analyze.spark_types.coercion import INTEGERS, decimal_of
from sqlmesh_like.analyze.spark_types.exactness import averages_doubles, is_exact_key, is_exact_number
from sqlmesh_like.analyze.spark_types.function_types import avg_type, sum_type
from sqlmesh_like.dialects import spark_type
from sqlmesh_like.names import KEY

StateKind = Literal[
    "rows", "count", "sum", "min", "max", "min_by", "max_by", "floating", "magnitude", "additions"
]  # fmt: skip


@dataclass(frozen=True)
class KeptState:
    """A state that an aggregate needs: of non-NULL values of an argument.

    For a sum, `counted_by` is the position, among the states of its aggregate, of the number of values that are summed.
    `min_by` and `max_by` hold the argument, NULL or not, of the row that is first or last by the states at the
    positions `order`, of which it may be one itself. `floating`, `magnitude` and `additions`: see `floating_sums`.
    """

    kind: StateKind
    argument: exp.Expr
    type: str
    counted_by: int | None = None
    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class Merge:
    """What is kept of a group, and how the aggregate's value is read from it.

    `states` are those over an argument of a type; `value` has the argument's type and a column for each of them, and
    gives the value of Spark's type. `takes`: whether arguments of a type can be merged (None: all, proven or not);
    `otherwise` is the rule of those that cannot, and what is said of them before the type. `chooses`: the value is
    that of the first (`min_by`) or last row, kept after the states, which are then those of the order; the argument is
    what the rows are ordered by. `is_bounded`: the value is right up to a tolerance.
    """

    keeps: str
    states: Callable[[exp.Expr, str | None], tuple[KeptState, ...]]
    value: Callable[..., exp.Expr]
    takes: Callable[[str | None], bool] | None = None
    otherwise: tuple[str, str] = ("AGG005", "is not merged over values of type")
    counts_rows: bool = False
    chooses: Literal["min_by", "max_by"] | None = None
    is_bounded: bool = False

    @property
    def rule(self) -> str:
        """That of a call that is merged."""
        if self.is_bounded:
            return "AGG010"
        return "AGG001" if self.chooses is None else "AGG009"

    def verdict(self, call: str, type_: str | None) -> tuple[str, str]:
        """Rule and message of a call (its SQL) over an argument of a type."""
        if self.takes is None:
            return self.rule, f"{call} {self.keeps}"
        if type_ is None:
            return "AGG004", f"the type of the argument of {call} is not proven"
        if self.takes(type_):
            return self.rule, f"{call} {self.keeps}"
        rule, words = self.otherwise
        return rule, f"{call} {words} {type_}"


def _count_state(argument: exp.Expr, _: str | None) -> tuple[KeptState, ...]:
    return (KeptState("count", argument, "bigint"),)


def _sum_states(argument: exp.Expr, type_: str | None) -> tuple[KeptState, ...]:
    """An exact sum and the count of non-NULL values: only the count distinguishes a total of 0, NULL and overflow.

    The sum is the widest decimal that Spark allows, so that intermediate totals do not overflow before what is shown.
    """
    decimal = decimal_of(type_)
    assert decimal is not None, "only exact numbers are summed incrementally"
    return KeptState("count", argument, "bigint"), KeptState("sum", argument, f"decimal(38,{decimal[1]})", 0)


def _average(type_: str | None, count: exp.Expr, total: exp.Expr) -> exp.Expr:
    """The mean with the digits that Spark gives it.

    Of integers, and of decimals of few digits (`averages_doubles`), Spark divides doubles: for decimals the sum of
    their digits by the count, then by the power of ten of the scale. Of other decimals it divides the sum by a
    decimal(20,0) and rounds half up once. Rounding the quotient first to the wider type of `/` gives the same digits
    for fewer than 10^11 rows in a group.
    """
    if type_ in INTEGERS:
        return quotient(total, count)
    shown = cast(total, sum_type(type_))
    if not averages_doubles(type_):
        return cast(exp.Div(this=shown, expression=cast(count, "decimal(20,0)"), safe=True), avg_type(type_))
    decimal = decimal_of(type_)
    assert decimal is not None
    digits, scale = decimal
    power = cast(exp.Literal.number(10**scale), f"decimal({scale + 1},0)")
    unscaled = cast(exp.Mul(this=shown, expression=power.copy()), f"decimal({digits + 10},0)")
    return cast(quotient(quotient(unscaled, count), power), avg_type(type_))


def quotient(dividend: exp.Expr, divisor: exp.Expr) -> exp.Expr:
    return exp.Div(this=cast(dividend, "double"), expression=cast(divisor, "double"), safe=True)


def unless_empty(count: exp.Expr, expression: exp.Expr) -> exp.Expr:
    """The expression, or NULL where the count is 0: these aggregates are NULL over no values."""
    return exp.Case().when(exp.GT(this=count.copy(), expression=exp.Literal.number(0)), expression)


def cast(expression: exp.Expr, type_: str | None) -> exp.Expr:
    """The expression as a type, NULL where it does not fit."""
    assert type_ is not None
    return exp.TryCast(this=expression.copy(), to=spark_type(type_))


MOST_SQUARED = 14
"""Digits of values whose squares are summed: a billion of the largest fit a total of 38 digits."""


def has_exact_moments(type_: str | None) -> bool:
    """Whether sums of values and of squares of a type are exact, so that a variance follows from them.

    >>> has_exact_moments("int"), has_exact_moments("decimal(12,2)"), has_exact_moments("bigint")
    (True, True, False)
    """
    decimal = decimal_of(type_)
    return decimal is not None and decimal[0] <= MOST_SQUARED


def _moments(argument: exp.Expr, type_: str | None) -> tuple[KeptState, ...]:
    """Count, sum and sum of squares of the digits of the values, as whole numbers."""
    decimal = decimal_of(type_)
    assert decimal is not None
    digits: exp.Expr = exp.Paren(this=argument.copy())
    if decimal[1]:
        digits = exp.Mul(this=digits, expression=cast(_power_of(decimal[1]), f"decimal({decimal[1] + 1},0)"))
    whole = cast(digits, "decimal(19,0)")  # DuckDB multiplies up to 18 digits to 18
    sums = (whole, exp.Mul(this=whole.copy(), expression=whole.copy()))
    return KeptState("count", argument, "bigint"), *[KeptState("sum", each, "decimal(38,0)", 0) for each in sums]


def _variance(type_: str | None, count: exp.Expr, total: exp.Expr, squares: exp.Expr, *, is_sample: bool) -> exp.Expr:
    """(n Σx² − (Σx)²) / (n (n − 1)), or n² below. The sums are exact, whatever order the values come in.

    So is the difference, unless its terms have more than 38 digits: then it is that of doubles, of the same sums.
    """
    decimal = decimal_of(type_)
    assert decimal is not None
    wide = "decimal(38,0)"
    difference = exp.Sub(
        this=exp.Mul(this=cast(count, wide), expression=cast(squares, wide)),
        expression=exp.Mul(this=cast(total, wide), expression=cast(total, wide)),
    )
    doubles = exp.Sub(
        this=exp.Mul(this=cast(count, "double"), expression=cast(squares, "double")),
        expression=exp.Mul(this=cast(total, "double"), expression=cast(total, "double")),
    )
    least_of_all = exp.Greatest(this=doubles, expressions=[cast(exp.Literal.number(0), "double")])
    exact = exp.Coalesce(this=cast(exp.Paren(this=difference), "double"), expressions=[least_of_all])
    others = exp.Sub(this=count.copy(), expression=exp.Literal.number(1)) if is_sample else count
    rows = exp.Mul(this=cast(count, "double"), expression=cast(exp.Paren(this=others.copy()), "double"))
    scaled = exp.Mul(this=rows, expression=cast(_power_of(2 * decimal[1]), "double")) if decimal[1] else rows
    quotient = exp.Div(this=exact, expression=exp.Paren(this=scaled), safe=True)
    least = exp.Literal.number(1 if is_sample else 0)
    return exp.Case().when(exp.GT(this=count.copy(), expression=least), quotient)


def _power_of(scale: int) -> exp.Expr:
    return exp.Literal.number(10**scale)


def _spread(*, is_sample: bool, is_root: bool) -> Merge:
    """VAR or STDDEV."""

    def value(type_: str | None, count: exp.Expr, total: exp.Expr, squares: exp.Expr) -> exp.Expr:
        variance = _variance(type_, count, total, squares, is_sample=is_sample)
        return exp.Sqrt(this=variance) if is_root else variance

    keeps = "keeps a count, an exact sum and one of squares"
    return Merge(keeps, _moments, value, takes=has_exact_moments)


def _squared_distances(type_: str | None, count: exp.Expr, total: exp.Expr, squares: exp.Expr) -> exp.Expr:
    """The sum of squared distances to the mean: a variance of all, times their number."""
    variance = _variance(type_, count, total, squares, is_sample=False)
    return exp.Mul(this=exp.Paren(this=variance), expression=cast(count, "double"))


def _extremum(kind: Literal["min", "max"]) -> Merge:
    return Merge(
        "is kept while no retracted value equals it, else its group is recomputed",
        lambda argument, type_: (KeptState(kind, argument, type_ or ""),),
        lambda _, extremum: extremum,
        takes=is_exact_key,
        otherwise=("AGG005", "compares values of type"),
    )


def _of_row(chooses: Literal["min_by", "max_by"], *, is_by_key: bool = False) -> Merge:
    """The value of the first or last row, by the argument and the row key; or by the row key alone, the argument."""
    extremum: Literal["min", "max"] = "min" if chooses == "min_by" else "max"

    def order(argument: exp.Expr, type_: str | None) -> tuple[KeptState, ...]:
        first = KeptState(extremum, argument, type_ or "")
        key = KeptState(chooses, exp.column(KEY, quoted=True), "string", order=(0, 1))
        return (first,) if is_by_key else (first, key)

    return Merge(
        "keeps the row that decides, ties by the row key; where it goes and none beats it, its group is recomputed",
        order,
        lambda _, *states: states[-1],
        takes=is_exact_key,
        otherwise=("AGG008", "orders rows by values of type"),
        chooses=chooses,
    )


def _decision(*, by_false: bool) -> Merge:
    """BOOL_AND, which one false value decides, or BOOL_OR, which one true value does."""

    def states(argument: exp.Expr, _: str | None) -> tuple[KeptState, ...]:
        value = exp.Paren(this=argument.copy())
        deciding = exp.Case().when(exp.Not(this=value) if by_false else value, exp.Literal.number(1))
        return KeptState("count", argument, "bigint"), KeptState("count", deciding, "bigint")

    def value(_: str | None, count: exp.Expr, decided: exp.Expr) -> exp.Expr:
        compare = exp.EQ if by_false else exp.GT
        return unless_empty(count, compare(this=decided, expression=exp.Literal.number(0)))

    return Merge("keeps a count of values and of those that decide it", states, value)


_OF_SUMS = ("AGG003", "adds values of type")
COUNTED = Merge("adds up", _count_state, lambda _, count: count, counts_rows=True)
SUMMED = Merge(
    "keeps an exact sum and a count",
    _sum_states,
    lambda type_, count, total: unless_empty(count, cast(total, sum_type(type_))),
    takes=is_exact_number,
    otherwise=_OF_SUMS,
)
AVERAGED = Merge(
    "keeps an exact sum and a count",
    _sum_states,
    lambda type_, count, total: unless_empty(count, _average(type_, count, total)),
    takes=is_exact_number,
    otherwise=_OF_SUMS,
)
SQUARED = Merge("keeps a count, an exact sum and one of squares", _moments, _squared_distances, takes=has_exact_moments)
LEAST, MOST = _extremum("min"), _extremum("max")
BY_LEAST, BY_MOST = _of_row("min_by"), _of_row("max_by")
FIRST_ROW, LAST_ROW = _of_row("min_by", is_by_key=True), _of_row("max_by", is_by_key=True)
ALL_TRUE, ANY_TRUE = _decision(by_false=True), _decision(by_false=False)
VARIANCE, VARIANCE_OF_ALL = (_spread(is_sample=is_sample, is_root=False) for is_sample in (True, False))
DEVIATION, DEVIATION_OF_ALL = (_spread(is_sample=is_sample, is_root=True) for is_sample in (True, False))
