"""Texts: what is proven of each function, and how DuckDB is given it."""

from __future__ import annotations

import re
from functools import reduce

from sqlglot import exp

from sqlmesh_like.dialects import SPARK
from sqlmesh_like.duckdb.dialect import CASED_ALIKE
from sqlmesh_like.duckdb.exact.form import Form
from sqlmesh_like.duckdb.exact.unproven import Unproven, require_only
from sqlmesh_like.duckdb.exact.values import Types, only_where, replace_by_cast

PLAIN_REGEX = re.compile(
    r"(\(\?i\))?\^?("
    r"(\[\^?[A-Za-z0-9 _@%+.,:;=!#~/*()?{}|-]+\]|[A-Za-z0-9 _@%,:;=!#~/\"'<>&.-])([*+?]\??|\{\d+(,\d*)?\})?"
    r"|\((\?:)?|\)\??|\|"
    r")*\$?"
)
"""Patterns of printable ASCII that Java and RE2 interpret alike.

Without backslashes, which SQL interprets too; without repeated groups, which may be empty; and without groups that set
flags, since `(?U)` has a different meaning in each.
"""
_LINE_ENDS = r"[\n\r\x{85}\x{2028}\x{2029}]"
"""What Java's `.` and `$` take for the end of a line; RE2 knows the first alone."""


def _text_of(node: exp.Expr, types: Types) -> None:
    if types.of(node) != "string":
        raise Unproven(f"{node.key.upper()} of other than a text")


def _cast_to_text(node: exp.Expr, types: Types) -> None:
    """Make a text of a value, as Spark does of what is concatenated."""
    is_text = isinstance(node, exp.DPipe | exp.Concat) or (isinstance(node, exp.Cast) and node.to.is_type("text"))
    if (is_text or isinstance(node, exp.Literal | exp.Column)) and types.of(node) == "string":
        return
    cast = exp.Cast(this=node.copy(), to=exp.DataType.build("string", dialect=SPARK))
    node.replace(cast)
    types.of(cast)


def _concat(node: exp.DPipe, types: Types) -> str:
    _cast_to_text(node.this, types)
    _cast_to_text(node.expression, types)
    return "string"


def _concat_all(node: exp.Concat, types: Types) -> str:
    """NULL where one is: DuckDB's function passes over it."""
    for part in list(node.expressions):
        _cast_to_text(part, types)
    parts: list[exp.Expr] = [exp.Paren(this=part.copy()) for part in node.expressions]
    node.replace(exp.Paren(this=reduce(lambda one, other: exp.DPipe(this=one, expression=other, safe=True), parts)))
    return "string"


def _trimmed(node: exp.Trim, types: Types) -> str:
    """Without spaces at its ends; DuckDB's function takes other characters for spaces as well."""
    require_only(node, "this")
    _text_of(node.this, types)
    node.set("expression", exp.Literal.string(" "))
    return "string"


def _part_test(node: exp.Contains | exp.StartsWith | exp.EndsWith, types: Types) -> str:
    require_only(node, "this", "expression")
    _text_of(node.this, types)
    _text_of(node.expression, types)
    names = {exp.Contains: "contains", exp.StartsWith: "starts_with", exp.EndsWith: "ends_with"}
    node.replace(exp.Anonymous(this=names[type(node)], expressions=[node.this.copy(), node.expression.copy()]))
    return "boolean"


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
    if start is None or not _is_at_least(start, 1, types):
        raise Unproven("SUBSTRING from a position that is not a positive number")
    if length is not None and not _is_at_least(length, 0, types):
        raise Unproven("SUBSTRING of a length that may be negative")
    _text_of(node.this, types)
    return "string"


def _is_at_least(number: exp.Expr, least: int, types: Types) -> bool:
    """Whether a number is written, or is the greatest of others and a written one, and no less than that or NULL.

    So is the position of a text, which is 0 where there is none, plus such a number.
    """
    if isinstance(number, exp.Literal):
        return number.is_int and int(number.name) >= least
    if isinstance(number, exp.Add) and isinstance(number.this, exp.StrPosition):
        return types.of(number) == "int" and _is_at_least(number.expression, least, types)
    if not isinstance(number, exp.Greatest) or types.of(number) != "int":
        return False
    return any(isinstance(each, exp.Literal) and int(each.name) >= least for each in number.expressions)


def _position(node: exp.StrPosition, types: Types) -> str:
    require_only(node, "this", "substr")
    wanted = node.args["substr"]
    if not isinstance(wanted, exp.Literal) or not wanted.name:
        raise Unproven("the position of other than a written text")
    _text_of(node.this, types)
    return replace_by_cast(node, "int")


def _part_until(node: exp.SubstringIndex, types: Types) -> str:
    """SUBSTRING_INDEX at a single sign: Spark looks for longer texts where those found before go on, too."""
    require_only(node, "this", "delimiter", "count")
    delimiter, count = node.args["delimiter"], node.args["count"]
    number = count.this if isinstance(count, exp.Neg) else count
    if not isinstance(delimiter, exp.Literal) or len(delimiter.name) != 1:
        raise Unproven("SUBSTRING_INDEX at other than a single sign as written")
    if not isinstance(number, exp.Literal) or not number.is_int or not 0 < int(number.name) < 2**31:
        raise Unproven("SUBSTRING_INDEX of other than a number as written")
    _text_of(node.this, types)
    parts = exp.Anonymous(this="string_split", expressions=[node.this.copy(), delimiter.copy()])
    ends = [exp.Literal.number(1), number.copy()] if number is count else [count.copy(), exp.Literal.number(-1)]
    some = exp.Anonymous(this="list_slice", expressions=[parts, *ends])
    node.replace(exp.Anonymous(this="array_to_string", expressions=[some, delimiter.copy()]))
    return "string"


def _padded(node: exp.Pad, types: Types) -> str:
    """LPAD and RPAD, which cut off what is longer."""
    require_only(node, "this", "expression", "fill_pattern", "is_left")
    size, fill = node.expression, node.args.get("fill_pattern") or exp.Literal.string(" ")
    if not isinstance(size, exp.Literal) or not size.is_int or int(size.name) > 10_000:
        raise Unproven("LPAD or RPAD to other than a small number as written")
    if not isinstance(fill, exp.Literal) or not fill.name.isascii() or not fill.name.isprintable() or not fill.name:
        raise Unproven("LPAD or RPAD by other than a written text")
    _text_of(node.this, types)
    name = "lpad" if node.args.get("is_left") else "rpad"
    node.replace(exp.Anonymous(this=name, expressions=[node.this.copy(), size.copy(), fill.copy()]))
    return "string"


def _digest_of_256_bits(node: exp.SHA2, types: Types) -> str:
    if (length := node.args.get("length")) is None or length.name not in ("0", "256"):
        raise Unproven("SHA2 of other than 256 bits")
    _text_of(node.this, types)
    node.replace(exp.Anonymous(this="sha256", expressions=[node.this.copy()]))
    return "string"


def _matches(node: exp.RegexpLike, types: Types) -> str:
    """A regular expression that Java and RE2 read alike; the ends of lines, which they do not, are left to Spark."""
    require_only(node, "this", "expression")
    pattern = node.expression
    if not isinstance(pattern, exp.Literal) or not PLAIN_REGEX.fullmatch(pattern.name) or "(?i" in pattern.name:
        raise Unproven("a regular expression that is computed, has a backslash or what Java has alone")
    _text_of(node.this, types)
    value = node.this.copy()
    ends = exp.Anonymous(this="regexp_matches", expressions=[value.copy(), exp.Literal.string(_LINE_ENDS)])
    found = exp.Anonymous(this="regexp_matches", expressions=[value.copy(), pattern.copy()])
    node.replace(exp.Paren(this=only_where(exp.Not(this=ends), value, found, "boolean")))
    return "boolean"


def _of_letters_alike(value: exp.Expr, changed: exp.Expr, pattern: str) -> exp.Expr:
    """A text in another case, failing for letters that the engines map differently."""
    plain = exp.Anonymous(this="regexp_full_match", expressions=[value.copy(), exp.Literal.string(pattern)])
    return only_where(plain, value, changed, "string")


_NOT_TRIED = "no fixture compares it over values of unknown types"

FORMS: dict[type[exp.Expr], Form] = {
    exp.DPipe: Form(_concat), exp.Length: Form(_length), exp.Replace: Form(_replace),
    exp.MD5: Form(_digest), exp.Upper: Form(_in_case), exp.Lower: Form(_in_case), exp.Substring: Form(_substring),
    exp.RegexpLike: Form(_matches), exp.StrPosition: Form(_position), exp.Concat: Form(_concat_all),
    exp.Trim: Form(_trimmed),
    **dict.fromkeys(
        (exp.Contains, exp.StartsWith, exp.EndsWith),
        Form(_part_test, is_listed=False, why=_NOT_TRIED),
    ),
    exp.SubstringIndex: Form(_part_until, is_listed=False, why=_NOT_TRIED),
    exp.Pad: Form(_padded, is_listed=False, why=_NOT_TRIED),
    exp.SHA2: Form(_digest_of_256_bits, is_listed=False, why=_NOT_TRIED),
}  # fmt: skip
