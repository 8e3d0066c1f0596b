"""What DuckDB is trusted to compute as Spark does. Owns the list of forms and functions, and the guards on values.

A query with anything else cannot be checked here: that is reported, never ignored. Where the two engines agree on some
values only (a cast of '1.9' to int is 1 in Spark and 2 in DuckDB), `guarded` makes the query fail on the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import sqlglot
from sqlglot import exp

from sqlmesh_like.analyze.binding.from_clause import joined_first
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.duckdb.bind_time_checks import with_type_checks
from sqlmesh_like.duckdb.dialect import CASED_ALIKE, DATE_PARTS
from sqlmesh_like.duckdb.exact.form_registry import listed
from sqlmesh_like.duckdb.list_forms import unproven_list
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
FUNCTIONS = listed()
"""Operators, functions, aggregates and windows."""
_ALLOWED = frozenset((*_FORMS, *FUNCTIONS))
_NAMED = frozenset({"NOW", "ISNULL", "ISNOTNULL", "TIMESTAMP_SECONDS", "DATE_PART"})
_SPARK_NAMES: dict[type, str] = {exp.Quantile: "PERCENTILE", exp.WithinGroup: "WITHIN GROUP"}
"""Forms whose names in sqlglot are not those that a user wrote."""
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
    tests = (_unproven_form, _unproven_time, _unproven_text, _unproven_pattern, unproven_list)
    return next(filter(None, (test(node) for test in tests)), None)


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


def _unproven_form(node: exp.Expr) -> str | None:
    match node:
        case exp.DPipe() if isinstance(node.expression, exp.Add | exp.Sub):
            return "|| before + or - without parentheses"  # Spark computes from left to right
        case exp.Floor() | exp.Ceil() if node.args.get("decimals") is not None:
            return f"{node.sql_name()} to a number of digits"
        case exp.Lateral() if isinstance(node.this, exp.Subquery):
            return "LATERAL with a query"
        case exp.Group() if _has_ordinal_sets(node):
            return "ROLLUP, CUBE or GROUPING SETS of numbers"
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


def _has_ordinal_sets(group: exp.Group) -> bool:
    """Whether places in the SELECT list are grouped several times over, where DuckDB takes them for values."""
    sets = [
        *(group.args.get("grouping_sets") or ()),
        *(group.args.get("rollup") or ()),
        *(group.args.get("cube") or ()),
    ]
    sets += [part for part in group.expressions if isinstance(part, exp.GroupingSets | exp.Rollup | exp.Cube)]
    return bool(sets) and any(
        isinstance(part.unnest(), exp.Literal)
        for each in (group, *sets)
        for part in (*each.expressions, *_within(each))
    )


def _within(node: exp.Expr) -> list[exp.Expr]:
    return [part for each in node.expressions if isinstance(each, exp.Tuple) for part in each.expressions]


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


def type_checked(tree: exp.Expr) -> exp.Expr:
    """A copy of the query that cannot be bound, with a guard's message, if it combines types differently in Spark."""
    return with_type_checks(tree, UNKNOWN, _END)


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
        case _:
            _guard_text(node)


def _guard_text(node: exp.Expr) -> None:
    match node:
        case exp.Right():
            _guard(node.expression, _FITS_INT, "the length")
        case exp.Substring() if node.args.get("length") is not None:
            _guard(node.args["length"], _FITS_INT, "the length")
        case exp.Upper() | exp.Lower():
            _guard(node.this, f"regexp_full_match(v, '{CASED_ALIKE[type(node)]}')", f"{node.sql_name()} of")
        case exp.Concat():
            _guard_texts(node.expressions, f"{_TEXTUAL} OR ends_with(typeof(v), '[]')")
        case exp.DPipe():
            _guard_texts([node.left, node.right])
        case _:
            _guard_number(node)


def _guard_number(node: exp.Expr) -> None:
    match node:
        case exp.Div():
            _guard_result(node, _DIVIDED, "the quotient of decimals", {"a": node.this, "b": node.expression})
        case exp.Avg():
            whole, value = _computed_whole(node), _averaged(node)
            operand = value if isinstance(whole, exp.Window) else exp.Min(this=value.copy())
            _guard_result(whole, _AVERAGED, "AVG of decimals", {"a": operand})
            _guard(value, _SUMMED_EXACTLY, "AVG of")
        case exp.Add() | exp.Sub() | exp.Mul() if node.find(exp.Sum):
            _guard(node, _NO_OVERFLOW, "the result")
        case exp.Sum():
            _guard(_computed_whole(node), _NO_OVERFLOW, "SUM")


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
# A decimal below a millionth has an exponent in Spark, a year of five digits a sign.
_TEXTUAL = (
    "typeof(v) IN ('VARCHAR', 'TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT', 'HUGEINT', 'BOOLEAN')"
    f" OR (typeof(v) IN ('DATE', 'TIMESTAMP') AND regexp_full_match(CAST(v AS VARCHAR), '{_DATE_TEXT}'))"
    " OR (starts_with(typeof(v), 'DECIMAL') AND NOT regexp_full_match(CAST(v AS VARCHAR), '-?0[.]0{6}[0-9]+'))"
)


# Spark's quotient and average of decimals are decimals. A short double is that number, whatever the decimal's scale.
_SHORT = "abs(checked.v) < 1e9 AND checked.v = round(checked.v, {digits})"
_FEW_DIGITS = "regexp_full_match(checked.{name}, '-?[0-9]{{1,9}}([.][0-9]{{1,6}})?')"
_IS_DECIMAL = "starts_with(checked.{name}_type, 'DECIMAL')"
_DIVIDED = (
    f"checked.a_type IN ('DOUBLE', 'FLOAT') OR checked.b_type IN ('DOUBLE', 'FLOAT')"
    f" OR NOT ({_IS_DECIMAL.format(name='a')} OR {_IS_DECIMAL.format(name='b')})"
    f" OR ({_SHORT.format(digits=6)} AND {_FEW_DIGITS.format(name='a')} AND {_FEW_DIGITS.format(name='b')}"
    " AND length(checked.b) <= 9)"
)
_AVERAGED = f"NOT {_IS_DECIMAL.format(name='a')} OR ({_SHORT.format(digits=4)})"
_SUMMED_EXACTLY = "typeof(v) NOT IN ('BIGINT', 'HUGEINT') OR abs(v) < 10000000000"  # Spark adds them up as doubles
_FITS_INT = "abs(v) < 2147483648"  # Spark keeps the low bits of a longer number
_NO_OVERFLOW = "typeof(v) <> 'HUGEINT' OR v BETWEEN -9223372036854775808 AND 9223372036854775807"


def _computed_whole(aggregate: exp.Expr) -> exp.Expr:
    """The aggregate with its FILTER and OVER."""
    whole = aggregate
    while isinstance(whole.parent, exp.Filter | exp.Window) and whole.arg_key == "this":
        whole = whole.parent
    return whole


def _averaged(average: exp.Avg) -> exp.Expr:
    value: exp.Expr = average.this.expressions[0] if isinstance(average.this, exp.Distinct) else average.this
    return value


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
    """Replace an operand by an error where the condition on `v` is not true; NULL passes."""
    _guard_result(value, re.sub(r"\bv\b", "checked.v", condition), what, {})


def _guard_result(value: exp.Expr, condition: str, what: str, operands: Mapping[str, exp.Expr]) -> None:
    """As `_guard`, with a condition on `checked.v`, `checked.a` (an operand's text) and `checked.a_type`.

    A lambda over a list of one element keeps the value in the text only once, however deeply guards are nested.
    """
    # Not error(), which is volatile and refused in PARTITION BY: instead a cast in the condition fails.
    failure = f"CAST('{UNKNOWN}{what.replace(chr(39), '')} ' || CAST(checked.v AS VARCHAR) || '{_END}' AS BOOLEAN)"
    case = f"CASE WHEN checked.v IS NULL OR ({condition}) THEN checked.v WHEN {failure} THEN checked.v END"
    fields = [f"'{name}': CAST(sml_{name} AS VARCHAR), '{name}_type': typeof(sml_{name})" for name in operands]
    struct = ", ".join(["'v': sml_v", *fields])
    template = sqlglot.parse_one(f"list_transform([{{{struct}}}], LAMBDA checked : {case})[1]", dialect="duckdb")
    places = [column for column in template.find_all(exp.Column) if column.name.startswith("sml_")]
    copies = {name: operand.copy() for name, operand in operands.items()}
    value.replace(template)
    for place in places:
        name = place.name.removeprefix("sml_")
        place.replace(value if name == "v" else copies[name].copy())
