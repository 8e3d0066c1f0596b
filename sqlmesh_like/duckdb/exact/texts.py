"""Texts: what is proven of each function, and how DuckDB is given it."""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.duckdb.dialect import CASED_ALIKE
from sqlmesh_like.duckdb.exact.form import Form
from sqlmesh_like.duckdb.exact.unproven import Unproven, require_only
from sqlmesh_like.duckdb.exact.values import Types, only_where, replace_by_cast


def _text_of(node: exp.Expr, types: Types) -> None:
    if types.of(node) != "string":
        raise Unproven(f"{node.key.upper()} of other than a text")


def _concatenated(node: exp.DPipe, types: Types) -> str:
    _text_of(node.this, types)
    _text_of(node.expression, types)
    return "string"


def _length(node: exp.Length, types: Types) -> str:
    require_only(node, "this")
    _text_of(node.this, types)
    return replace_by_cast(node, "int")


def _digest(node: exp.MD5, types: Types) -> str:
    _text_of(node.this, types)
    return "string"


def _in_case(node: exp.Upper | exp.Lower, types: Types) -> str:
    _text_of(node.this, types)
    node.replace(_of_letters_alike(node.this, node.copy(), CASED_ALIKE[type(node)]))
    return "string"


def _replace(node: exp.Replace, types: Types) -> str:
    for part in (node.expression, node.args.get("replacement")):
        if not isinstance(part, exp.Literal) or (part is node.expression and not part.name):
            raise Unproven("REPLACE of other than a written text")
    _text_of(node.this, types)
    return "string"


def _substring(node: exp.Substring, types: Types) -> str:
    start, length = node.args.get("start"), node.args.get("length")
    for number in (start, length):
        if number is not None and not (isinstance(number, exp.Literal) and number.is_int):
            raise Unproven("SUBSTRING of other than written places")
    if start is None or int(start.name) < 1:
        raise Unproven("SUBSTRING from a position that is not a positive number")
    _text_of(node.this, types)
    return "string"


def _of_letters_alike(value: exp.Expr, changed: exp.Expr, pattern: str) -> exp.Expr:
    """A text in another case, failing for letters that the engines map differently."""
    plain = exp.Anonymous(this="regexp_full_match", expressions=[value.copy(), exp.Literal.string(pattern)])
    return only_where(plain, value, changed, "string")


FORMS: dict[type[exp.Expr], Form] = {
    exp.DPipe: Form(_concatenated), exp.Length: Form(_length), exp.Replace: Form(_replace),
    exp.MD5: Form(_digest), exp.Upper: Form(_in_case), exp.Lower: Form(_in_case), exp.Substring: Form(_substring),
}  # fmt: skip
