"""Dates and moments: what is proven of each function, and how DuckDB is given it."""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.duckdb.exact.form import SYNTAX, Form
from sqlmesh_like.duckdb.exact.unproven import Unproven, require_only
from sqlmesh_like.duckdb.exact.values import INTEGERS, Types, replace_by_cast, with_year_of_four_digits

_DATE_LETTERS = frozenset("YmdHMS")


def _part_of_date(node: exp.Func, types: Types) -> str:
    if types.of(node.this) not in ("date", "timestamp"):
        raise Unproven(f"{node.key.upper()} of other than a date")
    return replace_by_cast(node, "int")


def _to_date(node: exp.TsOrDsToDate, types: Types) -> str:
    require_only(node, "this")
    if types.of(node.this) not in ("date", "timestamp"):
        raise Unproven("TO_DATE of other than a date")
    return "date"


def _cut_date(node: exp.TimestampTrunc, types: Types) -> str:
    if node.text("unit").upper() not in ("DAY", "MONTH", "YEAR", "HOUR", "QUARTER"):
        raise Unproven(f"DATE_TRUNC to {node.text('unit')}")
    if types.of(node.this) not in ("date", "timestamp"):
        raise Unproven("DATE_TRUNC of other than a date")
    return "timestamp"


def _date_format(node: exp.TimeToStr, types: Types) -> str:
    form = node.args.get("format")
    specifiers = form.name.split("%")[1:] if isinstance(form, exp.Literal) else ["?"]
    if not all(part[:1] in _DATE_LETTERS for part in specifiers):
        raise Unproven("this pattern of DATE_FORMAT")
    if types.of(node.this) not in ("date", "timestamp"):
        raise Unproven("DATE_FORMAT of other than a date")
    node.replace(with_year_of_four_digits(node.this, node.copy()))
    return "string"


def _days_between(node: exp.DateDiff, types: Types) -> str:
    if node.args.get("unit") or {types.of(node.this), types.of(node.expression)} != {"date"}:
        raise Unproven("DATEDIFF of other than dates")
    return replace_by_cast(node, "int")


def _days_later(node: exp.TsOrDsAdd, types: Types) -> str:
    unit = node.text("unit").upper() or "DAY"
    is_whole = types.of(node.expression) in ("tinyint", "smallint", "int")
    if unit != "DAY" or not is_whole or types.of(node.this) != "date":
        raise Unproven("DATE_ADD of other than days to a date")
    return "date"


def _micros(node: exp.UnixMicros, types: Types) -> str:
    if types.of(node.this) != "timestamp":
        raise Unproven("UNIX_MICROS of other than a timestamp")
    return "bigint"


def _timestamp_micros(node: exp.Anonymous, types: Types) -> str:
    """A function of Spark that sqlglot has no class for: TIMESTAMP_MICROS, whose moment must be one of DuckDB's."""
    if node.name.lower() != "timestamp_micros" or len(node.expressions) != 1:
        raise Unproven(f"function {node.name.upper()}")
    if types.of(node.expressions[0]) not in INTEGERS:
        raise Unproven("TIMESTAMP_MICROS of other than a whole number")
    node.replace(exp.Anonymous(this="make_timestamp", expressions=[node.expressions[0].copy()]))
    return "timestamp"


def moment_arithmetic(node: exp.Add | exp.Sub, given: str) -> str:
    """Type of a date or timestamp plus a literal interval. DuckDB keeps a date only when adding a number of days."""
    interval = node.expression
    unit = interval.text("unit").upper().removesuffix("S")
    days = ("DAY", "MONTH", "YEAR")
    units = {"date": days, "timestamp": (*days, "HOUR", "MINUTE", "SECOND")}.get(given, ())
    if not isinstance(interval.this, exp.Literal) or not interval.this.name.isdigit() or unit not in units:
        raise Unproven(f"this interval beside a {given}")
    if given == "date" and unit == "DAY":
        node.set("expression", exp.Literal.number(interval.this.name))
    return replace_by_cast(node, "date") if given == "date" else given


FORMS: dict[type[exp.Expr], Form] = {
    **dict.fromkeys((exp.Year, exp.Month, exp.Day, exp.DayOfMonth, exp.Quarter), Form(_part_of_date)),
    exp.TsOrDsToDate: Form(_to_date), exp.TimestampTrunc: Form(_cut_date), exp.TimeToStr: Form(_date_format),
    exp.DateDiff: Form(_days_between), exp.TsOrDsAdd: Form(_days_later),
    exp.UnixMicros: Form(_micros, is_listed=False, why="of a date, DuckDB's returns a value that Spark refuses"),
    exp.Anonymous: Form(_timestamp_micros, is_listed=False, why=SYNTAX),
}  # fmt: skip
