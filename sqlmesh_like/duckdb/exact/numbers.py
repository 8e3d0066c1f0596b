"""Arithmetic: with which types it is proven, and how DuckDB is given it."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from sqlmesh_like.analyze.spark_types.operators import adjust_precision_scale
from sqlmesh_like.dialects import duck_template
from sqlmesh_like.duckdb.exact.form import Form
from sqlmesh_like.duckdb.exact.times import moment_arithmetic
from sqlmesh_like.duckdb.exact.unproven import Unproven, require_only
from sqlmesh_like.duckdb.exact.values import (
    INTEGERS,
    LEAST_SCALE,
    MOST_DIGITS,
    Types,
    cast_of,
    decimal_digits,
    digits_of,
    exact_decimal,
    is_exact_double,
    quotient_of,
    replace_by_cast,
    replace_by_double,
    rounded_double,
    scale_of,
)

_NOT_TRIED = "no fixture compares it over values of unknown types"


def _sum_or_difference(node: exp.Add | exp.Sub, types: Types) -> str:
    left = types.of(node.this)
    if isinstance(node.expression, exp.Interval):
        return moment_arithmetic(node, left)
    right = types.of(node.expression)
    if left in INTEGERS and right in INTEGERS:
        return replace_by_cast(node, max(left, right, key=INTEGERS.__getitem__))
    if "double" in (left, right):
        return replace_by_double(node, left, right)
    (one, s1), (other, s2) = (digits_of(node.this, left), digits_of(node.expression, right))
    made = adjust_precision_scale(max(s1, s2) + max(one - s1, other - s2) + 1, max(s1, s2))
    if scale_of(made) == max(s1, s2):
        return made
    # Spark rounds the exact sum, half up. One that 38 digits do not hold fails, and Spark computes it.
    widest = f"decimal({MOST_DIGITS},{max(s1, s2)})"
    for part in (node.this, node.expression):
        part.replace(cast_of(part.copy(), widest))
    return replace_by_cast(node, made)


def _product(node: exp.Mul, types: Types) -> str:
    left, right = types.of(node.this), types.of(node.expression)
    if left in INTEGERS and right in INTEGERS:
        return replace_by_cast(node, max(left, right, key=INTEGERS.__getitem__))
    if "double" in (left, right):
        return replace_by_double(node, left, right)
    (one, s1), (other, s2) = (digits_of(node.this, left), digits_of(node.expression, right))
    made = adjust_precision_scale(one + other + 1, s1 + s2)
    if scale_of(made) != s1 + s2:
        raise Unproven("a product that Spark rounds")
    return made


def _quotient(node: exp.Div, types: Types) -> str:
    left, right = types.of(node.this), types.of(node.expression)
    if "double" in (left, right) or (left in INTEGERS and right in INTEGERS):
        node.set("expression", exp.Nullif(this=node.expression.copy(), expression=exp.Literal.number(0)))
        return replace_by_double(node, left, right)
    (one, s1), (other, s2) = (digits_of(node.this, left), digits_of(node.expression, right))
    scale = max(LEAST_SCALE, s1 + other + 1)
    made = adjust_precision_scale(one - s1 + s2 + scale, scale)
    node.replace(quotient_of(node.this, s1, node.expression, s2, made))
    return made


def _remainder(node: exp.Mod, types: Types) -> str:
    left, right = types.of(node.this), types.of(node.expression)
    if left not in INTEGERS or right not in INTEGERS:
        raise Unproven("a remainder of other than whole numbers")
    node.set("expression", exp.Nullif(this=node.expression.copy(), expression=exp.Literal.number(0)))
    return max(left, right, key=INTEGERS.__getitem__)


def positive_remainder(node: exp.Anonymous, types: Types) -> str:
    """PMOD: a remainder below 0 is moved up once by the divisor, and divided again."""
    if len(node.expressions) != 2:
        raise Unproven("PMOD of other than two numbers")
    left, right = (types.of(part) for part in list(node.expressions))
    if left not in INTEGERS or right not in INTEGERS:
        raise Unproven("PMOD of other than whole numbers")
    known = exp.Nullif(this=node.expressions[1].copy(), expression=exp.Literal.number(0))
    template = "CASE WHEN (a % b) < 0 THEN ((a % b) + b) % b ELSE a % b END"
    made = duck_template(template, a=node.expressions[0], b=known)
    return replace_by_cast(node, max(left, right, key=INTEGERS.__getitem__), of=exp.Paren(this=made))


def _bucket(node: exp.WidthBucket, types: Types) -> str:
    """WIDTH_BUCKET, as Spark computes it in doubles; up between written ends."""
    require_only(node, "this", "min_value", "max_value", "num_buckets")
    given = types.of(node.this)
    if not is_exact_double(given) or given == "bigint":
        raise Unproven(f"WIDTH_BUCKET of {given}")
    low, high, count = (node.args[part] for part in ("min_value", "max_value", "num_buckets"))
    if not all(_is_written(each) for each in (low, high, count)) or not float(low.name) < float(high.name):
        raise Unproven("WIDTH_BUCKET of other than a range upwards as it is written")
    if not count.is_int or not 0 < int(count.name) < 2**31:
        raise Unproven("WIDTH_BUCKET of other than a number of buckets as written")
    made = sqlglot.parse_one(
        "CASE WHEN isnan(v) THEN NULL WHEN v < low THEN 0 WHEN v >= high THEN n + 1"
        " ELSE CAST(trunc(CAST(n AS DOUBLE) * (v - low) / (high - low)) AS BIGINT) + 1 END", dialect="duckdb"
    )  # fmt: skip
    texts = {name: cast_of(exp.Literal.string(end.name), "double") for name, end in (("low", low), ("high", high))}
    values = {**texts, "v": cast_of(node.this.copy(), "double"), "n": exp.Literal.number(count.name)}
    for place in list(made.find_all(exp.Column)):
        place.replace(exp.Paren(this=values[place.name].copy()))
    return replace_by_cast(node, "bigint", of=exp.Paren(this=made))


def _is_written(number: exp.Expr) -> bool:
    return isinstance(number, exp.Literal) and not number.is_string


def _negative(node: exp.Neg | exp.Abs, types: Types) -> str:
    result = types.of(node.this)
    if result == "double" and isinstance(node, exp.Neg):
        return replace_by_double(node, result, result)
    if result not in INTEGERS and result != "double":
        decimal_digits(result)
    return result


def _round(node: exp.Round, types: Types) -> str:
    places, given = node.args.get("decimals"), types.of(node.this)
    if places is not None and not (isinstance(places, exp.Literal) and places.is_int):
        raise Unproven("ROUND to computed digits")
    kept = int(places.name) if places is not None else 0
    if given == "double":
        node.replace(rounded_double(node.this, kept))
        return given
    digits, scale = decimal_digits(given)
    if kept >= scale:
        raise Unproven("ROUND that keeps all digits")
    return replace_by_cast(node, exact_decimal(digits - scale + kept + 1, kept), of=node.this)


def _root(node: exp.Sqrt, types: Types) -> str:
    """IEEE's in either engine, which has one result; of negative numbers DuckDB fails."""
    given = types.of(node.this)
    if given != "double":
        raise Unproven(f"SQRT of {given}")
    return given


def _whole(node: exp.Floor | exp.Ceil, types: Types) -> str:
    """FLOOR and CEIL: a whole number is a bigint in Spark, a decimal has one digit more before its point."""
    require_only(node, "this")
    given = types.of(node.this)
    if given in INTEGERS:
        return replace_by_cast(node, "bigint", node.this)
    if given == "double":  # NaN, and what does not fit, fails
        node.replace(cast_of(node.copy(), "bigint"))
        return "bigint"
    digits, scale = decimal_digits(given)
    return replace_by_cast(node, exact_decimal(digits - scale + 1, 0) if scale else given)


FORMS: dict[type[exp.Expr], Form] = {
    exp.Add: Form(_sum_or_difference), exp.Sub: Form(_sum_or_difference), exp.Mul: Form(_product),
    exp.Div: Form(_quotient), exp.Mod: Form(_remainder), exp.Neg: Form(_negative), exp.Abs: Form(_negative),
    exp.Round: Form(_round), exp.Floor: Form(_whole), exp.Ceil: Form(_whole),
    exp.WidthBucket: Form(_bucket, is_listed=False, why=_NOT_TRIED),
    exp.Sqrt: Form(_root, is_listed=False, why=_NOT_TRIED),
}  # fmt: skip
