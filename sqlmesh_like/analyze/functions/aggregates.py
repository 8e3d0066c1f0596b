"""Spark's aggregate functions: all that is known of each. Owns the records; `merging` has how states make a value.

Source: Spark 3.5 `FunctionRegistry` and `sqlcat.expressions.aggregate`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sqlglot import exp

from sqlmesh_like.analyze.functions.floating_sums import AVERAGED_WITHIN, SUMMED_WITHIN
from sqlmesh_like.analyze.functions.function import Function, functions_of
from sqlmesh_like.analyze.functions.merging import (
    ALL_TRUE,
    ANY_TRUE,
    AVERAGED,
    BY_LEAST,
    BY_MOST,
    COUNTED,
    DEVIATION,
    DEVIATION_OF_ALL,
    FIRST_ROW,
    LAST_ROW,
    LEAST,
    MOST,
    SQUARED,
    SUMMED,
    VARIANCE,
    VARIANCE_OF_ALL,
    Merge,
    has_exact_moments,
)
from sqlmesh_like.analyze.spark_types.coercion import implicit_cast, is_interval
from sqlmesh_like.analyze.spark_types.exactness import is_exact_key, is_exact_number
from sqlmesh_like.analyze.spark_types.function_types import Outcome, avg_type, numeric_aggregate_type, sum_type
from sqlmesh_like.analyze.spark_types.operators import interval_total
from sqlmesh_like.analyze.spark_types.refusal import Refusal

TypeOf = Callable[[exp.Expr], str | None]


def _always(_: str | None) -> bool:
    return True


def _never(_: str | None) -> bool:
    return False


@dataclass(frozen=True)
class SameCall:
    """A call of one argument that has the same value: the class of its aggregate, and the argument made of a call."""

    kind: type[exp.AggFunc]
    argument: Callable[[exp.Expr], exp.Expr]


@dataclass(frozen=True)
class AggregateFunction:
    """One aggregate function.

    `line` states it as one of the table of functions: its name first, then others of the same meaning. `type_rule`
    gives the type where no signature can.

    `order`: "free" of it, the value is a function of the multiset of rows; "key", the row key decides (`ties`); None,
    it is not known to be decided. `of_nothing` is the value over no rows, where it is known. `is_repeatable` tells by
    the argument's type whether computing it again gives the same digits; `adds`: it adds up, in a window as well.
    `in_window`: its value over a frame is decided. `merge` is None where each change needs all rows of the group.
    `why` tells the reason. `by_states`: of which argument types a group's value is always computed from what `merge`
    keeps. `within`: how values are merged that `merge` does not take, where a tolerance is declared.
    """

    line: str
    type_rule: Callable[[exp.Expr, TypeOf], Outcome] | None = None
    order: Literal["free", "key"] | None = "free"
    of_nothing: Literal["null", "zero"] | None = None
    is_repeatable: Callable[[str | None], bool] = _never
    adds: bool = False
    in_window: bool = False
    merge: Merge | None = None
    why: str = ""
    by_states: Callable[[str | None], bool] = _never
    within: Merge | None = None
    same_as: SameCall | None = None

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """By each of its names."""
        return tuple(functions_of(self.line, "group"))

    @property
    def kind(self) -> type[exp.Expr]:
        """Its class in a tree."""
        kind = self.functions[0].kind
        assert kind is not None, self.line
        return kind

    @cached_property
    def name(self) -> str:
        """The name by which plans know a call: that of the class."""
        return _sql_name(self.kind)

    def merging(self, type_: str | None, tolerance: float | None) -> Merge | None:
        """How calls over arguments of a type are merged."""
        within = self.within if tolerance is not None else None
        return within if within is not None and within.takes is not None and within.takes(type_) else self.merge

    @property
    def merged_name(self) -> str:
        """The name of the aggregate as which its calls are merged."""
        return self.name if self.same_as is None else _sql_name(self.same_as.kind)


def _sql_name(kind: type[exp.Expr]) -> str:
    assert issubclass(kind, exp.Func)
    return kind.sql_name()


def _sum_rule(result: Callable[[str | None], str | None]) -> Callable[[exp.Expr, TypeOf], Outcome]:
    return lambda node, type_of: numeric_aggregate_type(type_of(node.this), result)


def _quantile_type(node: exp.Expr, type_of: TypeOf) -> Outcome:
    type_, quantile = type_of(node.this), node.args.get("quantile") or node.args.get("expression")
    if type_ is None:
        return None
    is_approximate = isinstance(node, exp.ApproxQuantile)
    if implicit_cast(type_, "number|interval" if not is_approximate else "number|date|time|interval") is None:
        return Refusal(f"{node.key.upper()} takes a number, not {type_}")
    one = type_ if is_approximate else interval_total(type_) if is_interval(type_) else "double"
    fraction = "double" if quantile is None else type_of(quantile)
    return None if fraction is None else f"array<{one}>" if fraction.startswith("array<") else one


def _has_huge_totals(type_: str | None) -> bool:
    """Whether totals of integers may be no exact doubles, as which Spark averages them."""
    return type_ == "bigint"


_OF_RUNNING_MEANS = (
    "Spark adds up doubles, each by its distance from the mean of the rows before it: from exact sums other digits"
    " follow, and 0 where its own are what rounding left"
)


def _moment(line: str) -> AggregateFunction:
    """Of doubles, in an order that is not given."""
    return AggregateFunction(line, adds=True, in_window=True, why=_OF_RUNNING_MEANS)


def _spread(line: str, merge: Merge) -> AggregateFunction:
    """Of doubles in an order that is not given; of exact values from exact sums, which have no order."""
    return AggregateFunction(
        line,
        of_nothing="null",
        is_repeatable=has_exact_moments,
        adds=True,
        in_window=True,
        merge=merge,
        by_states=has_exact_moments,
    )


def _quantile(line: str) -> AggregateFunction:
    """Of the sorted values: the same digits in whatever order they come, unless zeros differ in their sign."""
    return AggregateFunction(
        line,
        type_rule=_quantile_type,
        is_repeatable=is_exact_number,
        in_window=True,
        why="it needs all values of its group in order",
    )


def _bits(line: str) -> AggregateFunction:
    return AggregateFunction(
        line, is_repeatable=_always, in_window=True, why="a value that leaves does not say which bits the others have"
    )


def _choice(line: str, merge: Merge | None = None, *, in_window: bool = False) -> AggregateFunction:
    """One row of the group, or all in an order, which the row key decides."""
    return AggregateFunction(
        line,
        order="key",
        of_nothing=None if merge is None else "null",  # an empty list is not NULL
        is_repeatable=_always,
        in_window=in_window,
        merge=merge,
    )


def _one_if(call: exp.Expr) -> exp.Expr:
    return exp.Case().when(call.this.copy(), exp.Literal.number(1))


def _pair_with(value: Literal["this", "expression"] | None) -> Callable[[exp.Expr], exp.Expr]:
    """One of the two values of a call where both are known, or 1: REGR functions pass over other pairs."""

    def argument(call: exp.Expr) -> exp.Expr:
        others = [call.args[part] for part in ("this", "expression") if part != value]
        known = exp.and_(*(exp.Not(this=exp.Is(this=exp.paren(each), expression=exp.Null())) for each in others))
        return exp.Case().when(known, exp.Literal.number(1) if value is None else call.args[value].copy())

    return argument


def _regression(line: str) -> AggregateFunction:
    """Of pairs of doubles."""
    return AggregateFunction(line, why=_OF_RUNNING_MEANS)


def _of_one_side(
    line: str, kind: type[exp.AggFunc], value: Literal["this", "expression"], merge: Merge
) -> AggregateFunction:
    """An average or spread of one value of each pair, as of this value alone."""
    is_spread = merge is SQUARED
    return AggregateFunction(
        line,
        of_nothing="null",
        is_repeatable=has_exact_moments if is_spread else is_exact_number,
        merge=merge,
        by_states=has_exact_moments if is_spread else _has_huge_totals,
        same_as=SameCall(kind, _pair_with(value)),
    )


_RECORDS = (
    AggregateFunction(
        "count=Count(this expressions) {1-}: any* -> bigint",
        of_nothing="zero",
        is_repeatable=_always,
        in_window=True,
        merge=COUNTED,
    ),
    AggregateFunction(
        "count_if=CountIf: boolean -> bigint",
        of_nothing="zero",
        order=None,
        in_window=True,
        merge=COUNTED,
        same_as=SameCall(exp.Count, _one_if),
    ),
    AggregateFunction(
        "sum=Sum {1}",
        type_rule=_sum_rule(sum_type),
        of_nothing="null",
        is_repeatable=is_exact_number,
        adds=True,
        in_window=True,
        merge=SUMMED,
        within=SUMMED_WITHIN,
    ),
    AggregateFunction(
        "avg=Avg mean {1}",
        type_rule=_sum_rule(avg_type),
        of_nothing="null",
        is_repeatable=is_exact_number,
        adds=True,
        in_window=True,
        merge=AVERAGED,
        within=AVERAGED_WITHIN,
        by_states=_has_huge_totals,
    ),
    AggregateFunction("min=Min: any -> $1", of_nothing="null", is_repeatable=is_exact_key, in_window=True, merge=LEAST),
    AggregateFunction("max=Max: any -> $1", of_nothing="null", is_repeatable=is_exact_key, in_window=True, merge=MOST),
    AggregateFunction(
        "bool_and=LogicalAnd every: boolean -> boolean",
        of_nothing="null",
        is_repeatable=_always,
        in_window=True,
        merge=ALL_TRUE,
    ),
    AggregateFunction(
        "bool_or=LogicalOr some any: boolean -> boolean",
        of_nothing="null",
        is_repeatable=_always,
        in_window=True,
        merge=ANY_TRUE,
    ),
    _spread("stddev=Stddev: double -> double", DEVIATION),
    _spread("stddev_samp=StddevSamp std: double -> double", DEVIATION),
    _spread("stddev_pop=StddevPop: double -> double", DEVIATION_OF_ALL),
    _spread("variance=Variance var_samp: double -> double", VARIANCE),
    _spread("var_pop=VariancePop: double -> double", VARIANCE_OF_ALL),
    _moment("skewness=Skewness: double -> double"),
    _moment("kurtosis=Kurtosis: double -> double"),
    _moment("corr=Corr(this expression): double, double -> double"),
    _moment("covar_pop=CovarPop(this expression): double, double -> double"),
    _moment("covar_samp=CovarSamp(this expression): double, double -> double"),
    AggregateFunction(
        "regr_count=RegrCount(this expression): double, double -> bigint",
        of_nothing="zero",
        is_repeatable=_always,
        merge=COUNTED,
        same_as=SameCall(exp.Count, _pair_with(None)),
    ),
    _of_one_side("regr_avgx=RegrAvgx(this expression): double, double -> double", exp.Avg, "expression", AVERAGED),
    _of_one_side("regr_avgy=RegrAvgy(this expression): double, double -> double", exp.Avg, "this", AVERAGED),
    _of_one_side("regr_sxx=RegrSxx(this expression): double, double -> double", exp.RegrSxx, "expression", SQUARED),
    _of_one_side("regr_syy=RegrSyy(this expression): double, double -> double", exp.RegrSyy, "this", SQUARED),
    _regression("regr_sxy=RegrSxy(this expression): double, double -> double"),
    _regression("regr_intercept=RegrIntercept(this expression): double, double -> double"),
    _regression("regr_r2=RegrR2(this expression): double, double -> double"),
    _regression("regr_slope=RegrSlope(this expression): double, double -> double"),
    _bits("bit_and=BitwiseAndAgg: integer -> $1"),
    _bits("bit_or=BitwiseOrAgg: integer -> $1"),
    _bits("bit_xor=BitwiseXorAgg: integer -> $1"),
    _quantile("median=Median {1}"),
    _quantile("percentile=Quantile(this quantile) {2-3}"),
    _quantile("percentile_cont=PercentileCont(this expression)"),
    _quantile("percentile_disc=PercentileDisc(this expression)"),
    AggregateFunction(
        "percentile_approx=ApproxQuantile(this quantile accuracy) approx_percentile {2-3}",
        type_rule=_quantile_type,
        order=None,
    ),
    AggregateFunction("mode=Mode: any -> $1", order=None),
    AggregateFunction(
        "approx_count_distinct=ApproxDistinct(this accuracy): any, double? -> bigint", is_repeatable=_always
    ),
    AggregateFunction("bitmap_construct_agg=BitmapConstructAgg: bigint -> binary", order=None),
    AggregateFunction("bitmap_or_agg=BitmapOrAgg: =binary -> binary", order=None),
    _choice("first=First: any, boolean? -> $1", FIRST_ROW, in_window=True),
    _choice("first_value=FirstValue: any, boolean? -> $1", FIRST_ROW, in_window=True),
    _choice("last=Last: any, boolean? -> $1", LAST_ROW, in_window=True),
    _choice("last_value=LastValue: any, boolean? -> $1", LAST_ROW, in_window=True),
    _choice("any_value=AnyValue: any, boolean? -> $1", FIRST_ROW, in_window=True),
    _choice("max_by=ArgMax(this expression): any, any -> $1", BY_MOST),
    _choice("min_by=ArgMin(this expression): any, any -> $1", BY_LEAST),
    _choice("collect_list=ArrayAgg array_agg: any -> array<$1>"),
    _choice("collect_set=ArrayUniqueAgg: any -> array<$1>"),
)
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
