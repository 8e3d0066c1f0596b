"""Filters and joins as nodes. Owns the placement of a condition's conjuncts, and the equalities of a join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Filter, Join, JoinKind, Pair, Relation, columns
from sqlmesh_like.analyze.binding.scope import offset_of
from sqlmesh_like.analyze.expressions import types
from sqlmesh_like.analyze.expressions.clock import clock_calls
from sqlmesh_like.analyze.expressions.types import is_one_key


def filter_rows(relation: Relation, parts: Sequence[exp.Expr]) -> Relation:
    """The relation filtered by conditions; those that read the clock on top, as they change without new data."""
    fixed = [part for part in parts if not clock_calls(part)]
    moving = [part for part in parts if clock_calls(part)]
    for some in (fixed, moving):
        relation = Filter(relation, exp.and_(*some)) if some else relation
    return relation


def make_join(left: Relation, right: Relation, kind: JoinKind, condition: exp.Expr | None) -> Relation:
    """A join whose conjuncts that read the clock are moved into filters wherever that is equivalent.

    A conjunct of an inner join may be applied above it. One that reads a single side may be applied below, unless the
    join preserves that side.
    """
    parts = conjuncts(condition) if condition is not None else []
    moving = [part for part in parts if clock_calls(part)]
    if not moving:
        return _join(left, right, kind, parts)
    lower: tuple[list[exp.Expr], list[exp.Expr]] = ([], [])
    upper: list[exp.Expr] = []
    for part in moving:
        side = _sinks_to(part, left, right, kind)
        if side is not None:
            lower[side].append(part)
        elif kind == "inner" and not isinstance(part, exp.EQ | exp.NullSafeEQ):
            # Without an equality the join would pair every row with every other one.
            upper.append(part)
    placed = {id(part) for part in (*lower[0], *lower[1], *upper)}
    kept = [part for part in parts if id(part) not in placed]
    return filter_rows(_join(filter_rows(left, lower[0]), filter_rows(right, lower[1]), kind, kept), upper)


def _sinks_to(part: exp.Expr, left: Relation, right: Relation, kind: JoinKind) -> int | None:
    """The side, 0 or 1, that a conjunct can filter before the join; None where there is none."""
    may_sink = (kind in ("inner", "right", "semi"), kind in ("inner", "left", "semi", "anti"))
    names = [{column.name.lower() for column in columns(side)} for side in (left, right)]
    return next((n for n in (0, 1) if may_sink[n] and _reads_only(part, names[n])), None)


def with_position(relation: Relation, node: exp.Expr, keyword: str = "") -> Relation:
    """The relation with the source position of its join, which may be below filters that `make_join` added."""
    if isinstance(relation, Filter):
        return replace(relation, child=with_position(relation.child, node, keyword))
    return replace(relation, offset=offset_of(node), keyword=keyword) if isinstance(relation, Join) else relation


def _join(left: Relation, right: Relation, kind: JoinKind, parts: Sequence[exp.Expr]) -> Join:
    """A join with the equalities between its two sides as `pairs`.

    Only equalities of one proven type count: `int = string` also holds for values that differ as keys.
    """
    mine = {column.name.lower(): column.type for column in columns(left)}
    theirs = {column.name.lower(): column.type for column in columns(right)}
    pairs: list[Pair] = []
    for part in parts:
        if not isinstance(part, exp.EQ | exp.NullSafeEQ):
            continue
        for one, other in ((part.this, part.expression), (part.expression, part.this)):
            is_apart = _reads_only(one, set(mine)) and _reads_only(other, set(theirs))
            if is_apart and is_one_key(types.infer(one, mine), types.infer(other, theirs)):
                pairs.append(Pair(one, other, isinstance(part, exp.NullSafeEQ)))
                break
    return Join(left, right, kind, exp.and_(*parts) if parts else None, tuple(pairs))


def _reads_only(expression: exp.Expr, names: set[str]) -> bool:
    column_names = {column.name.lower() for column in expression.find_all(exp.Column)}
    return bool(column_names) and column_names <= names


def conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    """The conjuncts of a condition: the operands of its outermost ANDs."""
    if isinstance(condition, exp.Paren):
        return conjuncts(condition.this)
    if isinstance(condition, exp.And):
        return [*conjuncts(condition.this), *conjuncts(condition.expression)]
    return [condition]


def factored_conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    """The conjuncts of a condition, and those common to all branches of an OR."""
    return [each for part in conjuncts(condition) for each in _factor_or(part)]


def _factor_or(predicate: exp.Expr) -> list[exp.Expr]:
    """A predicate as conjuncts: those common to all branches of an OR are factored out, which also holds for NULL.

    >>> import sqlglot
    >>> [part.sql() for part in _factor_or(sqlglot.parse_one("(a = b AND c > 1) OR (a = b AND c < 0)"))]
    ['a = b', 'c > 1 OR c < 0']
    >>> [part.sql() for part in _factor_or(sqlglot.parse_one("a = b OR (a = b AND c < 0)"))]
    ['a = b']
    """
    if not isinstance(predicate, exp.Or):
        return [predicate]
    branches = [conjuncts(branch) for branch in predicate.flatten()]
    common = [part for part in branches[0] if all(part in branch for branch in branches[1:])]
    if not common:
        return [predicate]
    left = [[part for part in branch if part not in common] for branch in branches]
    return [*common, exp.or_(*(exp.and_(*parts) for parts in left))] if all(left) else common
