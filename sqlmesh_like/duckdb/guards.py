"""Values on which DuckDB is not known to agree with Spark. Owns the guards, which make a query fail on them.

A cast of '1.9' to int is 1 in Spark and 2 in DuckDB: the query with guards fails on such values instead of continuing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sqlglot import exp

from sqlmesh_like.dialects import SPARK, duck_template
from sqlmesh_like.duckdb.bind_time_checks import with_type_checks
from sqlmesh_like.duckdb.dialect import CASED_ALIKE
from sqlmesh_like.duckdb.exact.aggregates import CHOOSES_ANY, CHOOSES_BY
from sqlmesh_like.duckdb.type_conditions import WIDE_WHOLE
from sqlmesh_like.sql_text import standard_literal

UNKNOWN = "sml-not-checkable: "
_END = "~sml"
_TOLD = re.compile(rf"{UNKNOWN}(.*?){_END}", re.DOTALL)
_MOMENTS = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ)


def guard_in(message: str) -> str | None:
    """A guard's message in an error of DuckDB; None if the error is not a guard's."""
    match = _TOLD.search(message)
    return match[1] if match else None


def add_guards(tree: exp.Expr) -> exp.Expr:
    """A copy of the query that fails on values on which the engines are not known to agree."""
    made = tree.copy()
    for node in list(made.walk()):
        _guard_node(node)
    for choice in list(made.find_all(*CHOOSES_ANY, *CHOOSES_BY)):  # last, as their values may be guarded themselves
        (_guard_choice_by if type(choice) in CHOOSES_BY else _guard_choice)(choice)
    return made


def add_type_checks(tree: exp.Expr) -> exp.Expr:
    """A copy of the query that cannot be bound, with a guard's message, if it combines types differently in Spark."""
    return with_type_checks(tree, UNKNOWN, _END)


def _guard_node(node: exp.Expr) -> None:
    match node:
        case exp.Cast() if not _is_empty(node.this):
            _guard(node.this, _castable(node), f"the cast to {node.to.sql(SPARK)} of")
        case exp.TsOrDsToDate():
            _guard(node.this, _matches_pattern(_DATE_TEXT), "the date of")
        case exp.TimeStrToTime():
            _guard(node.this, _matches_pattern(_DATE_TEXT), "the moment of")
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
            for operand in (node.this, node.expression):
                if not isinstance(operand, exp.Literal):
                    _guard(operand, _EXACT_DOUBLE, "the double of")
        case exp.Avg():
            whole, value = _whole_aggregate(node), _average_argument(node)
            operand = value if isinstance(whole, exp.Window) else exp.Min(this=value.copy())
            _guard_result(whole, _AVERAGED, "AVG of decimals", {"a": operand})
            _guard(value, _SUMMED_EXACTLY, "AVG of")
        case exp.Add() | exp.Sub() | exp.Mul() if node.find(exp.Sum):
            _guard(node, _NO_OVERFLOW, "the result")
        case exp.Sum():
            _guard(_whole_aggregate(node), _NO_OVERFLOW, "SUM")


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
# DuckDB rounds long whole numbers to other doubles; the text is cast as the branch must be bound for all types.
_EXACT_DOUBLE = f"NOT regexp_full_match(typeof(v), '{WIDE_WHOLE}') OR length(replace(CAST(v AS VARCHAR), '-', '')) < 16"
_FITS_INT = "abs(v) < 2147483648"  # Spark keeps the low bits of a longer number
_NO_OVERFLOW = "typeof(v) <> 'HUGEINT' OR v BETWEEN -9223372036854775808 AND 9223372036854775807"


def _whole_aggregate(aggregate: exp.Expr) -> exp.Expr:
    """The aggregate with its FILTER and OVER."""
    whole = aggregate
    while isinstance(whole.parent, exp.Filter | exp.Window) and whole.arg_key == "this":
        whole = whole.parent
    return whole


def _average_argument(average: exp.Avg) -> exp.Expr:
    value: exp.Expr = average.this.expressions[0] if isinstance(average.this, exp.Distinct) else average.this
    return value


def _guard_texts(parts: Iterable[exp.Expr], condition: str = _TEXTUAL) -> None:
    for part in list(parts):
        _guard(part, condition, "the text of")


def _guard_choice(choice: exp.Expr) -> None:
    """Make ANY_VALUE, FIRST or LAST fail on a group with several values (NULL counts), from which the engines may pick
    differently."""
    values = "count(DISTINCT v) + CAST(count(v) < count(*) AS INT)"
    failure = (
        f"CAST('{UNKNOWN}{CHOOSES_ANY[type(choice)]} of ' || CAST({values} AS VARCHAR) || ' values{_END}' AS BOOLEAN)"
    )
    case = duck_template(f"CASE WHEN {values} < 2 THEN any_value(v) WHEN {failure} THEN NULL END")
    for place in [column for column in case.find_all(exp.Column) if column.name == "v"]:
        place.replace(choice.this.copy())
    choice.replace(exp.Paren(this=case))


def _guard_choice_by(choice: exp.Expr) -> None:
    """Make MAX_BY or MIN_BY fail on a group where the rows that tie have several values, or that it orders by lists or
    structs, in which the engines put NULL elsewhere."""
    most = "max" if isinstance(choice, exp.ArgMax) else "min"
    pairs = "list_filter(struct_extract(c, 'pairs'), LAMBDA e : struct_extract(e, 'o') = struct_extract(c, 'most'))"
    values = f"len(list_distinct(list_transform({pairs}, LAMBDA e : {{'v': struct_extract(e, 'v')}})))"
    of_order = "typeof(struct_extract(c, 'most'))"
    is_plain = f"NOT regexp_matches({of_order}, '^(STRUCT|MAP|UNION)|[]]$')"
    reason = f"CASE WHEN {is_plain} THEN ' of ' || CAST({values} AS VARCHAR) || ' values' ELSE ' by ' || {of_order} END"
    failure = f"CAST('{UNKNOWN}{CHOOSES_BY[type(choice)]}' || {reason} || '{_END}' AS BOOLEAN)"
    case = f"CASE WHEN {is_plain} AND {values} < 2 THEN struct_extract(c, 'x') WHEN {failure} THEN NULL END"
    made = duck_template(
        f"list_transform([{{'x': sml_x, 'most': {most}(sml_o), 'pairs': list({{'o': sml_o, 'v': sml_v}})}}],"
        f" LAMBDA c : {case})[1]"
    )
    given = {"sml_x": choice, "sml_o": choice.args["expression"], "sml_v": choice.this}
    for place in [column for column in made.find_all(exp.Column) if column.name in given]:
        place.replace(given[place.name].copy())
    choice.replace(exp.Paren(this=made))


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
    alike = _matches_pattern(pattern)
    if cast.to.is_type(exp.DType.DOUBLE, exp.DType.FLOAT):
        return f"{alike} AND ({_EXACT_DOUBLE})"
    return f"{alike} OR {_WHOLE}" if cast.to.is_type(*_MOMENTS) else alike


def _far_from_change(zone: str) -> str:
    """SQL condition: local time `v` is unambiguous in a zone, with no clock change within three hours of it."""
    here = standard_literal(zone)
    early, late = (f"epoch_us(timezone('UTC', timezone({here}, v {sign} INTERVAL 3 HOUR)))" for sign in "-+")
    return f"{late} - {early} = 21600000000"


def _matches_pattern(pattern: str) -> str:
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
    # Not `checked.v`: in HAVING, DuckDB takes that for a column of the query.
    case = re.sub(r"\bchecked\.(\w+)", r"struct_extract(checked, '\1')", case)
    template = duck_template(f"list_transform([{{{struct}}}], LAMBDA checked : {case})[1]")
    places = [column for column in template.find_all(exp.Column) if column.name.startswith("sml_")]
    copies = {name: operand.copy() for name, operand in operands.items()}
    value.replace(template)
    for place in places:
        name = place.name.removeprefix("sml_")
        place.replace(value if name == "v" else copies[name].copy())
