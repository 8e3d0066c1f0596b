"""What DuckDB is trusted to compute as Spark does where types are not known. Owns which uses of listed forms these are.

A query with anything else cannot be checked here: that is reported, never ignored. `guards` makes a query fail on the
values on which the two engines differ.
"""

from __future__ import annotations

import re

from sqlglot import exp

from sqlmesh_like.analyze.binding.from_clause import using_behind_comma
from sqlmesh_like.analyze.binding.scope import Unsupported
from sqlmesh_like.analyze.binding.subqueries.in_values import is_shown_alone
from sqlmesh_like.analyze.binding.time_windows import NAME as WINDOW
from sqlmesh_like.analyze.binding.time_windows import time_window_of
from sqlmesh_like.duckdb.dialect import DATE_PARTS
from sqlmesh_like.duckdb.exact.aggregates import CHOOSES_ANY, CHOOSES_BY
from sqlmesh_like.duckdb.exact.conditions import AS_VALUE, OF_AGGREGATE, asks_an_aggregate, is_condition
from sqlmesh_like.duckdb.exact.form_registry import listed_forms
from sqlmesh_like.duckdb.exact.list_forms import unproven_list
from sqlmesh_like.duckdb.exact.texts import PLAIN_REGEX
from sqlmesh_like.names import python_function_of

_FORMS = (
    exp.Select, exp.Subquery, exp.Union, exp.Except, exp.Intersect, exp.With, exp.CTE, exp.From, exp.Join, exp.Where,
    exp.Group, exp.Having, exp.Qualify, exp.Order, exp.Ordered, exp.Limit, exp.Distinct, exp.Window, exp.WindowSpec,
    exp.Table, exp.TableAlias, exp.Alias, exp.Aliases, exp.Column, exp.Identifier, exp.Star, exp.Var,
    exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Tuple, exp.DataType, exp.DataTypeParam, exp.Filter, exp.Values,
    exp.GroupingSets, exp.Rollup, exp.Cube, exp.Lateral, exp.Offset, exp.Interval, exp.Hint,
)  # fmt: skip
FUNCTIONS = listed_forms()
"""Operators, functions, aggregates and windows."""
_ALLOWED = frozenset((*_FORMS, *FUNCTIONS))
_NAMED = frozenset({"NOW", "ISNULL", "ISNOTNULL", "TIMESTAMP_SECONDS", "DATE_PART"})
_SPARK_NAMES: dict[type[exp.Expr], str] = {exp.Quantile: "PERCENTILE", exp.WithinGroup: "WITHIN GROUP"}
"""Forms whose names in sqlglot are not those that a user wrote."""
_CHOICES = {**CHOOSES_ANY, **CHOOSES_BY}
_DATE_FORMAT = re.compile(r"(%[YmdHMSaAbB](strict)?|[ 0-9:.,;/()_-])+")
"""Date patterns as sqlglot translates them; any letter or bracket that it leaves has a meaning in Spark only."""
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
            if node.name.lower() != WINDOW:
                python = python_function_of(node.name)
                return f"function {node.name.upper()}" if python is None else f"the Python function {python[0]}"
            if why := _unproven_window(node):
                return why
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


def _unproven_window(call: exp.Anonymous) -> str | None:
    select = call.parent_select
    try:
        window = time_window_of(select) if isinstance(select, exp.Select) else None
    except Unsupported as unsupported:
        return unsupported.message
    if window is None or select is None or call.find_ancestor(exp.Where, exp.Having, exp.Join, exp.Order):
        return "a window of time in other than SELECT and GROUP BY"
    if any(WINDOW in (column.name.lower(), column.table.lower()) for column in select.find_all(exp.Column)):
        return "a window of time by its name (a column of FROM may have it): write the call again"
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
        case exp.In() if node.args.get("query") and not is_condition(node) and not is_shown_alone(node):
            return AS_VALUE
        case exp.Exists() | exp.In() if asks_an_aggregate(node):
            return OF_AGGREGATE
        case exp.In() if node.args.get("unnest"):
            return "IN UNNEST"
        case exp.Expr() if (name := _CHOICES.get(type(node))) and not _is_of_group(node):
            return f"{name} of other than a group"
        case exp.Trim() if node.args.get("expression") or node.args.get("position"):
            return "TRIM of other characters than spaces"
        case exp.TsOrDsToDate() if node.args.get("format"):
            return "TO_DATE with a pattern"
        case exp.Pow() if not all(isinstance(n, exp.Literal) and n.is_int for n in (node.this, node.expression)):
            return "POWER of other than whole numbers as written"
        case exp.StrPosition() if node.args.get("position"):
            return "LOCATE from a position on"
    return None


def _is_of_group(choice: exp.Expr) -> bool:
    is_whole = not isinstance(choice.parent, exp.Window | exp.Filter | exp.IgnoreNulls | exp.RespectNulls)
    return is_whole and not isinstance(choice.this, exp.Distinct) and not choice.args.get("count")


def _unproven_form(node: exp.Expr) -> str | None:
    match node:
        case exp.DPipe() if isinstance(node.expression, exp.Add | exp.Sub):
            return "|| before + or - without parentheses"  # Spark computes from left to right
        case exp.NullSafeEQ() if isinstance(node.expression.unnest(), exp.In | exp.Between | exp.Like | exp.RegexpLike):
            return "<=> before IN, BETWEEN or LIKE"  # what Spark takes before the predicate depends on parentheses
        case exp.Floor() | exp.Ceil() if node.args.get("decimals") is not None:
            return f"{node.sql_name()} to a number of digits"
        case exp.Lateral() if isinstance(node.this, exp.Subquery):
            return "LATERAL with a query"
        case exp.Join() if node.method.upper() == "NATURAL":
            return "NATURAL JOIN (write the columns by USING; CROSS JOIN if the tables share none)"
        case exp.Ntile() if not (isinstance(node.this, exp.Literal) and node.this.is_int and int(node.this.name) > 0):
            return "NTILE of other than a number as written"
        case exp.Group() if _has_ordinal_sets(node):
            return "ROLLUP, CUBE or GROUPING SETS of numbers"
    return None


def _unproven_pattern(node: exp.Expr) -> str | None:
    match node:
        case exp.Select() if _has_a_name_twice(node):
            return "two items of FROM with one name"
        case exp.Select() if using_behind_comma(node.args.get("joins") or ()) is not None:
            return "a USING JOIN behind a comma"
        case exp.Like() | exp.ILike():
            if not isinstance(node.expression, exp.Literal) or "\\" in node.expression.name:
                return "LIKE with a pattern that is computed or has a backslash"
        case exp.RegexpExtract() | exp.RegexpLike():
            if not isinstance(node.expression, exp.Literal) or not PLAIN_REGEX.fullmatch(node.expression.name):
                return "a regular expression that is computed, has a backslash or what Java has alone"
            if not isinstance(node.args.get("group", exp.Literal.number(0)), exp.Literal):
                return "REGEXP_EXTRACT of a group that is computed"
        case exp.SplitPart() if not _is_plain_split(node):
            return "SPLIT_PART by other than a text and a number as written"
    return None


def _has_a_name_twice(select: exp.Select) -> bool:
    """Whether FROM has two items of one name, which DuckDB refuses."""
    start = select.args.get("from_")
    items = [*([start.this] if start else []), *(join.this for join in select.args.get("joins") or ())]
    names = [item.alias_or_name.lower() for item in items if item.alias_or_name]
    return len(set(names)) < len(names)


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
