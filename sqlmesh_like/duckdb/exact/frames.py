"""Frames of windows: which are proven, and how DuckDB is given those by RANGE with a distance.

Spark's bound is the value of ORDER BY plus the distance, in the value's own type, compared as ORDER BY compares: beside
NULL it is NULL, and the frame the rows with NULL. DuckDB does the same; where a bound leaves the type's range, it
fails, and Spark, which goes on at the other end of the range, computes the query. Dates and timestamps are ordered as
whole numbers, of days and of microseconds in UTC.
"""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.duckdb.dialect import MICROSECONDS
from sqlmesh_like.duckdb.exact.unproven import Unproven, require_only
from sqlmesh_like.duckdb.exact.values import MOST_DIGITS, Types, cast_of, decimal_digits, finite_micros
from sqlmesh_like.names import is_hidden

_ENDS = ("UNBOUNDED", "CURRENT ROW")


def prove_frame(node: exp.Window, types: Types) -> None:
    """Raise Unproven for other frames; rewrite the order and the distances of one by RANGE."""
    spec = node.args.get("spec")
    if spec is None:
        return
    require_only(spec, "kind", "start", "start_side", "end", "end_side")
    is_by_rows = str(spec.args.get("kind")).upper() == "ROWS"
    distances = [side for side in ("start", "end") if not _is_end(spec.args.get(side))]
    if is_by_rows:
        if not all(_is_number(spec.args[side]) for side in distances):
            raise Unproven("a frame by ROWS with a computed distance")
        if not _is_whole(spec):
            require_decided_order(node)
    elif distances:
        _prove_distances(node, spec, distances, types)


def _prove_distances(node: exp.Window, spec: exp.Expr, sides: list[str], types: Types) -> None:
    order = node.args.get("order")
    if order is None or len(order.expressions) != 1:
        raise Unproven("a distance from several values, or from none")
    (term,) = order.expressions
    type_ = types.of(term.this)
    if type_ not in _DISTANCES and not type_.startswith("decimal"):
        raise Unproven(f"a frame by RANGE with a distance from {type_}")
    for side in sides:
        spec.set(side, _DISTANCES.get(type_, _of_decimal)(spec.args[side], type_))
    term.set("this", _as_number(term.this, type_))


def _as_number(value: exp.Expr, type_: str) -> exp.Expr:
    match type_:
        case "timestamp":
            return finite_micros(value)
        case "date":
            first = cast_of(exp.Literal.string("1970-01-01"), "date")
            days = exp.Sub(this=exp.Paren(this=value.copy()), expression=first)
            return cast_of(exp.Paren(this=days), "int")
    return cast_of(value.copy(), type_)


def _of_integer(distance: exp.Expr, type_: str) -> exp.Expr:
    if not _is_number(distance):
        raise Unproven(f"a distance from {type_} that is not a number as written")
    return cast_of(distance.copy(), type_)


def _of_date(distance: exp.Expr, _: str) -> exp.Expr:
    """A number of days. Spark 3.5 refuses an interval of days here, and says so."""
    if isinstance(distance, exp.Interval):
        raise Unproven("a distance from dates by an interval")
    return _of_integer(distance, "int")


def _of_timestamp(distance: exp.Expr, _: str) -> exp.Expr:
    size = MICROSECONDS.get(_unit(distance)) if isinstance(distance, exp.Interval) else None
    if size is None or not _is_count(distance.this):
        raise Unproven("a distance from timestamps by other than whole days or smaller units")
    return cast_of(exp.Literal.number(int(distance.this.name) * size), "bigint")


def _of_decimal(distance: exp.Expr, type_: str) -> exp.Expr:
    """Spark casts it to the value's own type, and computes the bound with one digit more."""
    digits, scale = decimal_digits(type_)
    whole, _, fraction = distance.name.partition(".")
    is_written = isinstance(distance, exp.Literal) and not distance.is_string and (whole + fraction).isdigit()
    if not is_written or len(whole.lstrip("0")) > digits - scale or len(fraction) > scale or digits == MOST_DIGITS:
        raise Unproven(f"a distance from {type_} that this type does not hold")
    return cast_of(distance.copy(), type_)


_DISTANCES = {"int": _of_integer, "bigint": _of_integer, "date": _of_date, "timestamp": _of_timestamp}


def _unit(interval: exp.Interval) -> str:
    return interval.text("unit").upper().removesuffix("S")


def _is_end(bound: object) -> bool:
    return bound is None or (isinstance(bound, str) and bound.upper() in _ENDS)


def _is_number(bound: object) -> bool:
    return isinstance(bound, exp.Literal) and bound.is_int and _is_count(bound)


def _is_count(literal: exp.Expr) -> bool:
    return isinstance(literal, exp.Literal) and literal.name.isdigit() and len(literal.name) < 10


def _is_whole(spec: exp.Expr) -> bool:
    return [str(spec.args.get(side)).upper() for side in ("start", "end")] == ["UNBOUNDED"] * 2


def require_decided_order(node: exp.Window) -> None:
    """Raise Unproven unless the row key ends the order: among rows that tie each engine takes any."""
    order = node.args.get("order")
    last = order.expressions[-1].this if order is not None else None
    if last is None or not any(is_hidden(column.name) for column in last.find_all(exp.Column)):
        raise Unproven("a window over rows that may tie")
