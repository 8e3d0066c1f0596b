"""Spark's aggregate functions: all that is known of each. Owns the records; `merging` has how states make a value.

Source: Spark 3.5 `FunctionRegistry` and `sqlcat.expressions.aggregate`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from sqlmesh_like.analyze.functions.merging import (
    ALL_TRUE,
    ANY_TRUE,
    AVERAGED,
    COUNTED,
    LEAST,
    MOST,
    SUMMED,
    Merge,
)
from sqlmesh_like.analyze.spark_types.coercion import converted, is_interval
from sqlmesh_like.analyze.spark_types.exactness import is_exact_key, is_exact_number
from sqlmesh_like.analyze.spark_types.function_types import Outcome, avg_type, sum_type, summed
from sqlmesh_like.analyze.spark_types.operators import interval_total
from sqlmesh_like.analyze.spark_types.refusal import Refusal

TypeOf = Callable[[exp.Expr], str | None]


def _always(_: str | None) -> bool:
    return True


def _never(_: str | None) -> bool:
    return False


@dataclass(frozen=True)
class SameCall:
    """A call of another aggregate that has the same value: its class, and its argument made of this one's."""

    kind: type[exp.AggFunc]
    argument: Callable[[exp.Expr], exp.Expr]


@dataclass(frozen=True)
class AggregateFunction:
    """One aggregate function.

    `kind` is its class in a tree, `call` its name in Spark and the parts of the node that hold its arguments, in
    Spark's order. `synonyms` are names that the parser does not know. `type_rule` gives the type where no line of the
    table of signatures can.

    `order`: "free" of it, the value is a function of the multiset of rows; "key", the row key decides (`ties`); None,
    it is not known to be decided. `of_nothing` is the value over no rows, where it is known. `is_repeatable` tells by
    the argument's type whether computing it again gives the same digits; `adds`: it adds up, in a window as well.
    `in_window`: its value over a frame is decided. `merge` is None where each change needs all rows of the group.
    """

    kind: type[exp.Func]
    call: str
    synonyms: tuple[str, ...] = ()
    type_rule: Callable[[exp.Expr, TypeOf], Outcome] | None = None
    order: Literal["free", "key"] | None = "free"
    of_nothing: Literal["null", "zero"] | None = None
    is_repeatable: Callable[[str | None], bool] = _never
    adds: bool = False
    in_window: bool = False
    merge: Merge | None = None
    same_as: SameCall | None = None

    @property
    def name(self) -> str:
        """The name by which plans know a call: that of the class."""
        return self.kind.sql_name()

    @property
    def merged_name(self) -> str:
        """The name of the aggregate as which its calls are merged."""
        return self.name if self.same_as is None else self.same_as.kind.sql_name()


def _sum_rule(result: Callable[[str | None], str | None]) -> Callable[[exp.Expr, TypeOf], Outcome]:
    return lambda node, type_of: summed(type_of(node.this), result)


def _quantile_type(node: exp.Expr, type_of: TypeOf) -> Outcome:
    type_, quantile = type_of(node.this), node.args.get("quantile")
    if type_ is None:
        return None
    is_approximate = isinstance(node, exp.ApproxQuantile)
    if converted(type_, "number|interval" if not is_approximate else "number|date|time|interval") is None:
        return Refusal(f"{node.key.upper()} takes a number, not {type_}")
    one = type_ if is_approximate else interval_total(type_) if is_interval(type_) else "double"
    fraction = "double" if quantile is None else type_of(quantile)
    return None if fraction is None else f"array<{one}>" if fraction.startswith("array<") else one


def _is_repeatable_mean(type_: str | None) -> bool:
    """Spark averages integers as doubles, which are exact for all but huge totals."""
    return is_exact_number(type_) and type_ != "bigint"


def _moment(kind: type[exp.Func], call: str, *synonyms: str) -> AggregateFunction:
    """Of doubles, in an order that is not given."""
    is_null = kind in (exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop)
    return AggregateFunction(
        kind, call, synonyms, of_nothing="null" if is_null else None, adds=True, in_window=True
    )  # fmt: skip


def _regression(kind: type[exp.Func], call: str) -> AggregateFunction:
    return AggregateFunction(kind, f"{call} this expression")


def _bits(kind: type[exp.Func], call: str) -> AggregateFunction:
    return AggregateFunction(kind, call, is_repeatable=_always, in_window=True)


def _choice(kind: type[exp.Func], call: str, *, in_window: bool = False) -> AggregateFunction:
    """One row of the group, or all in an order, which the row key decides."""
    return AggregateFunction(kind, call, order="key", is_repeatable=_always, in_window=in_window)


def _one_if(condition: exp.Expr) -> exp.Expr:
    return exp.Case().when(condition, exp.Literal.number(1))


_RECORDS = (
    AggregateFunction(
        exp.Count, "count this expressions", of_nothing="zero", is_repeatable=_always, in_window=True, merge=COUNTED
    ),
    AggregateFunction(
        exp.CountIf, "count_if this", of_nothing="zero", order=None, in_window=True, merge=COUNTED,
        same_as=SameCall(exp.Count, _one_if),
    ),
    AggregateFunction(
        exp.Sum, "sum this", type_rule=_sum_rule(sum_type), of_nothing="null", is_repeatable=is_exact_number,
        adds=True, in_window=True, merge=SUMMED,
    ),
    AggregateFunction(
        exp.Avg, "avg this", ("MEAN",), type_rule=_sum_rule(avg_type), of_nothing="null",
        is_repeatable=_is_repeatable_mean, adds=True, in_window=True, merge=AVERAGED,
    ),
    AggregateFunction(
        exp.Min, "min this", of_nothing="null", is_repeatable=is_exact_key, in_window=True, merge=LEAST
    ),
    AggregateFunction(
        exp.Max, "max this", of_nothing="null", is_repeatable=is_exact_key, in_window=True, merge=MOST
    ),
    AggregateFunction(
        exp.LogicalAnd, "bool_and this", ("EVERY",), of_nothing="null", is_repeatable=_always, in_window=True,
        merge=ALL_TRUE,
    ),
    AggregateFunction(
        exp.LogicalOr, "bool_or this", ("SOME",), of_nothing="null", is_repeatable=_always, in_window=True,
        merge=ANY_TRUE,
    ),
    _moment(exp.Stddev, "stddev this"), _moment(exp.StddevSamp, "stddev_samp this", "STD"),
    _moment(exp.StddevPop, "stddev_pop this"), _moment(exp.Variance, "variance this"),
    _moment(exp.VariancePop, "var_pop this"), _moment(exp.Skewness, "skewness this"),
    _moment(exp.Kurtosis, "kurtosis this"), _moment(exp.Corr, "corr this expression"),
    _moment(exp.CovarPop, "covar_pop this expression"), _moment(exp.CovarSamp, "covar_samp this expression"),
    AggregateFunction(exp.RegrCount, "regr_count this expression", is_repeatable=_always),
    _regression(exp.RegrAvgx, "regr_avgx"), _regression(exp.RegrAvgy, "regr_avgy"),
    _regression(exp.RegrIntercept, "regr_intercept"), _regression(exp.RegrR2, "regr_r2"),
    _regression(exp.RegrSlope, "regr_slope"), _regression(exp.RegrSxx, "regr_sxx"),
    _regression(exp.RegrSxy, "regr_sxy"), _regression(exp.RegrSyy, "regr_syy"),
    _bits(exp.BitwiseAndAgg, "bit_and this"), _bits(exp.BitwiseOrAgg, "bit_or this"),
    _bits(exp.BitwiseXorAgg, "bit_xor this"),
    AggregateFunction(exp.Median, "median this", type_rule=_quantile_type),
    AggregateFunction(exp.Quantile, "percentile this quantile", type_rule=_quantile_type),
    AggregateFunction(
        exp.ApproxQuantile, "percentile_approx this quantile accuracy", type_rule=_quantile_type, order=None
    ),
    AggregateFunction(exp.Mode, "mode this", order=None),
    AggregateFunction(exp.ApproxDistinct, "approx_count_distinct this accuracy", is_repeatable=_always),
    AggregateFunction(exp.BitmapConstructAgg, "bitmap_construct_agg this", order=None),
    AggregateFunction(exp.BitmapOrAgg, "bitmap_or_agg this", order=None),
    _choice(exp.First, "first this", in_window=True), _choice(exp.FirstValue, "first_value this", in_window=True),
    _choice(exp.Last, "last this", in_window=True), _choice(exp.LastValue, "last_value this", in_window=True),
    _choice(exp.AnyValue, "any_value this"), _choice(exp.ArgMax, "max_by this expression"),
    _choice(exp.ArgMin, "min_by this expression"), _choice(exp.ArrayAgg, "collect_list this"),
    _choice(exp.ArrayUniqueAgg, "collect_set this"),
)  # fmt: skip
AGGREGATES: dict[type[exp.Expr], AggregateFunction] = {record.kind: record for record in _RECORDS}
"""Each by its class; the only list of them."""


def aggregate_of(node: exp.Expr) -> AggregateFunction | None:
    """The aggregate that a node calls.

    >>> import sqlglot
    >>> aggregate_of(sqlglot.parse_one("avg(a)")).order, aggregate_of(sqlglot.parse_one("upper(a)"))
    ('free', None)
    """
    return AGGREGATES.get(type(node))


def aggregate_named(name: str) -> AggregateFunction | None:
    """The aggregate of that name in a plan, such as `SUM` or `LOGICAL_AND`."""
    return next((record for record in AGGREGATES.values() if record.name == name), None)


def is_mergeable(node: exp.Expr) -> bool:
    """Whether a node calls an aggregate that can be merged over some arguments."""
    record = aggregate_of(node)
    return record is not None and record.merge is not None
