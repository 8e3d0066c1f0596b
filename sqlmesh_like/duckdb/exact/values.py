"""Types and rewritings that proofs share: decimals by their digits, casts, and values on which a query must fail."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from sqlglot import exp

from sqlmesh_like.analyze.spark_types.exactness import DOUBLE_DIGITS
from sqlmesh_like.analyze.spark_types.function_types import narrow
from sqlmesh_like.analyze.spark_types.java_numbers import DOUBLE_BOUND, PLAIN_TEXT
from sqlmesh_like.analyze.spark_types.nested_types import element_of, typed_fields_of
from sqlmesh_like.duckdb.duck_types import type_tree
from sqlmesh_like.duckdb.exact.unproven import Unproven, is_struct

INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
"""Integer types, with the precision of the decimal as which Spark treats each."""
FLOATS = ("float", "double")
OTHERS = ("string", "date", "timestamp", "boolean")
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}:\d{2}([.]\d{1,6})?)?")
MOST_DIGITS = 38
LEAST_SCALE = 6
_MOST_PLACES = 18
"""Of a decimal made of a double: its text has 17 digits before the point and 20 behind it, or fewer."""
NULL = "null"
SHOWS_SIGN_OF_ZERO = "shows_sign_of_zero"
"""Metadata of a node: the text of a double."""
ARRAY_OF_NULL = f"array<{NULL}>"
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")

Columns = Sequence[tuple[str, str]]
"""Names and Spark types."""


class Types(Protocol):
    """Spark's types of the expressions of one SELECT, which are proven, and rewritten in place, as they are asked for.

    All of it raises Unproven.
    """

    def of(self, node: exp.Expr) -> str: ...

    def of_column(self, column: exp.Column) -> str: ...

    def of_query(self, query: exp.Expr) -> Columns: ...

    def of_variable(self, name: str) -> str: ...

    def within(self, variable: str, type_: str) -> Types: ...

    def require_condition(self, condition: exp.Expr) -> None: ...


def require_known(type_: str) -> str:
    """The type, if proofs are about its values: without parts, or a struct or array of such. Raises Unproven."""
    if element := element_of(type_):
        require_known(element)
    elif is_struct(type_):
        fields = typed_fields_of(type_)
        if not fields:
            raise Unproven(f"a value of type {type_}")
        for _, part in fields:
            require_known(part)
    elif type_ not in INTEGERS and type_ not in FLOATS and type_ not in OTHERS and type_ != NULL:
        decimal_digits(type_)
    return type_


def common_of_union(one: str, other: str) -> str:
    if one == other or other == NULL:
        return one
    if one == NULL:
        return other
    if one in INTEGERS and other in INTEGERS:
        return wider_type(one, other)
    raise Unproven(f"a union of {one} and {other}")


def wider_type(one: str, other: str) -> str:
    """The type that holds the values of both exactly. Raises Unproven."""
    if one == other or other == NULL:
        return one
    if one == NULL:
        return other
    if ARRAY_OF_NULL in (one, other) and element_of(one) and element_of(other):
        return other if one == ARRAY_OF_NULL else one
    if one in INTEGERS and other in INTEGERS:
        return max(one, other, key=INTEGERS.__getitem__)
    (p1, s1), (p2, s2) = digits_of_type(one), digits_of_type(other)
    return exact_decimal(max(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2))


def decimal_digits(type_: str) -> tuple[int, int]:
    match = _DECIMAL.fullmatch(type_)
    if not match:
        raise Unproven(f"a value of type {type_}")
    return int(match[1]), int(match[2])


def digits_of_type(type_: str) -> tuple[int, int]:
    """Precision and scale of a decimal, or of the decimal as which Spark treats an integer type."""
    return (INTEGERS[type_], 0) if type_ in INTEGERS else decimal_digits(type_)


def digits_of(node: exp.Expr, type_: str) -> tuple[int, int]:
    """As `digits_of_type`; an integer literal has the precision of its digits."""
    return digits_of_type(narrow(node, type_))


def scale_of(type_: str) -> int:
    return 0 if type_ in INTEGERS else decimal_digits(type_)[1]


def exact_decimal(digits: int, scale: int) -> str:
    if digits > MOST_DIGITS:
        raise Unproven("a decimal that Spark cuts down")
    return f"decimal({digits},{scale})"


def cast_of(node: exp.Expr, type_: str) -> exp.Expr:
    return exp.Cast(this=node, to=type_tree(type_))


def replace_by_cast(node: exp.Expr, type_: str, of: exp.Expr | None = None) -> str:
    """Replace a node by a cast of itself (or of `of`), since DuckDB gives it another type; return the type."""
    node.replace(cast_of((node if of is None else of).copy(), type_))
    return type_


def is_exact_double(type_: str) -> bool:
    """Whether both engines convert each value to the same double: a decimal must have no more digits than it holds."""
    return type_ == "double" or type_ in INTEGERS or decimal_digits(type_)[0] <= DOUBLE_DIGITS


def replace_by_double(node: exp.Expr, left: str, right: str) -> str:
    """Rewrite an operation on doubles so that it never returns negative zero."""
    if not (is_exact_double(left) and is_exact_double(right)):
        raise Unproven(f"doubles made of {left} and {right}")
    node.replace(without_negative_zero(exp.Paren(this=node.copy())))
    return "double"


def without_negative_zero(double: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Add(this=double, expression=cast_of(exp.Literal.number(0), "double")))


def with_year_of_four_digits(value: exp.Expr, text: exp.Expr) -> exp.Expr:
    """The text of a date, failing for years of more than four digits, which have a sign in Spark."""
    low, high = (cast_of(exp.Literal.string(moment), "timestamp") for moment in ("0001-01-01", "9999-12-31 23:59:59"))
    return only_where(exp.Between(this=value.copy(), low=low, high=high), value, text, "string")


def only_where(condition: exp.Expr, value: exp.Expr, result: exp.Expr, type_: str) -> exp.Expr:
    """The result if the condition holds or the value is NULL; otherwise the query fails and Spark computes it."""
    said = exp.DPipe(this=exp.Literal.string("not proven: "), expression=cast_of(value.copy(), "string"), safe=True)
    failing = cast_of(cast_of(said, "boolean"), type_)
    is_null = exp.Is(this=value.copy(), expression=exp.Null())
    return exp.Case().when(exp.or_(is_null, condition), result).else_(failing)


def decimal_of_double(double: exp.Expr, wanted: str) -> exp.Expr:
    """The decimal of a double: Spark rounds the text that Java writes, DuckDB the number.

    See `java_numbers` for the doubles of which DuckDB's text, the shortest, has Java's digits as far as these places
    go. A larger one, which a decimal of up to 15 digits cannot hold, fails where it has no text that is a decimal.
    """
    digits, scale = decimal_digits(wanted)
    if scale > _MOST_PLACES:
        raise Unproven(f"a cast of double to {wanted}")
    widest = cast_of(cast_of(double.copy(), "string"), f"decimal({MOST_DIGITS},{scale})")
    decimal = exp.TryCast(this=widest, to=type_tree(wanted))
    return (
        decimal if digits <= DOUBLE_DIGITS else exp.Paren(this=only_where(_is_bound(double), double, decimal, wanted))
    )


def rounded_double(double: exp.Expr, places: int) -> exp.Expr:
    """A double rounded half up to places after the point, as Java writes it; larger ones are whole numbers."""
    if places > _MOST_PLACES:
        raise Unproven("ROUND to many digits")
    text = cast_of(cast_of(cast_of(double.copy(), "string"), f"decimal({MOST_DIGITS},{places})"), "string")
    return exp.Paren(this=exp.Case().when(_is_bound(double), cast_of(text, "double")).else_(double.copy()))


def _is_bound(double: exp.Expr) -> exp.Expr:
    bound = cast_of(exp.Literal.number(int(DOUBLE_BOUND)), "double")
    return exp.LT(this=exp.Abs(this=double.copy()), expression=bound)


def text_of_double(double: exp.Expr) -> exp.Expr:
    """The text of a double that Java writes without an exponent; of zero, whose sign is lost here, it fails."""
    text = cast_of(double.copy(), "string")
    is_plain = exp.Anonymous(this="regexp_full_match", expressions=[text.copy(), exp.Literal.string(f"-?{PLAIN_TEXT}")])
    made = exp.Paren(this=only_where(is_plain, double, text, "string"))
    made.meta[SHOWS_SIGN_OF_ZERO] = True
    return made


def finite_micros(moment: exp.Expr) -> exp.Expr:
    """Microseconds since 1970 of a timestamp: the last ones of Spark's range are infinite in DuckDB, where it fails."""
    micros = exp.Anonymous(this="epoch_us", expressions=[moment.copy()])
    return only_where(exp.Anonymous(this="isfinite", expressions=[moment.copy()]), moment, micros, "bigint")


def quotient_of(one: exp.Expr, s1: int, other: exp.Expr, s2: int, made: str) -> exp.Expr:
    """The quotient of decimals of these scales as a decimal, rounded half up; NULL if the divisor is 0."""
    digits, scale = decimal_digits(made)
    shift = scale + s2 - s1
    if shift < 0 or scale >= MOST_DIGITS - 1:
        raise Unproven("a quotient of these scales")
    unscaled = [exp.Anonymous(this="_sml_unscaled", expressions=[value.copy()]) for value in (one, other)]
    unscaled[1] = exp.Anonymous(this="NULLIF", expressions=[unscaled[1], exp.Literal.number(0)])
    numbers = [_huge_number(10**shift), _huge_number(10 ** (MOST_DIGITS - 1 - scale))]
    quotient = exp.Anonymous(this="_sml_quotient", expressions=[*unscaled, *numbers])
    unit = cast_of(exp.Literal.string(f"{10**-scale:.{scale}f}"), f"decimal({scale},{scale})")
    product = exp.Mul(this=cast_of(quotient, f"decimal({MOST_DIGITS},0)"), expression=unit)
    return cast_of(exp.Paren(this=product), f"decimal({digits},{scale})")


def _huge_number(number: int) -> exp.Expr:
    return exp.Cast(this=exp.Literal.string(str(number)), to=exp.DataType.build("hugeint", dialect="duckdb"))
