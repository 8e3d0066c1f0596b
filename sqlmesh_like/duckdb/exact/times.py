"""Dates and moments: what is proven of each function, and how DuckDB is given it."""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.dialects import duck_template
from sqlmesh_like.duckdb.exact.casts import replace_by_value
from sqlmesh_like.duckdb.exact.form import Form
from sqlmesh_like.duckdb.exact.unproven import Unproven, require_only
from sqlmesh_like.duckdb.exact.values import (
    INTEGERS,
    Types,
    cast_of,
    finite_micros,
    replace_by_cast,
    with_year_of_four_digits,
)

_NOT_TRIED = "no fixture compares it over values of unknown types"
_UNITS_OF_TRUNC = {
    "YEAR": "year", "YYYY": "year", "YY": "year", "QUARTER": "quarter", "MONTH": "month", "MM": "month",
    "MON": "month", "WEEK": "week",
}  # fmt: skip
_DATE_LETTERS = frozenset("YmdHMS")


def _part_of_date(node: exp.Func, types: Types) -> str:
    if types.of(node.this) not in ("date", "timestamp"):
        raise Unproven(f"{node.key.upper()} of other than a date")
    return replace_by_cast(node, "int")


def _to_date(node: exp.TsOrDsToDate, types: Types) -> str:
    require_only(node, "this", "safe")
    given = types.of(node.this)
    if given == "string":
        return replace_by_value(node, node.this, "date")
    if given not in ("date", "timestamp"):
        raise Unproven("TO_DATE of other than a date")
    node.set("safe", None)  # none of these fails
    return "date"


def _cut_date(node: exp.TimestampTrunc, types: Types) -> str:
    if node.text("unit").upper() not in ("DAY", "WEEK", "MONTH", "YEAR", "HOUR", "MINUTE", "SECOND", "QUARTER"):
        raise Unproven(f"DATE_TRUNC to {node.text('unit')}")
    if types.of(node.this) not in ("date", "timestamp"):
        raise Unproven("DATE_TRUNC of other than a date")
    return "timestamp"


def _first_day(node: exp.DateTrunc, types: Types) -> str:
    """TRUNC, which takes a timestamp for its date."""
    unit = _UNITS_OF_TRUNC.get(node.text("unit").upper())
    if unit is None or types.of(node.this) not in ("date", "timestamp"):
        raise Unproven(f"TRUNC of other than a date to {node.text('unit')}")
    cut = exp.Anonymous(this="date_trunc", expressions=[exp.Literal.string(unit), node.this.copy()])
    return replace_by_cast(node, "date", cut)


def _last_day(node: exp.LastDay, types: Types) -> str:
    require_only(node, "this")
    if types.of(node.this) not in ("date", "timestamp"):
        raise Unproven("LAST_DAY of other than a date")
    return replace_by_cast(node, "date")


def _time_part(node: exp.Hour | exp.Minute | exp.Second, types: Types) -> str:
    if types.of(node.this) != "timestamp":
        raise Unproven(f"{node.key.upper()} of other than a timestamp")
    return replace_by_cast(node, "int")


def _day_of_week(node: exp.DayOfWeek, types: Types) -> str:
    """Spark counts from 1, Sunday, DuckDB from 0."""
    if types.of(node.this) not in ("date", "timestamp"):
        raise Unproven("DAYOFWEEK of other than a date")
    return replace_by_cast(node, "int", exp.Add(this=node.copy(), expression=exp.Literal.number(1)))


def _months_later(node: exp.AddMonths, types: Types) -> str:
    require_only(node, "this", "expression")
    is_whole = types.of(node.expression) in ("tinyint", "smallint", "int")
    if not is_whole or types.of(node.this) not in ("date", "timestamp"):
        raise Unproven("ADD_MONTHS of other than a date and a whole number")
    months = exp.Anonymous(this="to_months", expressions=[cast_of(node.expression.copy(), "int")])
    return replace_by_cast(node, "date", exp.Add(this=cast_of(node.this.copy(), "date"), expression=months))


def _seconds(node: exp.StrToUnix, types: Types) -> str:
    """UNIX_TIMESTAMP of a moment, whose format counts for nothing. Either engine cuts off a fraction towards zero."""
    if types.of(node.this) not in ("date", "timestamp"):
        raise Unproven("UNIX_TIMESTAMP of other than a date")
    million = exp.Literal.number(1_000_000)
    micros = finite_micros(cast_of(node.this.copy(), "timestamp"))
    node.replace(exp.Paren(this=exp.IntDiv(this=exp.Paren(this=micros), expression=million)))
    return "bigint"


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
    if node.args.get("unit") or not {types.of(node.this), types.of(node.expression)} <= {"date", "timestamp"}:
        raise Unproven("DATEDIFF of other than dates")
    for part in ("this", "expression"):
        node.set(part, cast_of(node.args[part].copy(), "date"))
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
    node.replace(finite_micros(node.this))
    return "bigint"


_MONTHS_BETWEEN = (
    "CASE WHEN day(x) = day(y) OR (x = last_day(x) AND y = last_day(y)) THEN CAST(months AS DOUBLE)"
    " ELSE floor((CAST(months AS DOUBLE) + CAST((day(x) - day(y)) * 86400 AS DOUBLE) / CAST(2678400 AS DOUBLE))"
    " * CAST(100000000 AS DOUBLE) + CAST('0.5' AS DOUBLE)) / CAST(100000000 AS DOUBLE) END"
).replace("months", "((year(x) - year(y)) * 12 + month(x) - month(y))")
"""As `DateTimeUtils.monthsBetween`, of midnights: a fraction is one of 31 parts, so none is rounded from the middle."""


def _months_between(node: exp.MonthsBetween, types: Types) -> str:
    require_only(node, "this", "expression")
    if {types.of(node.this), types.of(node.expression)} != {"date"}:
        raise Unproven("MONTHS_BETWEEN of other than dates")
    node.replace(exp.Paren(this=duck_template(_MONTHS_BETWEEN, x=node.this, y=node.expression)))
    return "double"


def timestamp_micros(node: exp.Anonymous, types: Types) -> str:
    """TIMESTAMP_MICROS, whose moment must be one of DuckDB's."""
    if len(node.expressions) != 1:
        raise Unproven("TIMESTAMP_MICROS of several values")
    if types.of(node.expressions[0]) not in INTEGERS:
        raise Unproven("TIMESTAMP_MICROS of other than a whole number")
    node.replace(exp.Anonymous(this="make_timestamp", expressions=[node.expressions[0].copy()]))
    return "timestamp"


def moment_arithmetic(node: exp.Add | exp.Sub, given: str) -> str:
    """Type of a date or timestamp plus a literal interval. DuckDB keeps a date only when adding a number of days."""
    interval = node.expression
    unit = interval.text("unit").upper().removesuffix("S")
    days = ("DAY", "WEEK", "MONTH", "YEAR")
    units = {"date": days, "timestamp": (*days, "HOUR", "MINUTE", "SECOND")}.get(given, ())
    if not isinstance(interval.this, exp.Literal) or not interval.this.name.isdigit() or unit not in units:
        raise Unproven(f"this interval beside a {given}")
    if unit == "WEEK":
        days_of_weeks = exp.Literal.string(str(7 * int(interval.this.name)))
        interval = exp.Interval(this=days_of_weeks, unit=exp.Var(this="DAY"))
        node.set("expression", interval)
    if given == "date" and unit in ("DAY", "WEEK"):
        node.set("expression", exp.Literal.number(interval.this.name))
    return replace_by_cast(node, "date") if given == "date" else given


FORMS: dict[type[exp.Expr], Form] = {
    **dict.fromkeys(
        (exp.Year, exp.Month, exp.Day, exp.DayOfMonth, exp.Quarter, exp.DayOfYear), Form(_part_of_date)
    ),
    exp.WeekOfYear: Form(_part_of_date, is_listed=False, why=_NOT_TRIED),
    **dict.fromkeys((exp.Hour, exp.Minute, exp.Second), Form(_time_part, is_listed=False, why=_NOT_TRIED)),
    exp.DateTrunc: Form(_first_day, is_listed=False, why=_NOT_TRIED),
    exp.MonthsBetween: Form(_months_between, is_listed=False, why=_NOT_TRIED),
    exp.LastDay: Form(_last_day), exp.DayOfWeek: Form(_day_of_week), exp.AddMonths: Form(_months_later),
    exp.StrToUnix: Form(_seconds),
    exp.TsOrDsToDate: Form(_to_date), exp.TimestampTrunc: Form(_cut_date), exp.TimeToStr: Form(_date_format),
    exp.DateDiff: Form(_days_between), exp.TsOrDsAdd: Form(_days_later),
    exp.UnixMicros: Form(_micros, is_listed=False, why="of a date, DuckDB's returns a value that Spark refuses"),
}  # fmt: skip
