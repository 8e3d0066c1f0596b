"""EXISTS and IN of a query as values: below OR and NOT, in CASE, and NOT IN. Owns the joins that yield them.

The distinct keys of the query are left-joined: a row has a match if there is one. IN is NULL where there is no match,
if the query has a NULL, or if the value itself is NULL, unless the query has no rows. Below NOT that matters: two facts
about the query, whether it is empty and whether it has a NULL, are joined as one row, so that only rows of keys that
change are computed while these facts stay. Source: Spark 3.5 `RewritePredicateSubquery`, whose ExistenceJoin and
null-aware anti join let the same rows through. Shown in a SELECT list, IN and NOT IN are false in Spark where SQL has
NULL, as in a condition; `in_values` has where that is so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import (
    Distinct,
    Join,
    JoinKind,
    Named,
    Projection,
    Relation,
    UnionAll,
    columns,
)
from sqlmesh_like.analyze.binding.expression_copies import operand
from sqlmesh_like.analyze.binding.grouping import read_aggregate
from sqlmesh_like.analyze.binding.joining import make_join, with_position
from sqlmesh_like.analyze.binding.scope import Scope, ScopeSource, Unsupported, offset_of, quoted_alias
from sqlmesh_like.analyze.binding.subqueries.in_values import makes_number
from sqlmesh_like.analyze.expressions.clock import clock_calls
from sqlmesh_like.analyze.expressions.types import infer


@dataclass(frozen=True)
class MatchedKeys:
    """The rows of a query that an outer row can match: they match if `inner` equal `outer`, pair by pair."""

    relation: Relation
    inner: tuple[exp.Expr, ...]
    outer: tuple[exp.Expr, ...]
    is_null_safe: tuple[bool, ...]


def with_match(scope: Scope, keys: MatchedKeys, name: str, node: exp.Expr, keyword: str) -> tuple[Scope, exp.Expr]:
    """The scope joined with the keys, and whether a row has a match. Raises Unsupported.

    `name` prefixes the names of added columns and must be new in the scope; `node` and `keyword`: the construct.
    """
    types = {column.name.lower(): column.type for column in columns(keys.relation)}
    names = [f"{name}.k{number}" for number in range(len(keys.inner))]
    items = [Named(key, value, infer(value, types)) for key, value in zip(names, keys.inner, strict=True)]
    distinct = Distinct(Projection(keys.relation, tuple(items)), offset_of(node))
    flag = f"{name}.match"
    kept = [Named(item.name, _column(item.name), item.type) for item in items]
    marked = Projection(distinct, (*kept, Named(flag, exp.true(), "boolean")))
    pairs = zip(keys.outer, names, keys.is_null_safe, strict=True)
    equal = [
        (exp.NullSafeEQ if is_safe else exp.EQ)(this=operand(one), expression=_column(key))
        for one, key, is_safe in pairs
    ]
    joined = make_join(scope.relation, marked, "left", exp.and_(*equal)) if not any(map(clock_calls, equal)) else None
    if not isinstance(joined, Join) or len(joined.pairs) != len(equal):
        raise Unsupported("QRY005", "EXISTS or IN as a value, by other than values of one exact type", node, keyword)
    wider = _with_columns(scope, with_position(joined, node, keyword), name, [flag])
    return wider, exp.Not(this=exp.Is(this=exp.column(flag, table=name, quoted=True), expression=exp.Null()))


def with_match_by_halves(
    scope: Scope, rows: Relation, conditions: Sequence[exp.Expr], name: str, node: exp.Expr, keyword: str
) -> tuple[Scope, exp.Expr]:
    """The scope as its rows that match some of `rows` and those that match none, and which of them a row is.

    Every row is in one half, whatever the conditions are: the second is where they are true of no row.
    """
    flag = f"{name}.match"
    kept = [Named(column.name, _column(column.name), column.type) for column in columns(scope.relation)]
    halves: list[Projection] = []
    kinds: tuple[tuple[JoinKind, exp.Expr], ...] = (("semi", exp.true()), ("anti", exp.false()))
    for kind, value in kinds:
        half = with_position(make_join(scope.relation, rows, kind, exp.and_(*conditions)), node, keyword)
        halves.append(Projection(half, (*kept, Named(flag, value, "boolean"))))
    both = UnionAll(tuple(halves), columns(halves[0]))
    return _with_columns(scope, both, name, [flag]), exp.column(flag, table=name, quoted=True)


def with_existence(
    scope: Scope, relation: Relation, name: str, node: exp.Expr, more_than: int = 0
) -> tuple[Scope, exp.Expr]:
    """The scope joined with whether a query has rows, which is the same for all rows of the scope."""
    rows = exp.Count(this=exp.Star())
    rows.meta["start"] = offset_of(node)
    fact = quoted_alias(exp.GT(this=rows, expression=exp.Literal.number(more_than)), f"{name}.some")
    about = read_aggregate(exp.Select(), Scope(relation, (ScopeSource("", ()),)), [fact])
    joined = make_join(scope.relation, about, "inner", None)
    scope = _with_columns(scope, with_position(joined, node, "EXISTS"), name, [fact.alias])
    return scope, exp.column(fact.alias, table=name, quoted=True)


def with_membership(
    scope: Scope, keys: MatchedKeys, name: str, node: exp.In, *, is_negated: bool
) -> tuple[Scope, exp.Expr]:
    """The scope joined with what IN depends on, and its value in a condition, where NULL counts as false.

    `is_negated`: it is below NOT, so that NULL counts as true here.
    """
    scope, is_match = with_match(scope, keys, name, node, "")
    if not is_negated:
        return scope, is_match
    (only,) = columns(keys.relation)
    inner = Scope(keys.relation, (ScopeSource("", ((only.name, only.name),)),))
    rows, known = exp.Count(this=exp.Star()), exp.Count(this=keys.inner[0].copy())
    for call in (rows, known):
        call.meta["start"] = offset_of(node)
    facts = [
        quoted_alias(exp.EQ(this=rows, expression=exp.Literal.number(0)), f"{name}.empty"),
        quoted_alias(exp.EQ(this=rows.copy(), expression=known), f"{name}.known"),
    ]
    about = read_aggregate(exp.Select(), inner, facts)
    joined = make_join(scope.relation, about, "inner", None)
    scope = _with_columns(scope, with_position(joined, node), f"{name}.facts", [fact.alias for fact in facts])
    is_empty, is_known = (exp.column(fact.alias, table=f"{name}.facts", quoted=True) for fact in facts)
    is_null = exp.Is(this=operand(node.this), expression=exp.Null())
    may_match = exp.and_(exp.Not(this=is_empty), exp.or_(is_null, exp.Not(this=is_known)))
    return scope, exp.or_(is_match, may_match)


def is_negated(node: exp.Expr, root: exp.Expr | None) -> bool | None:
    """Whether a part of a condition is below an odd number of NOT; None if its value is more than a condition.

    `root` is a condition or value (if there is one), of which NULL counts as false, as of a branch of CASE. Between it
    and the part may only be AND, OR and NOT: Spark moves NOT down to the part (`BooleanSimplification`), and there NULL
    counts. A value may be a number as a whole.
    """
    if root is not None and makes_number(root):
        root = root.this
    negations = 0
    while node is not root:
        above = node.parent
        if isinstance(above, exp.If) and above.this is node and not (above.parent and above.parent.this):
            break
        if not isinstance(above, exp.And | exp.Or | exp.Paren | exp.Not):
            return None
        negations += isinstance(above, exp.Not)
        node = above
    return negations % 2 == 1


def _with_columns(scope: Scope, relation: Relation, alias: str, names: Sequence[str]) -> Scope:
    source = ScopeSource(alias, tuple((name, name) for name in names))
    return replace(scope, relation=relation, sources=(*scope.sources, source))


def _column(name: str) -> exp.Expr:
    return exp.column(name, quoted=True)
