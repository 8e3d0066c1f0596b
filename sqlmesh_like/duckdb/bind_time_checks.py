"""Operands of types that DuckDB combines otherwise than Spark, found when it binds a query. Owns which these are.

Beside a number Spark casts a text to the number's type or both to double, and in a COALESCE the number to text; DuckDB
casts the text and rounds. What Spark refuses is another question (`plan.checks.refused_operands`).
Types are those that DuckDB itself finds when it binds a query, so nothing is inferred here:
`with_type_checks` is a query that is bound only, and that cannot be bound where types do not fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from sqlmesh_like.sql_text import standard_literal


@dataclass(frozen=True)
class _Check:
    """A condition in DuckDB's SQL on `typeof(a)` and `typeof(b)`, and the operands for which these names stand."""

    condition: str
    operands: Mapping[str, exp.Expr]
    reason: str


def with_type_checks(tree: exp.Expr, unknown: str, end: str) -> exp.Expr:
    """A copy that DuckDB cannot bind if an operator has operands on whose types the engines are not known to agree.

    The reason then stands in DuckDB's message, between `unknown` and `end`: a field is chosen by a name that is made of
    the types, which are known when a query is bound, and there is no such field.
    """
    made = tree.copy()
    # Operands are copied as they are written, without checks of their own, so that nested ones do not multiply.
    pairs = [(original, node) for original, node in zip(tree.walk(), made.walk(), strict=True)]
    for original, node in reversed(pairs):
        for check in _checks(original):
            _apply(node, check, unknown, end)
    return made


def _apply(node: exp.Expr, check: _Check, unknown: str, end: str) -> None:
    types = " || ' and ' || ".join(f"typeof({name})" for name in check.operands)
    said = f"{standard_literal(unknown + check.reason + ' of ')} || {types} || {standard_literal(end)}"
    template = f"struct_extract({{'sml': sml_value}}, CASE WHEN {check.condition} THEN 'sml' ELSE {said} END)"
    made = sqlglot.parse_one(template, dialect="duckdb")
    (place,) = (column for column in made.find_all(exp.Column) if column.name == "sml_value")
    for column in list(made.find_all(exp.Column)):
        if column is not place:
            column.replace(check.operands[column.name].copy())
    node.replace(made)
    place.replace(exp.Paren(this=node))


_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_KIND = (
    "regexp_replace(regexp_replace(typeof({0}), '^(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)$', 'integer'),"
    " '^DECIMAL.*', 'decimal')"
)
_BOTH = f"{_KIND.format('a')} || ' ' || {_KIND.format('b')}"
_NUMBERS = '(integer|decimal|DOUBLE|"NULL")'
_FITTING = f'typeof(a) = typeof(b) OR regexp_full_match({_BOTH}, \'"NULL" .*|.* "NULL"|{_NUMBERS} {_NUMBERS}|{{0}}\')'
_COMPARABLE = _FITTING.format("(DATE|TIMESTAMP.*) (DATE|TIMESTAMP.*)")
_CASTABLE = (
    f"typeof(a) = typeof(b) OR regexp_full_match({_BOTH},"
    ' \'"NULL" .*|.* "NULL"|integer integer|decimal (integer|decimal)|DOUBLE (integer|decimal|DOUBLE)\')'
)
"""The default of LAG or LEAD, which is cast to the type of the values."""
_SCALE = "CAST(coalesce(nullif(regexp_extract(typeof({0}), ',\\s*([0-9]+)', 1), ''), '0') AS INT)"
_WIDTH = (
    "CASE typeof({0}) WHEN 'TINYINT' THEN 3 WHEN 'SMALLINT' THEN 5 WHEN 'INTEGER' THEN 10"
    " ELSE CAST(coalesce(nullif(regexp_extract(typeof({0}), '[(]([0-9]+)', 1), ''), '20') AS INT) END"
)


def _checks(node: exp.Expr) -> Iterator[_Check]:
    yield from _in_rows(node)
    yield from _chosen(node)
    match node:
        case exp.Binary() if isinstance(node, _COMPARISONS):
            yield from _compared(node.this, node.expression)
        case exp.Between():
            yield from _compared(node.this, node.args["low"])
            yield from _compared(node.this, node.args["high"])
        case exp.In():
            yield from _listed(node)
        case exp.Nullif():
            yield from _compared(node.this, node.expression)
        case exp.Window():
            for shifted in (node.this, node.this.this):
                if isinstance(shifted, exp.Lag | exp.Lead) and shifted.args.get("default") is not None:
                    yield _Check(_CASTABLE, {"a": shifted.this, "b": shifted.args["default"]}, shifted.sql_name())
        case exp.Binary() if isinstance(node, _ARITHMETIC) and not isinstance(node.expression, exp.Interval):
            yield from _computed(node)


def _chosen(node: exp.Expr) -> Iterator[_Check]:
    match node:
        case exp.Case():
            yield from _case(node)
        case exp.If() if not isinstance(node.parent, exp.Case):
            yield from _united([node.args["true"], node.args.get("false")], "IF")
        case exp.Coalesce() | exp.Greatest() | exp.Least():
            yield from _united([node.this, *node.expressions], node.sql_name())
        case exp.Array():
            yield from _united(node.expressions, "ARRAY")


def _in_rows(node: exp.Expr) -> Iterator[_Check]:
    """A value of VALUES beside those above it: beside a number DuckDB casts a text, and Spark the number."""
    row = node.parent
    if not isinstance(row, exp.Tuple) or not isinstance(row.parent, exp.Values) or isinstance(node, exp.Null):
        return
    column = [each.expressions[node.index or 0] for each in row.parent.expressions if isinstance(each, exp.Tuple)]
    yield from _united([next(each for each in column if not isinstance(each, exp.Null)), node], "VALUES")


def _compared(one: exp.Expr, other: exp.Expr) -> Iterator[_Check]:
    """A comparison; a text as it is written may be that of a whole number, a date or a timestamp, cast as in Spark."""
    if isinstance(one, exp.Tuple) and isinstance(other, exp.Tuple):
        for each, its in zip(one.expressions, other.expressions, strict=False):
            yield from _compared(each, its)
        return
    if isinstance(one, exp.Tuple) and isinstance(other, exp.Query):
        for each, item in zip(one.expressions, other.selects, strict=False):
            column = other.unnest().copy()
            column.set("expressions", [item.copy()])
            yield from _compared(each, exp.Subquery(this=column))
        return
    for text, value in ((one, other), (other, one)):
        if isinstance(text, exp.Literal) and text.is_string:
            yield _Check(_fits_text(text.name), {"b": value}, f"the text {text.name!r} beside a value")
            return
    yield _Check(_COMPARABLE, {"a": one, "b": other}, "a comparison")


def _fits_text(text: str) -> str:
    """SQL condition: compared with `b`, this text means the same in both engines."""
    kinds = [
        kind
        for pattern, kind in ((r"0|-?[1-9]\d{0,8}", "integer"), (_DATE, "DATE"), (_MOMENT, "TIMESTAMP"))
        if re.fullmatch(pattern, text)
    ]
    return f"{_KIND.format('b')} IN ('VARCHAR', '\"NULL\"', {', '.join(map(repr, kinds)) or repr('VARCHAR')})"


_DATE = r"\d{4}-\d{2}-\d{2}"
_MOMENT = r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}:\d{2}([.]\d{1,6})?)?"


def _listed(node: exp.In) -> Iterator[_Check]:
    """`IN`: beside one text Spark casts all its members to text, so others must have one text."""
    query = node.args.get("query")
    members = list(node.expressions) if query is None else [query]
    texts = [item.name for item in members if isinstance(item, exp.Literal) and item.is_string]
    others = [item for item in members if not (isinstance(item, exp.Literal) and item.is_string)]
    if not texts:
        for item in others:
            yield from _compared(node.this, item)
        return
    kinds = [kind for pattern, kind in _CANONICAL if all(re.fullmatch(pattern, text) for text in texts)]
    condition = f"{_KIND.format('b')} IN ('VARCHAR', '\"NULL\"', {', '.join(map(repr, kinds)) or repr('VARCHAR')})"
    for item in (node.this, *others):
        yield _Check(condition, {"b": item}, f"IN ({', '.join(map(repr, texts[:3]))})")
    for item in others:
        yield from _compared(node.this, item)


_CANONICAL = (
    (r"0|-?[1-9]\d{0,8}", "integer"), (r"\d{4}-\d{2}-\d{2}", "DATE"),
    (r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}([.]\d{0,5}[1-9])?", "TIMESTAMP"),
)  # fmt: skip


def _case(node: exp.Case) -> Iterator[_Check]:
    branches = node.args["ifs"]
    if node.this is not None:
        for branch in branches:
            yield from _compared(node.this, branch.this)
    yield from _united([*(branch.args["true"] for branch in branches), node.args.get("default")], "CASE")


def _united(values: Sequence[exp.Expr | None], what: str) -> Iterator[_Check]:
    """Values of which one is chosen: of one type, or numbers, or dates and timestamps."""
    given = [value for value in values if value is not None and not isinstance(value, exp.Null)]
    for value in given[1:]:
        yield _Check(_COMPARABLE, {"a": given[0], "b": value}, what)


def _computed(node: exp.Binary) -> Iterator[_Check]:
    operands = {"a": node.this, "b": node.expression}
    is_number = f"regexp_full_match({_BOTH}, '{_NUMBERS} {_NUMBERS}|FLOAT FLOAT{{0}}')"
    if isinstance(node, exp.Add | exp.Sub):
        days = '|DATE (integer|"NULL")'
        condition = f"{is_number.format(days)} AND typeof(b) IS NOT NULL"
        # Spark cuts the fraction of a decimal that would have more than 38 digits.
        whole = f"greatest({_WIDTH.format('a')}, {_WIDTH.format('b')}) < 38"
        short = f"greatest({_SCALE.format('a')}, {_SCALE.format('b')}) <= 6"
    else:
        condition = is_number.format("|FLOAT .*|.* FLOAT" if isinstance(node, exp.Div) else "")  # a double in both
        whole = f"{_WIDTH.format('a')} + {_WIDTH.format('b')} < 38"
        short = f"{_SCALE.format('a')} + {_SCALE.format('b')} <= 6"
    yield _Check(condition, operands, _SIGNS[type(node)])
    if not isinstance(node, exp.Div):
        yield _Check(f"({whole}) OR ({short})", operands, _SIGNS[type(node)])


_SIGNS = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
