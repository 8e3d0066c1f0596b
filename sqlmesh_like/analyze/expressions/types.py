"""Spark's type rules for the expressions that plans depend on. Owns inference; None means "not proven", never a guess.

Source of the rules: Spark 3.5 `DecimalPrecision`, `DecimalType.adjustPrecisionScale`, `TypeCoercion` (non-ANSI) and the
`dataType` of each function in `sqlcat.expressions`. A run compares what is inferred here with Spark's own analysis.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import reduce

from sqlglot import exp

from sqlmesh_like.analyze.expressions.clock import clock_type, is_clock_call
from sqlmesh_like.analyze.expressions.nested_types import element_of, fields_of
from sqlmesh_like.dialects import SPARK

INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_ALIASES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "dec": "decimal(10,0)",
            "decimal": "decimal(10,0)", "numeric": "decimal(10,0)", "real": "float", "text": "string",
            "timestamp_ltz": "timestamp", "timestamptz": "timestamp"}  # fmt: skip
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
DOUBLE_DIGITS = 15
"""Digits of a decimal that a double always holds."""
EXACT_KEYS = (*INTEGERS, "string", "date", "timestamp", "boolean")

_STRING = (exp.Upper, exp.Lower, exp.Trim, exp.Concat, exp.ConcatWs, exp.Substring, exp.Replace, exp.RegexpReplace,
           exp.RegexpExtract, exp.TimeToStr, exp.MD5, exp.SHA2, exp.Left, exp.Right, exp.Pad, exp.DPipe,
           exp.JSONExtractScalar, exp.Initcap, exp.Reverse, exp.Repeat, exp.SplitPart, exp.SubstringIndex,
           exp.Translate, exp.Soundex, exp.SHA, exp.ToBase64, exp.UnixToStr, exp.ParseUrl, exp.Space, exp.JSONFormat,
           exp.Chr, exp.RegexpSubstr, exp.Format)  # fmt: skip
_INT = (exp.Year, exp.Month, exp.Day, exp.Quarter, exp.DayOfWeek, exp.DayOfYear, exp.WeekOfYear, exp.Length,
        exp.DateDiff, exp.RowNumber, exp.Hour, exp.Minute, exp.Second, exp.DayOfMonth, exp.StrPosition, exp.Ascii,
        exp.Levenshtein, exp.UnixDate, exp.ArraySize, exp.RegexpCount)  # fmt: skip
_DATE = (exp.TsOrDsToDate, exp.Date, exp.DateAdd, exp.DateSub, exp.LastDay, exp.TsOrDsAdd)
_BOOLEAN = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In, exp.Between, exp.Like, exp.And, exp.Or,
            exp.Not, exp.RegexpLike, exp.NullSafeEQ, exp.NullSafeNEQ, exp.StartsWith, exp.EndsWith, exp.ILike,
            exp.Contains, exp.IsNan, exp.ArrayContains, exp.EqualNull)  # fmt: skip


_NAMED = {"HASH": "int", "XXHASH64": "bigint", "CRC32": "bigint", "ISNULL": "boolean", "ISNOTNULL": "boolean",
          "MAKE_DATE": "date", "WEEKDAY": "int", "OCTET_LENGTH": "int", "BTRIM": "string"}  # fmt: skip
_BINARY_TOO = (exp.Concat, exp.DPipe, exp.Substring, exp.Left, exp.Right, exp.Pad, exp.Reverse)


def normalize(text: str) -> str:
    """A type in Spark's short spelling.

    >>> normalize("DECIMAL(10, 2)"), normalize("Integer"), normalize("varchar(155)")
    ('decimal(10,2)', 'int', 'string')
    """
    text = re.sub(r"\s+", "", text.lower())
    if text.startswith(("varchar", "char(")):
        return "string"
    if match := re.fullmatch(r"(?:decimal|numeric|dec)\((\d+)(?:,(\d+))?\)", text):
        return f"decimal({match[1]},{match[2] or 0})"
    return _ALIASES.get(text, text)


def decimal_of(type_: str | None) -> tuple[int, int] | None:
    """Precision and scale of a decimal or integer type.

    >>> decimal_of("decimal(10,2)"), decimal_of("int"), decimal_of("double")
    ((10, 2), (10, 0), None)
    """
    if type_ in _DIGITS:
        return _DIGITS[type_], 0
    match = _DECIMAL.fullmatch(type_ or "")
    return (int(match[1]), int(match[2])) if match else None


def is_exact_number(type_: str | None) -> bool:
    return decimal_of(type_) is not None


def is_exact_key(type_: str | None) -> bool:
    """Whether equal values of this type have one text form: no floats, no binary, nothing nested."""
    return type_ in EXACT_KEYS or _DECIMAL.fullmatch(type_ or "") is not None


def is_one_key(left: str | None, right: str | None) -> bool:
    """Whether equal values of two types are one key: not text and a number, nor two different decimal types.

    >>> is_one_key("int", "bigint"), is_one_key("int", "string"), is_one_key("double", "double")
    (True, False, False)
    """
    return is_exact_key(left) and (left == right or (left in INTEGERS and right in INTEGERS))


def infer(expression: exp.Expr, known: Mapping[str, str | None]) -> str | None:
    """Spark type of an expression over columns whose types are `known` (by lower-case name); None if not proven.

    >>> import sqlglot
    >>> infer(sqlglot.parse_one("a * b"), {"a": "int", "b": "decimal(10,2)"})
    'decimal(21,2)'
    >>> [infer(sqlglot.parse_one(f"x {sign} n", dialect="spark"), {"x": "float", "n": "int"}) for sign in "+/"]
    ['float', 'double']
    """
    match expression:
        case exp.Column():
            return known.get(expression.name.lower())
        case exp.Paren():
            return infer(expression.this, known)
        case exp.Neg() | exp.Abs():
            return _number(infer(expression.this, known))
        case exp.Cast():
            return normalize(expression.to.sql(SPARK))
        case exp.Literal():
            return _literal(expression)
        case exp.Boolean():
            return "boolean"
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
            return _arithmetic(expression, infer(expression.this, known), infer(expression.expression, known))
        case exp.Case():
            values = [branch.args["true"] for branch in expression.args["ifs"]]
            return _common([*values, expression.args.get("default")], known)
        case exp.If():
            return _common([expression.args["true"], expression.args.get("false")], known)
        case exp.Coalesce():
            return _common([expression.this, *expression.expressions], known)
        case exp.Greatest() | exp.Least():
            return _common([expression.this, *expression.expressions], known)
    return clock_type(expression) if is_clock_call(expression) else _by_class(expression, known)


def _nested(expression: exp.Expr, known: Mapping[str, str | None]) -> str | None:
    """Type of an array, of an array's element or of a struct's field."""
    match expression:
        case exp.RegexpSplit():
            return "array<string>"
        case exp.Array():
            element = _common(list(expression.expressions), known)
            return f"array<{element}>" if element else None
        case exp.GenerateSeries():
            ends = {infer(end, known) for part in ("start", "end") if (end := expression.args.get(part)) is not None}
            type_ = ends.pop() if len(ends) == 1 else None
            return f"array<{type_}>" if type_ in (*INTEGERS, "date", "timestamp") else None
        case exp.Bracket():
            return _field(expression, known)
    return None


def _field(bracket: exp.Bracket, known: Mapping[str, str | None]) -> str | None:
    """A struct's field, or an array's element."""
    type_, (index, *more) = infer(bracket.this, known), bracket.expressions
    if more:
        return None
    if isinstance(index, exp.Literal) and index.is_string:
        fields = {name.lower(): field_type for name, field_type in fields_of(type_).items()}
        return fields.get(index.name.lower())
    return element_of(type_)


def _number(type_: str | None) -> str | None:
    """A numeric type as it is, else None: a sign turns text into a double."""
    return type_ if type_ in ("float", "double") or decimal_of(type_) is not None else None


def _are_plain(function: exp.Expr, known: Mapping[str, str | None]) -> bool:
    """Whether no argument can be binary or an array, for which these functions do not return text."""
    return all(
        infer(argument, known) in (*EXACT_KEYS, "float", "double") or decimal_of(infer(argument, known)) is not None
        for argument in function.iter_expressions()
        if not isinstance(argument, exp.Null)
    )


def _by_class(expression: exp.Expr, known: Mapping[str, str | None]) -> str | None:
    if isinstance(expression, exp.Array | exp.RegexpSplit | exp.GenerateSeries | exp.Bracket):
        return _nested(expression, known)
    if isinstance(expression, _BINARY_TOO) and not _are_plain(expression, known):
        return None
    if isinstance(expression, exp.DateDiff | exp.DateAdd) and expression.args.get("unit") is not None:
        return None  # datediff(MONTH, a, b) is another function, of another type
    if isinstance(expression, exp.Anonymous):
        return _NAMED.get(expression.name.upper())
    if isinstance(expression, exp.StrToUnix | exp.TimestampDiff):
        return "bigint"
    for classes, type_ in ((_STRING, "string"), (_INT, "int"), (_DATE, "date"), (_BOOLEAN, "boolean")):
        if isinstance(expression, classes):
            return type_
    return "timestamp" if isinstance(expression, exp.TimestampTrunc) else None


def _literal(literal: exp.Literal) -> str | None:
    if literal.is_string:
        return "string"
    text = literal.name
    if text.isdigit():
        return "int" if int(text) < 2**31 else "bigint" if int(text) < 2**63 else None
    whole, dot, fraction = text.partition(".")
    if dot and (whole + fraction).isdigit():
        digits = len(whole.lstrip("0")) + len(fraction)
        return f"decimal({max(digits, len(fraction))},{len(fraction)})"
    return None


def _common(values: list[exp.Expr | None], known: Mapping[str, str | None]) -> str | None:
    """The type that Spark widens all non-NULL values to: one type, or the wider of exact numbers."""
    types = [infer(value, known) for value in values if value is not None and not isinstance(value, exp.Null)]
    return reduce(_wider, types) if types else None


def _wider(left: str | None, right: str | None) -> str | None:
    """`DecimalPrecision.widerDecimalType`; an integer literal is not narrowed here, as it is in arithmetic."""
    if left == right:
        return left
    first, second = decimal_of(left), decimal_of(right)
    if first is None or second is None:
        return None
    if left in INTEGERS and right in INTEGERS:
        return INTEGERS[max(INTEGERS.index(left), INTEGERS.index(right))]
    scale = max(first[1], second[1])
    whole = max(first[0] - first[1], second[0] - second[1])
    # Above 38 digits Spark truncates the type, and values may not fit it.
    return f"decimal({whole + scale},{scale})" if whole + scale <= 38 else None


def _arithmetic(node: exp.Expr, left: str | None, right: str | None) -> str | None:
    if left is None or right is None:
        return None
    floats = {"float", "double"}
    if left in floats or right in floats:
        if left not in (*floats, *INTEGERS) or right not in (*floats, *INTEGERS):
            return None
        return "double" if "double" in (left, right) or isinstance(node, exp.Div) else "float"
    if left in INTEGERS and right in INTEGERS:
        wider = INTEGERS[max(INTEGERS.index(left), INTEGERS.index(right))]
        return "double" if isinstance(node, exp.Div) else wider
    if any(_is_literal(side) for side in (node.this, node.expression)):
        # Spark narrows an integer literal beside a decimal to the digits it has.
        left, right = _narrow(node.this, left), _narrow(node.expression, right)
    first, second = decimal_of(left), decimal_of(right)
    return _decimal_arithmetic(node, first, second) if first and second else None


def _is_literal(side: exp.Expr) -> bool:
    """Whether a node is a literal, with or without a sign, which Spark's parser makes part of the literal."""
    return isinstance(side.this if isinstance(side, exp.Neg) else side, exp.Literal)


def _narrow(side: exp.Expr, type_: str) -> str:
    if not _is_literal(side) or type_ not in INTEGERS:
        return type_
    literal = side.this if isinstance(side, exp.Neg) else side
    return f"decimal({len(str(int(literal.name)))},0)"


def _decimal_arithmetic(node: exp.Expr, first: tuple[int, int], second: tuple[int, int]) -> str | None:
    (p1, s1), (p2, s2) = first, second
    match node:
        case exp.Add() | exp.Sub():
            scale = max(s1, s2)
            return _adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
        case exp.Mul():
            return _adjusted(p1 + p2 + 1, s1 + s2)
        case exp.Div():
            scale = max(6, s1 + p2 + 1)
            return _adjusted(p1 - s1 + s2 + scale, scale)
    return None


def _adjusted(precision: int, scale: int) -> str:
    """A decimal type, reduced to 38 digits as in Spark's `DecimalType.adjustPrecisionScale`."""
    if precision <= 38:
        return f"decimal({precision},{scale})"
    whole = precision - scale
    return f"decimal(38,{max(38 - whole, min(scale, 6))})"


def sum_type(argument: str | None) -> str | None:
    """Type of SUM.

    >>> sum_type("int"), sum_type("decimal(10,2)"), sum_type("double")
    ('bigint', 'decimal(20,2)', 'double')
    """
    if argument in INTEGERS:
        return "bigint"
    if argument in ("float", "double"):
        return "double"
    decimal = _DECIMAL.fullmatch(argument or "")
    return f"decimal({min(38, int(decimal[1]) + 10)},{decimal[2]})" if decimal else None


def averages_doubles(argument: str | None) -> bool:
    """Whether Spark computes AVG of these decimals from doubles (its optimizer's rule `DecimalAggregates`).

    >>> averages_doubles("decimal(11,2)"), averages_doubles("decimal(12,2)"), averages_doubles("int")
    (True, False, False)
    """
    decimal = _DECIMAL.fullmatch(argument or "")
    return decimal is not None and int(decimal[1]) + 4 <= DOUBLE_DIGITS


def avg_type(argument: str | None) -> str | None:
    """Type of AVG.

    >>> avg_type("int"), avg_type("decimal(10,2)"), avg_type("decimal(38,10)")
    ('double', 'decimal(14,6)', 'decimal(38,14)')
    """
    if argument in INTEGERS or argument in ("float", "double"):
        return "double"
    decimal = _DECIMAL.fullmatch(argument or "")
    # DecimalType.bounded caps precision and scale at 38, without reducing the scale to keep whole digits.
    return f"decimal({min(38, int(decimal[1]) + 4)},{min(38, int(decimal[2]) + 4)})" if decimal else None
