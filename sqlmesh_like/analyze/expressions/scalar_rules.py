"""Types of rounding, joining texts, moving dates and looking along a window: rules that no signature says. Pure."""

from __future__ import annotations

import re

from sqlglot import exp

from sqlmesh_like.analyze.functions.aggregates import TypeOf
from sqlmesh_like.analyze.functions.signatures import common_type
from sqlmesh_like.analyze.spark_types.coercion import VOID, bounded_decimal, decimal_of, implicit_cast, is_decimal
from sqlmesh_like.analyze.spark_types.function_types import Outcome, rounded_decimal, whole_literal
from sqlmesh_like.analyze.spark_types.refusal import Refusal


def days_later_type(node: exp.Expr, type_of: TypeOf) -> Outcome:
    if isinstance(node, exp.DateAdd | exp.DateSub) and node.args.get("unit") is not None:
        return None
    moment, days = type_of(node.this), node.expression
    if isinstance(days, exp.Mul) and isinstance(days.expression, exp.Neg):
        days = days.this  # date_sub(), of which sqlglot makes date_add()
    number = type_of(days)
    if moment is not None and implicit_cast(moment, "date") is None:
        return Refusal(f"{moment} is not a date, to which days are added")
    is_text = isinstance(days, exp.Literal) and re.fullmatch(r"\s*[+-]?\d+\s*", days.name) is not None
    if number is not None and number not in ("tinyint", "smallint", "int", VOID) and not is_text:
        return Refusal(f"a date takes whole days as int, not {number}")
    return "date"


def rounded_type(type_: str | None, digits: exp.Expr | None) -> Outcome:
    if type_ is None:
        return None
    number = implicit_cast(type_, "number")
    if number is None or number == VOID:
        return Refusal(f"ROUND takes a number, not {type_}")
    scale = whole_literal(digits) if digits is not None else 0
    return rounded_decimal(number, scale) if is_decimal(number) else number


def whole_type(node: exp.Expr, type_of: TypeOf) -> Outcome:
    """CEIL and FLOOR: to a whole number, or to some digits of a decimal."""
    type_ = type_of(node.this)
    if type_ is None:
        return None
    if implicit_cast(type_, "number") is None:
        return Refusal(f"{node.key.upper()} takes a number, not {type_}")
    if (digits := node.args.get("decimals")) is not None:
        decimal = implicit_cast(type_, "decimal")
        return rounded_decimal(decimal, whole_literal(digits)) if decimal else None
    if not is_decimal(type_):
        return "bigint"
    precision, scale = decimal_of(type_) or (0, 0)
    return type_ if scale == 0 else bounded_decimal(precision - scale + 1, 0)


def offset_type(node: exp.Expr, type_of: TypeOf) -> Outcome:
    """LAG and LEAD: the default is converted to the value's type."""
    type_, default = type_of(node.this), node.args.get("default")
    given = type_of(default) if default is not None else None
    if type_ and given and implicit_cast(given, type_) is None and given != VOID:
        return Refusal(f"{node.key.upper()} of {type_} has a default of {given}")
    return type_


def joined_type(values: list[exp.Expr], type_of: TypeOf) -> Outcome:
    """`||` and CONCAT: of binaries, of arrays, else of texts."""
    types = [type_of(value) for value in values]
    if any(type_ is None for type_ in types):
        return None
    known = [type_ for type_ in types if type_ is not None]
    if any(type_.startswith("array<") for type_ in known):
        common = common_type(types)
        return common if VOID not in known else Refusal("arrays and NULL cannot be joined")
    if set(known) == {"binary"}:
        return "binary"
    if refused := next((type_ for type_ in known if type_ != VOID and implicit_cast(type_, "string") is None), None):
        return Refusal(f"texts and {refused} cannot be joined")
    return "string"
