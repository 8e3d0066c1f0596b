"""Aggregates and windows: over which types they are proven, and how DuckDB is given them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from sqlmesh_like.analyze.binding.joining import conjuncts
from sqlmesh_like.analyze.spark_types.exactness import averages_doubles
from sqlmesh_like.duckdb.exact.form import SYNTAX, Form
from sqlmesh_like.duckdb.exact.unproven import Unproven, require_hashed, require_only, require_ordered
from sqlmesh_like.duckdb.exact.values import (
    INTEGERS,
    MOST_DIGITS,
    NULL,
    Types,
    cast_of,
    decimal_digits,
    decimal_of_double,
    only_where,
    quotient_of,
    replace_by_cast,
    replace_by_double,
)
from sqlmesh_like.names import is_hidden


def _count(node: exp.Count, types: Types) -> str:
    counted = node.this
    if isinstance(counted, exp.Distinct):
        require_only(counted, "expressions")
        require_hashed([types.of(value) for value in list(counted.expressions)])
        if len(counted.expressions) > 1:
            counted.set("expressions", [_whole_row(counted.expressions)])
    elif not isinstance(counted, exp.Star):
        types.of(counted)
    if node.expressions:
        raise Unproven("COUNT of several values")
    return "bigint"


def _whole_row(values: Sequence[exp.Expr]) -> exp.Expr:
    """Several values as one, which is NULL where one of them is: COUNT passes over such rows."""
    known = exp.and_(*[exp.Not(this=exp.Is(this=exp.Paren(this=v.copy()), expression=exp.null())) for v in values])
    fields = [exp.PropertyEQ(this=exp.to_identifier(f"v{n}"), expression=v.copy()) for n, v in enumerate(values)]
    return exp.Case().when(known, exp.Struct(expressions=fields))


def _count_if(node: exp.CountIf, types: Types) -> str:
    types.require_condition(node.this)
    return "bigint"


def _sum(node: exp.Sum, types: Types) -> str:
    given = argument_type(node.this, types)
    if given == "double":
        return replace_by_double(node, given, given)
    if given in INTEGERS:
        return replace_by_cast(node, "bigint")
    digits, scale = decimal_digits(given)
    return replace_by_cast(node, f"decimal({min(digits + 10, MOST_DIGITS)},{scale})")


def _average(node: exp.Avg, types: Types) -> str:
    return replace_average(node, node, types)


def replace_average(node: exp.Expr, call: exp.Avg, types: Types) -> str:
    """Replace a mean, or a window of one, by a quotient of sums and counts of the same rows; return its type."""
    if isinstance(call.this, exp.Distinct):
        raise Unproven("AVG of distinct values")
    given = types.of(call.this)

    def of_rows(function: exp.Expr) -> exp.Expr:
        return function if node is call else exp.Window(**{**node.copy().args, "this": function})

    total, count = of_rows(exp.Sum(this=call.this.copy())), of_rows(exp.Count(this=call.this.copy()))
    if given in INTEGERS or averages_doubles(given):
        size = of_rows(exp.Sum(this=exp.Abs(this=cast_of(call.this.copy(), _wide(given)))))
        return _replace_by_mean_of_doubles(node, given, total, size, count)
    digits, scale = decimal_digits(given)
    if digits + 10 > MOST_DIGITS:
        raise Unproven(f"AVG of decimals of {digits} digits")
    made = f"decimal({digits + 4},{scale + 4})"
    node.replace(quotient_of(cast_of(total, f"decimal({digits + 10},{scale})"), scale, count, 0, made))
    return made


def _wide(given: str) -> str:
    return f"decimal({MOST_DIGITS},{0 if given in INTEGERS else decimal_digits(given)[1]})"


def _replace_by_mean_of_doubles(node: exp.Expr, given: str, total: exp.Expr, size: exp.Expr, count: exp.Expr) -> str:
    """As Spark adds whole numbers as doubles, and decimals of few digits without their points.

    Each of its sums is exact where none can leave what a double holds; otherwise the query fails.
    """
    scale = 0 if given in INTEGERS else decimal_digits(given)[1]
    most = cast_of(exp.Literal.string(f"{2**53 // 10**scale}"), _wide("int"))
    whole = exp.Anonymous(this="_sml_unscaled", expressions=[total]) if scale else total
    mean = exp.Div(this=cast_of(whole, "double"), expression=exp.Paren(this=cast_of(count, "double")))
    if given not in INTEGERS:
        mean = exp.Div(this=exp.Paren(this=mean), expression=cast_of(exp.Literal.string(str(10**scale)), "double"))
    result = only_where(exp.LT(this=size, expression=most), total, exp.Paren(this=mean), "double")
    if given in INTEGERS:
        node.replace(exp.Paren(this=result))
        return "double"
    digits, places = decimal_digits(given)
    made = f"decimal({digits + 4},{places + 4})"
    node.replace(decimal_of_double(exp.Paren(this=result), made))
    return made


def _least_or_most(node: exp.Min | exp.Max, types: Types) -> str:
    if node.expressions:
        raise Unproven("MIN or MAX of several values")
    argument = argument_type(node.this, types)
    require_ordered((argument,))
    if argument == "float":
        raise Unproven(f"MIN or MAX of {argument}")
    return argument


def _all_or_any(node: exp.Func, types: Types) -> str:
    types.require_condition(node.this)
    return "boolean"


def argument_type(value: exp.Expr, types: Types) -> str:
    """The type of an aggregate's argument."""
    if not isinstance(value, exp.Distinct):
        return types.of(value)
    require_only(value, "expressions")
    entries = [types.of(each) for each in value.expressions]
    require_hashed(entries)
    if len(entries) != 1:
        raise Unproven("an aggregate of several distinct values")
    return entries[0]


def _of_running_means(node: exp.Func, _: Types) -> str:
    raise Unproven(f"{node.sql_name()}, which depends on the order in which doubles are added")


CHOOSES_BY: Mapping[type[exp.Expr], str] = {exp.ArgMax: "MAX_BY", exp.ArgMin: "MIN_BY"}
"""Spark's names of what chooses a row by the order of a value."""
CHOOSES_ANY: Mapping[type[exp.Expr], str] = {
    exp.AnyValue: "ANY_VALUE", exp.First: "FIRST", exp.FirstValue: "FIRST_VALUE", exp.Last: "LAST",
    exp.LastValue: "LAST_VALUE",
}  # fmt: skip
"""Of what chooses a row of a group whose rows are in no order."""


def _of_chosen_row(node: exp.ArgMax | exp.ArgMin, types: Types) -> str:
    """The value, NULL or not, of the row that is last or first by one or more terms, of which the last is ours.

    Either engine compares structs field by field, texts by their bytes, NaN after all numbers and the two zeros as
    equal, and passes over rows whose order is NULL. Fields that are NULL have other places: none may be. Among rows
    that tie each engine takes any: a hidden column, of which the row key is, ends the order.
    """
    require_only(node, "this", "expression")
    order, known = node.expression.unnest(), set[exp.Expr]()
    if type(order) is exp.Case and len(order.args["ifs"]) == 1 and not (order.this or order.args.get("default")):
        (branch,) = order.args["ifs"]
        known = {part.this.unnest().this.unnest() for part in conjuncts(branch.this) if _is_known_value(part)}
        types.require_condition(branch.this)
        order = branch.args["true"].unnest()
    terms = [field.expression.unnest() for field in order.expressions] if type(order) is exp.Struct else [order]
    if not (isinstance(terms[-1], exp.Column) and is_hidden(terms[-1].name)):
        raise Unproven(f"{CHOOSES_BY[type(node)]} of rows that may tie")
    if any(term not in known for term in terms[:-1]):
        raise Unproven(f"{CHOOSES_BY[type(node)]} by several values that may be NULL")
    for result in [types.of(term) for term in terms]:
        require_ordered((result,))
        if result in ("float", NULL):
            raise Unproven(f"{CHOOSES_BY[type(node)]} by {result}")
    return types.of(node.this)


def _is_known_value(part: exp.Expr) -> bool:
    """Whether a condition is `NOT x IS NULL`."""
    test = part.this.unnest() if isinstance(part, exp.Not) else None
    return isinstance(test, exp.Is) and isinstance(test.expression, exp.Null)


def _filter(node: exp.Filter, types: Types) -> str:
    types.require_condition(node.expression.this)
    if isinstance(node.this, exp.Avg):
        raise Unproven("AVG with FILTER")
    inner = node.this
    result = types.of(inner)
    if node.this is not inner:  # a cast must be outside the FILTER
        node.set("this", inner.copy())
        return replace_by_cast(node, result)
    return result


FORMS: dict[type[exp.Expr], Form] = {
    exp.Count: Form(_count), exp.CountIf: Form(_count_if), exp.Sum: Form(_sum), exp.Avg: Form(_average),
    exp.Min: Form(_least_or_most), exp.Max: Form(_least_or_most),
    exp.LogicalAnd: Form(_all_or_any), exp.LogicalOr: Form(_all_or_any),
    **dict.fromkeys((exp.ArgMax, exp.ArgMin), Form(_of_chosen_row)),
    **dict.fromkeys(
        (
            exp.Corr, exp.CovarPop, exp.CovarSamp, exp.RegrSxy, exp.RegrSlope, exp.RegrIntercept, exp.RegrR2,
            exp.Skewness, exp.Kurtosis,
        ),
        Form(_of_running_means, is_listed=False, why="it depends on the order in which doubles are added"),
    ),
    exp.Filter: Form(_filter, is_listed=False, why=SYNTAX),
}  # fmt: skip
