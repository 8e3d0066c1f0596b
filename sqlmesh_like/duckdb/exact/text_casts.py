"""Casts of texts: which texts mean the same to both engines, and how DuckDB is given them. Any other one fails.

Numbers are digits with a sign and a point, as many as their type surely holds; dates and times are written in full, of
the years 1000 to 2999. A text that is empty, or has a letter that no number has, is NULL to Spark.
"""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from sqlmesh_like.duckdb.exact.unproven import Unproven
from sqlmesh_like.duckdb.exact.values import cast_of, decimal_digits, only_where

_DAY = "[12][0-9]{3}-[01][0-9]-[0-3][0-9]"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?"
_MEANT = {
    "int": "-?[0-9]{1,9}",
    "bigint": "-?[0-9]{1,18}",
    "double": r"-?[0-9]{1,15}([.][0-9]{1,15})?",
    "date": _DAY,
    "timestamp": f"{_DAY}([ T]{_TIME})?",
}
"""Patterns (RE2) of texts with one meaning, by type; of a day that is none, such as February 30, it is NULL."""
_NOTHING = {
    "int": "|[ -~]*[A-Za-z][ -~]*",
    "bigint": "|[ -~]*[A-Za-z][ -~]*",
    "double": "",
    "decimal": "|[ -~]*[A-DF-Za-df-z][ -~]*",
    "date": "",
    "timestamp": "",
}
"""Of texts that are NULL."""


def replace_by_value(node: exp.Expr, text: exp.Expr, wanted: str) -> str:
    """Replace a node by the value of a text; return the type. Raises Unproven."""
    if wanted.startswith("decimal"):
        digits, scale = decimal_digits(wanted)
        fraction = f"([.][0-9]{{1,{scale}}})?" if scale else ""
        meant, nothing = f"-?0*[0-9]{{1,{max(digits - scale, 1)}}}{fraction}", _NOTHING["decimal"]
        if digits == scale:
            meant = f"-?0+{fraction}"
    elif wanted in _MEANT:
        meant, nothing = _MEANT[wanted], _NOTHING[wanted]
    else:
        raise Unproven(f"a cast of string to {wanted}")
    value: exp.Expr = exp.TryCast(this=text.copy(), to=cast_of(exp.null(), wanted).args["to"])
    if wanted == "double":  # never negative zero
        zero = cast_of(exp.Literal.number(0), "double")
        value = exp.Paren(this=exp.Add(this=value, expression=zero))
    is_meant, is_nothing = _is_like(text, meant), _is_like(text, nothing)
    value = exp.Case().when(is_nothing, cast_of(exp.null(), wanted)).else_(value)
    node.replace(exp.Paren(this=only_where(exp.or_(is_nothing.copy(), is_meant), text, value, wanted)))
    return wanted


def _is_like(text: exp.Expr, pattern: str) -> exp.Expr:
    made = sqlglot.parse_one("regexp_full_match(x, 'p')", dialect="duckdb")
    for place in list(made.find_all(exp.Column, exp.Literal)):
        place.replace(text.copy() if isinstance(place, exp.Column) else exp.Literal.string(pattern))
    return made
