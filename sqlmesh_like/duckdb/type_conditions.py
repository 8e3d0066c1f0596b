"""Of which types DuckDB converts values as Spark does. Owns the conditions, in DuckDB's SQL, on the names of two types.

The names are those of `typeof`, and elements of the list `types`. `bind_time_checks` owns where which is asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

_A, _B = "types[1]", "types[2]"
_DATE_AND_DAYS = 'DATE (integer|"NULL")'
_NUMBERS = '(integer|decimal|DOUBLE|"NULL")'


def _kind(type_: str) -> str:
    return (
        f"regexp_replace(regexp_replace({type_}, '^(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)$', 'integer'),"
        " '^DECIMAL.*', 'decimal')"
    )


def _kinds(a: str, b: str, pattern: str) -> str:
    return f"regexp_full_match({_kind(a)} || ' ' || {_kind(b)}, '{pattern}')"


def _width(type_: str) -> str:
    """Digits of an integer or decimal, as Spark counts those of the decimal as which it treats an integer."""
    return (
        f"CASE {type_} WHEN 'TINYINT' THEN 3 WHEN 'SMALLINT' THEN 5 WHEN 'INTEGER' THEN 10"
        f" ELSE CAST(coalesce(nullif(regexp_extract({type_}, '[(]([0-9]+)', 1), ''), '20') AS INT) END"
    )


def _scale(type_: str) -> str:
    return f"CAST(coalesce(nullif(regexp_extract({type_}, ',\\s*([0-9]+)', 1), ''), '0') AS INT)"


def _alike(a: str, b: str) -> str:
    """Both engines convert values of these two types to one type alike.

    Of decimals that need more than 38 digits together Spark keeps the fraction, DuckDB the whole part; and a decimal
    without a fraction becomes another double in DuckDB, if it has more digits than a bigint.
    """
    is_number = _kinds(a, b, f"{_NUMBERS} {_NUMBERS}")
    is_of_moments = _kinds(a, b, '"NULL" .*|.* "NULL"|(DATE|TIMESTAMP.*) (DATE|TIMESTAMP.*)')
    scale = f"greatest({_scale(a)}, {_scale(b)})"
    digits = f"greatest({_width(a)} - {_scale(a)}, {_width(b)} - {_scale(b)}) + {scale}"
    with_double = f"NOT regexp_matches({a} || ' ' || {b}, '{WIDE_WHOLE}')"
    return (
        f"{a} = {b} OR {is_of_moments} OR ({is_number} AND CASE WHEN 'DOUBLE' IN ({a}, {b}) THEN {with_double}"
        f" ELSE {_kinds(a, b, 'integer integer')} OR {digits} <= 38 END)"
    )


PLAIN = f"NOT regexp_matches({_A}, '^(STRUCT|MAP|UNION|[(])|[]]$')"
"""Neither a list nor a struct, nor a row as `(a, b)`: the engines order NULLs within these differently."""
PLAIN_ROW = f"NOT regexp_matches({_A}, 'STRUCT|MAP|UNION|[]]|[(,]\\s*[(]')"
"""A row of such values alone."""
WIDE_WHOLE = r"HUGEINT|DECIMAL[(](19|[23][0-9]),\s*0[)]"
"""Types of whole numbers that are longer than a bigint."""
ALIKE = _alike(_A, _B)
ALIKE_QUERIES = (
    "len(list_filter(types, LAMBDA one : len(list_filter(types, LAMBDA other : len(list_filter("
    "list_zip({columns[0]}, {columns[1]}), LAMBDA pair : NOT coalesce({alike}, false))) > 0)) > 0)) = 0"
).format(
    columns=[f"string_split(regexp_extract({name}, '^[(](.*)[)]$', 1), ', ')" for name in ("one", "other")],
    alike=f"{_alike('pair[1]', 'pair[2]')} OR {_kinds('pair[1]', 'pair[2]', 'VARCHAR integer|integer VARCHAR')}",
)
"""Rows of several queries: each column with that of each other. Types are those of the columns, in parentheses.

Beside a text both engines make a whole number its text, which is one text in both.
"""
CASTABLE = f"{_A} = {_B} OR " + _kinds(
    _A, _B, '"NULL" .*|.* "NULL"|integer integer|decimal (integer|decimal)|DOUBLE (integer|decimal|DOUBLE)'
)
"""The default of LAG or LEAD, which is cast to the type of the values."""


def fits_text(text: str) -> str:
    """Compared with a value of the first type, this text means the same in both engines."""
    return _is_one_of([kind for pattern, kind in _AS_COMPARED if re.fullmatch(pattern, text)])


def fits_texts(texts: Sequence[str]) -> str:
    """Beside a value of the first type, which becomes a text in Spark, these texts mean the same in both engines."""
    return _is_one_of([kind for pattern, kind in _CANONICAL if all(re.fullmatch(pattern, text) for text in texts)])


def _is_one_of(kinds: Sequence[str]) -> str:
    return f"{_kind(_A)} IN ('VARCHAR', '\"NULL\"', {', '.join(map(repr, kinds)) or repr('VARCHAR')})"


_AS_COMPARED = (
    (r"0|-?[1-9]\d{0,8}", "integer"), (r"\d{4}-\d{2}-\d{2}", "DATE"),
    (r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}:\d{2}([.]\d{1,6})?)?", "TIMESTAMP"),
)  # fmt: skip
_CANONICAL = (
    (r"0|-?[1-9]\d{0,8}", "integer"), (r"\d{4}-\d{2}-\d{2}", "DATE"),
    (r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}([.]\d{0,5}[1-9])?", "TIMESTAMP"),
)  # fmt: skip


def alike_operands(node: exp.Binary) -> str:
    """Both engines compute with operands of these types alike."""
    numbers = f"{_NUMBERS} {_NUMBERS}|FLOAT FLOAT"
    if isinstance(node, exp.Add | exp.Sub):
        known = f"{_kinds(_A, _B, f'{numbers}|{_DATE_AND_DAYS}')} AND {_B} IS NOT NULL"
    elif isinstance(node, exp.Div):
        return _kinds(_A, _B, f"{_NUMBERS} {_NUMBERS}|FLOAT DOUBLE|DOUBLE FLOAT")  # of floats Spark's is a double
    else:
        known = _kinds(_A, _B, numbers)
    return f"({known}) AND NOT ('DOUBLE' IN ({_A}, {_B}) AND regexp_matches({_A} || ' ' || {_B}, '{WIDE_WHOLE}'))"


def keeps_digits(node: exp.Binary) -> str:
    """The result has no more digits than a decimal may have: Spark cuts the fraction of one with more than 38."""
    if isinstance(node, exp.Add | exp.Sub):
        whole = f"greatest({_width(_A)}, {_width(_B)}) < 38"
        return f"({whole}) OR (greatest({_scale(_A)}, {_scale(_B)}) <= 6)"
    return f"({_width(_A)} + {_width(_B)} < 38) OR ({_scale(_A)} + {_scale(_B)} <= 6)"
