"""Conditions that follow from others, by their constants alone. Owns when a range or a list includes another.

Only what is said here is known: a condition that is not implied is evaluated, which costs work and no rows. Constants
are compared within one form (see `_constant`), in which Spark casts a value of whatever type to the same type for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal

from sqlglot import exp

from sqlmesh_like.analyze.algebra.canonical_expressions import text_of

_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE,
}  # fmt: skip
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")


def split_conditions(conditions: Iterable[exp.Expr]) -> dict[str, exp.Expr]:
    """The conditions by a text that is the same however they are spelled, without what is always true.

    Instead of BETWEEN there are two comparisons.

    >>> import sqlglot
    >>> [*split_conditions(map(sqlglot.parse_one, ["a = b", "(c between 1 and 2)", "true", "b = a"])).values()]
    ... # doctest: +ELLIPSIS
    [EQ(...), GTE(...), LTE(...)]
    """
    split: dict[str, exp.Expr] = {}
    for condition in conditions:
        bare = condition.unnest()
        parts = [bare] if bare != exp.true() else []
        if isinstance(bare, exp.Between) and not bare.args.get("symmetric"):
            low = exp.GTE(this=bare.this.copy(), expression=bare.args["low"].copy())
            parts = [low, exp.LTE(this=bare.this.copy(), expression=bare.args["high"].copy())]
        for part in parts:
            split.setdefault(text_of(part), part)
    return split


def is_implied(condition: exp.Expr, known: Sequence[exp.Expr]) -> bool:
    """Whether a condition is true for each row for which all the known ones are.

    >>> import sqlglot
    >>> def check(*texts): first, *known = map(sqlglot.parse_one, texts); return is_implied(first, known)
    >>> check("a > 1", "a > 2"), check("a > 1", "a >= 1"), check("a > 1", "b > 2"), check("a < 3", "a > 1", "2 >= a")
    (True, False, False, True)
    >>> check("a in (1, 2, 3)", "a in (2, 1)"), check("a in (1, 2)", "a in (1, null)"), check("a > 2", "a > 2.5")
    (True, False, False)
    """
    if isinstance(condition, exp.In):
        return any(_includes(condition, each) for each in known)
    return any(_is_within(each, condition) for each in known)


def _is_within(known: exp.Expr, condition: exp.Expr) -> bool:
    """Whether the range of one comparison is in that of the other, to the same side."""
    own, wanted = _constant_bound(known), _constant_bound(condition)
    if own is None or wanted is None or own[0] != wanted[0] or own[2][0] != wanted[2][0]:
        return False
    kind, wanted_kind, constant, limit = own[1], wanted[1], own[2][1], wanted[2][1]
    is_upwards = wanted_kind in (exp.GT, exp.GTE)
    if is_upwards != (kind in (exp.GT, exp.GTE)):
        return False
    is_inner = constant > limit if is_upwards else constant < limit
    return is_inner or (constant == limit and (kind is wanted_kind or wanted_kind in (exp.GTE, exp.LTE)))


def _constant_bound(condition: exp.Expr) -> tuple[exp.Expr, type[exp.Expr], tuple[str, Decimal]] | None:
    """A value, how it is compared, and the constant."""
    kind = type(condition)
    if kind not in _MIRRORED:
        return None
    for value, constant, own in (
        (condition.this, condition.expression, kind),
        (condition.expression, condition.this, _MIRRORED[kind]),
    ):
        limit = _constant(constant)
        if limit is not None and _constant(value) is None:
            return value.unnest(), own, limit
    return None


def _constant(node: exp.Expr) -> tuple[str, Decimal] | None:
    """A constant with its form: integers of up to nine digits, decimals by their digits, dates (as numbers).

    A text is cast to the type of a number that it is compared with: `'2.7' > 2` is false and `'2.7' > 2.5` is true.
    """
    node = node.unnest()
    if isinstance(node, exp.Neg):
        inner = _constant(node.this)
        return (inner[0], -inner[1]) if inner is not None and inner[0] != "date" else None
    if isinstance(node, exp.Literal) and not node.is_string:
        if re.fullmatch(r"\d{1,9}", node.name):
            return "integer", Decimal(node.name)
        whole, _, digits = node.name.partition(".")
        return (f"decimal {len(digits)}", Decimal(node.name)) if whole.isdigit() and digits.isdigit() else None
    if isinstance(node, exp.Cast) and node.to == exp.DataType.build("date") and isinstance(node.this, exp.Literal):
        match = _DATE.fullmatch(node.this.name)
        return ("date", Decimal("".join(match.groups()))) if node.this.is_string and match else None
    return None


def _includes(wanted: exp.In, known: exp.Expr) -> bool:
    """Whether a list has all values of another one; those of both are texts, or integers."""
    if not isinstance(known, exp.In) or known.this != wanted.this or not known.expressions:
        return False
    forms = {_list_form(each) for each in (*known.expressions, *wanted.expressions)}
    return len(forms) == 1 and None not in forms and set(known.expressions) <= set(wanted.expressions)


def _list_form(node: exp.Expr) -> str | None:
    if not isinstance(node, exp.Literal):
        return None
    return "text" if node.is_string else "integer" if re.fullmatch(r"\d{1,9}", node.name) else None
