"""What DuckDB is trusted to compute as Spark does. Owns the list of forms and functions, and the guards on values.

A query with anything else cannot be checked here: that is reported, never ignored. Where the two engines agree on some
values only (a cast of '1.9' to int is 1 in Spark and 2 in DuckDB), `guarded` makes the query fail on the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import sqlglot
from sqlglot import exp

from sqlmesh_like.analyze.binding.from_clause import joined_first
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.duckdb.dialect import DATE_PARTS
from sqlmesh_like.duckdb.list_forms import LIST_FORMS, unproven_list
from sqlmesh_like.sql_text import standard_literal

UNKNOWN = "sml-not-checkable: "
_END = "~sml"
_TOLD = re.compile(rf"{UNKNOWN}(.*?){_END}", re.DOTALL)

_FORMS = (
    exp.Select, exp.Subquery, exp.Union, exp.Except, exp.Intersect, exp.With, exp.CTE, exp.From, exp.Join, exp.Where,
    exp.Group, exp.Having, exp.Qualify, exp.Order, exp.Ordered, exp.Limit, exp.Distinct, exp.Window, exp.WindowSpec,
    exp.Table, exp.TableAlias, exp.Alias, exp.Aliases, exp.Column, exp.Identifier, exp.Star, exp.Var,
    exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Tuple, exp.DataType, exp.DataTypeParam, exp.Filter, exp.Values,
    exp.GroupingSets, exp.Rollup, exp.Cube, exp.Lateral, exp.Offset, exp.Interval, exp.Hint,
)  # fmt: skip
_OPERATORS = (
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Is, exp.In,
    exp.Between, exp.Like, exp.ILike, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.DPipe, exp.Exists,
    exp.If, exp.Case, exp.Cast, exp.TryCast,
)  # fmt: skip
_AGGREGATES = (
    exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.LogicalAnd, exp.LogicalOr, exp.Grouping,
    exp.GroupingId, exp.AnyValue,
)  # fmt: skip
_WINDOWED = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.Lag, exp.Lead)
_SCALARS = (
    exp.Coalesce, exp.Nullif, exp.Abs, exp.Round, exp.Floor, exp.Ceil, exp.Greatest, exp.Least,
    exp.Upper, exp.Lower, exp.Trim, exp.Length, exp.Concat, exp.Substring, exp.Replace,
    exp.Year, exp.Month, exp.Day, exp.DayOfMonth, exp.Quarter, exp.DateDiff, exp.TsOrDsAdd, exp.TsOrDsToDate,
    exp.TimeToStr, exp.TimeStrToTime, exp.LastDay, exp.TimestampTrunc, exp.Explode, exp.Posexplode, exp.Array,
    exp.CurrentDate, exp.CurrentTimestamp, exp.MD5, exp.Pow, exp.AddMonths, exp.DayOfWeek, exp.DayOfYear,
    exp.StrToUnix, exp.AtTimeZone, exp.FromTimeZone, exp.SplitPart, exp.Right, exp.RegexpExtract, exp.RegexpLike,
    exp.StrPosition, *LIST_FORMS,
)  # fmt: skip
_ALLOWED = (*_FORMS, *_OPERATORS, *_AGGREGATES, *_WINDOWED, *_SCALARS)
_NAMED = frozenset({"NOW", "ISNULL", "ISNOTNULL", "TIMESTAMP_SECONDS", "DATE_PART"})
_SPARK_NAMES: dict[type, str] = {exp.Quantile: "PERCENTILE", exp.WithinGroup: "WITHIN GROUP"}
"""Forms whose names in sqlglot are not those that a user wrote."""
_FRACTION = re.compile(r"\s*[-+]?([0-9]+[.][0-9]*|[.][0-9]+)\s*")
_DATE_FORMAT = re.compile(r"(%[YmdHMSaAbB](strict)?|[ 0-9:.,;/()_-])+")
"""Date patterns as sqlglot translates them; any letter or bracket that it leaves has a meaning in Spark only."""
_REGEX = re.compile(
    r"(\(\?i\))?\^?("
    r"(\[\^?[A-Za-z0-9 _@%+.,:;=!#~/*()?{}|-]+\]|[A-Za-z0-9 _@%,:;=!#~/\"'<>&.-])([*+?]\??|\{\d+(,\d*)?\})?"
    r"|\((\?:)?|\)\??|\|"
    r")*\$?"
)
"""Patterns of printable ASCII that Java and RE2 interpret alike.

Without backslashes, which SQL interprets too; without repeated groups, which may be empty; and without groups that set
flags, since `(?U)` has a different meaning in each.
"""
_MOMENTS = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ)
_UNITS = frozenset({"DAY", "WEEK", "MONTH", "YEAR", "HOUR", "QUARTER", "MINUTE", "SECOND"})


def first_unproven(tree: exp.Expr) -> str | None:
    """The first function or form of a query on which both engines are not known to agree; None if there is none.

    >>> import sqlglot
    >>> [first_unproven(sqlglot.parse_one(q, dialect="spark")) for q in ("select sum(a) from t", "select soundex(a)")]
    [None, 'function SOUNDEX']
    """
    for node in tree.walk():
        if isinstance(node, exp.Anonymous) and node.name.upper() not in _NAMED:
            return f"function {node.name.upper()}"
        if type(node) not in _ALLOWED and not isinstance(node, exp.ExplodeOuter | exp.Anonymous):
            kind = "function" if isinstance(node, exp.Func) else "form"
            own = node.sql_name() if isinstance(node, exp.Func) else node.key.upper()
            name = _SPARK_NAMES.get(type(node), own)
            return f"{kind} {name}"
        if why := _unproven_use(node):
            return why
    return None


def _unproven_use(node: exp.Expr) -> str | None:
    """Why this use of a form is not allowed, if only some uses are; else None."""
    return _unproven_time(node) or _unproven_text(node) or _unproven_pattern(node) or unproven_list(node)


def _unproven_time(node: exp.Expr) -> str | None:
    match node:
        case exp.TimeToStr():
            form = node.args.get("format")
            if not isinstance(form, exp.Literal) or not _DATE_FORMAT.fullmatch(form.name):
                return "this pattern of DATE_FORMAT"
        case exp.TimestampTrunc():
            if node.text("unit").upper() not in _UNITS:
                return f"DATE_TRUNC to {node.text('unit')}"
        case exp.DateDiff() if node.args.get("unit"):
            return "DATEDIFF by a unit"  # Spark counts elapsed whole units, DuckDB the boundaries crossed
        case exp.Interval() if not _is_of_a_moment(node):
            return "form INTERVAL"  # with a date Spark returns a date, DuckDB a timestamp
        case exp.Anonymous() if node.name.upper() == "DATE_PART" and not _is_known_part(node):
            return "this part of DATE_PART"
        case exp.StrToUnix() if not (isinstance(node.this, exp.Cast) and node.this.to.is_type(*_MOMENTS)):
            return "UNIX_TIMESTAMP of other than a cast to timestamp"
        case exp.AtTimeZone() | exp.FromTimeZone() if not isinstance(node.args.get("zone"), exp.Literal):
            return "a time zone that is computed"
    return None


def _is_known_part(date_part: exp.Anonymous) -> bool:
    part = date_part.expressions[0] if len(date_part.expressions) == 2 else None
    return isinstance(part, exp.Literal) and part.is_string and part.name.lower() in DATE_PARTS


def _is_of_a_moment(interval: exp.Interval) -> bool:
    """Whether a whole number of days or smaller units is added to or subtracted from a timestamp or the clock."""
    unit = interval.text("unit").upper().removesuffix("S")
    of = interval.parent
    moment = of.this if isinstance(of, exp.Add | exp.Sub) and of.expression is interval else None
    is_moment = (
        isinstance(moment, exp.CurrentTimestamp)
        or (isinstance(moment, exp.Anonymous) and moment.name.upper() == "NOW")
        or (isinstance(moment, exp.Cast) and moment.to.is_type(exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ))
    )
    return is_moment and interval.this.name.isdigit() and unit in ("DAY", "HOUR", "MINUTE", "SECOND")


def _unproven_text(node: exp.Expr) -> str | None:
    match node:
        case exp.Literal() if node.is_string and _FRACTION.fullmatch(node.name):
            # Compared with a whole number, Spark truncates it and DuckDB rounds it.
            return f"the text {node.name!r}, which may be compared with a number"
        case exp.Substring():
            start = node.args.get("start")
            if not (isinstance(start, exp.Literal) and start.is_int and int(start.name) > 0):
                return "SUBSTRING from a position that is not a positive number"
        case exp.In() if node.args.get("unnest"):
            return "IN UNNEST"
        case exp.AnyValue() if isinstance(node.parent, exp.Window | exp.Filter | exp.IgnoreNulls):
            return "ANY_VALUE of other than a group"
        case exp.Trim() if node.args.get("expression") or node.args.get("position"):
            return "TRIM of other characters than spaces"
        case exp.TsOrDsToDate() if node.args.get("format"):
            return "TO_DATE with a pattern"
        case exp.Pow() if not all(isinstance(n, exp.Literal) and n.is_int for n in (node.this, node.expression)):
            return "POWER of other than whole numbers as written"
        case exp.StrPosition() if node.args.get("position"):
            return "LOCATE from a position on"
    return None


def _unproven_pattern(node: exp.Expr) -> str | None:
    match node:
        case exp.Select() if joined_first(node.args.get("joins") or ()) is not None:
            return "a RIGHT, FULL or USING JOIN behind a comma"
        case exp.Like() | exp.ILike():
            if not isinstance(node.expression, exp.Literal) or "\\" in node.expression.name:
                return "LIKE with a pattern that is computed or has a backslash"
        case exp.RegexpExtract() | exp.RegexpLike():
            if not isinstance(node.expression, exp.Literal) or not _REGEX.fullmatch(node.expression.name):
                return "a regular expression that is computed, has a backslash or what Java has alone"
            if not isinstance(node.args.get("group", exp.Literal.number(0)), exp.Literal):
                return "REGEXP_EXTRACT of a group that is computed"
        case exp.SplitPart() if not _is_plain_split(node):
            return "SPLIT_PART by other than a text and a number as written"
    return None


def _is_plain_split(node: exp.SplitPart) -> bool:
    number = node.args["part_index"]
    number = number.this if isinstance(number, exp.Neg) else number
    delimiter = node.args["delimiter"]
    is_number = isinstance(number, exp.Literal) and number.is_int and int(number.name) > 0
    return is_number and isinstance(delimiter, exp.Literal) and delimiter.name != ""


def guard_in(message: str) -> str | None:
    """A guard's message in an error of DuckDB; None if the error is not a guard's."""
    match = _TOLD.search(message)
    return match[1] if match else None


def guarded(tree: exp.Expr) -> exp.Expr:
    """A copy of the query that fails on values on which the engines are not known to agree."""
    made = tree.copy()
    for node in list(made.walk()):
        _guard_node(node)
    for choice in list(made.find_all(exp.AnyValue)):  # last, as their values may be guarded themselves
        _guard_choice(choice)
    return made


def _guard_node(node: exp.Expr) -> None:
    match node:
        case exp.Cast() if not _is_empty(node.this):
            _guard(node.this, _castable(node), f"the cast to {node.to.sql(SPARK)} of")
        case exp.TsOrDsToDate():
            _guard(node.this, _spelt_as(_DATE_TEXT), "the date of")
        case exp.TimeStrToTime():
            _guard(node.this, _spelt_as(_DATE_TEXT), "the moment of")
        case exp.Round():
            _guard(node.this, _NO_DOUBLE, "ROUND of the double")
        case exp.Anonymous() if node.name.upper() == "TIMESTAMP_SECONDS":
            _guard(node.expressions[0], _WHOLE, "TIMESTAMP_SECONDS of")
        case exp.RegexpExtract() | exp.RegexpLike() | exp.ILike():  # the engines fold case differently beyond ASCII
            _guard(node.this, "regexp_full_match(v, '[ -~]*')", "the pattern of")
        case exp.GenerateSeries():  # if the end is below the start, Spark fails and DuckDB has no rows
            _guard(node.args["end"], f"({_WHOLE}) AND v >= {node.args['start'].name}", "SEQUENCE to")
        case exp.FromTimeZone():
            _guard(node.this, _far_from_change(node.args["zone"].name), "the moment of")
        case exp.Concat():
            _guard_texts(node.expressions, f"{_TEXTUAL} OR ends_with(typeof(v), '[]')")
        case exp.DPipe():
            _guard_texts([node.left, node.right])


_DATE_TEXT = "[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?)?"
_NUMBER_TEXT = "[-+]?[0-9]{1,20}([.][0-9]{1,18})?"
_NO_FRACTION = "([.]0+)?"
_CASTS = {
    exp.DataType.Type.TINYINT: f"-?[0-9]{{1,2}}{_NO_FRACTION}|true|false",
    exp.DataType.Type.SMALLINT: f"-?[0-9]{{1,4}}{_NO_FRACTION}|true|false",
    exp.DataType.Type.INT: f"-?[0-9]{{1,9}}{_NO_FRACTION}|true|false",
    exp.DataType.Type.BIGINT: f"-?[0-9]{{1,18}}{_NO_FRACTION}|true|false",
    exp.DataType.Type.DECIMAL: _NUMBER_TEXT,
    exp.DataType.Type.DOUBLE: _NUMBER_TEXT,
    exp.DataType.Type.FLOAT: _NUMBER_TEXT,
    exp.DataType.Type.BOOLEAN: "true|false|0|1",
    exp.DataType.Type.DATE: _DATE_TEXT,
    exp.DataType.Type.TIMESTAMP: _DATE_TEXT,
    exp.DataType.Type.TIMESTAMPTZ: _DATE_TEXT,
    exp.DataType.Type.TIMESTAMPLTZ: _DATE_TEXT,
    exp.DataType.Type.TIMESTAMPNTZ: _DATE_TEXT,
}
_WHOLE = "typeof(v) IN ('TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT')"
_NO_DOUBLE = "typeof(v) NOT IN ('DOUBLE', 'FLOAT')"
# The engines write doubles and nested values differently.
_TEXTUAL = (
    "typeof(v) IN ('VARCHAR', 'TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT', 'HUGEINT', 'BOOLEAN', 'DATE', 'TIMESTAMP')"
    " OR starts_with(typeof(v), 'DECIMAL')"
)


def _guard_texts(parts: Iterable[exp.Expr], condition: str = _TEXTUAL) -> None:
    for part in list(parts):
        _guard(part, condition, "the text of")


def _guard_choice(choice: exp.AnyValue) -> None:
    """Make ANY_VALUE fail on a group with several values (NULL counts), from which the engines may pick differently."""
    values = "count(DISTINCT v) + CAST(count(v) < count(*) AS INT)"
    failure = f"CAST('{UNKNOWN}ANY_VALUE of ' || CAST({values} AS VARCHAR) || ' values{_END}' AS BOOLEAN)"
    case = sqlglot.parse_one(f"CASE WHEN {values} < 2 THEN any_value(v) WHEN {failure} THEN NULL END", dialect="duckdb")
    for place in [column for column in case.find_all(exp.Column) if column.name == "v"]:
        place.replace(choice.this.copy())
    choice.replace(exp.Paren(this=case))


def _is_empty(value: exp.Expr) -> bool:
    """Whether a value is NULL or an empty list, for which a cast only states the type."""
    return isinstance(value, exp.Null) or (isinstance(value, exp.Array) and not value.expressions)


def _castable(cast: exp.Cast) -> str:
    """SQL condition: both engines cast `v` alike."""
    if cast.to.this in (exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR):
        return _TEXTUAL
    pattern = _CASTS.get(cast.to.this)
    if pattern is None:
        return "FALSE"
    alike = _spelt_as(pattern)
    return f"{alike} OR {_WHOLE}" if cast.to.is_type(*_MOMENTS) else alike


def _far_from_change(zone: str) -> str:
    """SQL condition: local time `v` is unambiguous in a zone, with no clock change within three hours of it."""
    here = standard_literal(zone)
    early, late = (f"epoch_us(timezone('UTC', timezone({here}, v {sign} INTERVAL 3 HOUR)))" for sign in "-+")
    return f"{late} - {early} = 21600000000"


def _spelt_as(pattern: str) -> str:
    return f"regexp_full_match(CAST(v AS VARCHAR), '{pattern}')"


def _guard(value: exp.Expr, condition: str, what: str) -> None:
    """Replace an operand by an error where the condition on `v` is not true; NULL passes.

    A lambda over a list of one element keeps the operand in the text only once, however deeply guards are nested.
    """
    # Not error(), which is volatile and refused in PARTITION BY: instead a cast in the condition fails.
    failure = f"CAST('{UNKNOWN}{what.replace(chr(39), '')} ' || CAST(v AS VARCHAR) || '{_END}' AS BOOLEAN)"
    case = f"CASE WHEN v IS NULL OR ({condition}) THEN v WHEN {failure} THEN v END"
    template = sqlglot.parse_one(f"list_transform([sml_value], LAMBDA v : {case})[1]", dialect="duckdb")
    place = template.find(exp.Array)
    assert place is not None
    value.replace(template)
    place.set("expressions", [value])
