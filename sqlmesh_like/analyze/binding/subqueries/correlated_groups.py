"""Correlated queries with GROUP BY as joins. Owns grouping them by what correlates them as well.

For one outer row the query has the groups of the inner rows whose values equal its own. These are the groups by the
inner side of each equality and by GROUP BY, of which the outer row then meets those that are equal to it: no group is
there without a row, so nothing is lost where no row matches. Both sides must have one exact type, else inner values
that equal one outer value could be several groups. Source: Galindo-Legaria, Joshi, "Orthogonal optimization of
subqueries and aggregation", 2001; Spark 3.5 `PullupCorrelatedPredicates`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Relation
from sqlmesh_like.analyze.binding.grouping import aggregate_calls, canonical, read_aggregate
from sqlmesh_like.analyze.binding.joining import factored_conjuncts, filter_rows
from sqlmesh_like.analyze.binding.scope import Scope, UnknownName, quoted_alias, require_pure
from sqlmesh_like.analyze.binding.subqueries.correlation import prefix_outputs, resolve_inside_out
from sqlmesh_like.analyze.binding.subqueries.row_queries import has_plain_keys
from sqlmesh_like.analyze.expressions.types import infer, is_one_key
from sqlmesh_like.analyze.functions.aggregates import aggregate_of

_PARTS = {"expressions", "from_", "from", "where", "joins", "kind", "group", "having", "order"}


@dataclass(frozen=True)
class CorrelatedGroups:
    """The groups of a correlated query, the conditions by which an outer row meets them, and the column of its item.

    `is_grouped_alike`: GROUP BY is by nothing but what correlates the query, so that an outer row meets one group.
    """

    relation: Relation
    across: tuple[exp.Expr, ...]
    item: str
    is_grouped_alike: bool


def is_grouped(query: exp.Expr) -> TypeGuard[exp.Select]:
    """Whether a query is a SELECT of groups that `correlated_groups` may read."""
    if not isinstance(query, exp.Select) or any(v for part, v in query.args.items() if v and part not in _PARTS):
        return False
    return has_plain_keys(query.args.get("group"))


def correlated_groups(inner: Scope, outer: Scope, query: exp.Select, name: str) -> CorrelatedGroups | None:
    """The groups of a query over `inner`, for which `is_grouped` or a lone aggregate; None where they are not known.

    `name` prefixes the names of columns and must be new in the outer scope. Raises Unsupported and UnknownName.
    """
    inner = prefix_outputs(inner, name)
    local: list[exp.Expr] = []
    pairs: list[tuple[exp.Expr, exp.Expr, type[exp.Binary]]] = []
    for part in factored_conjuncts(query.args["where"].this) if query.args.get("where") else []:
        resolved = resolve_inside_out(part, inner, outer)
        require_pure(resolved)
        if outer.outputs_of(resolved) <= set(inner.known):
            local.append(resolved)
        elif (pair := _pair(part, inner, outer)) is not None:
            pairs.append(pair)
        else:
            return None
    keys = [quoted_alias(own, f"{name}.k{number}") for number, (own, _, _) in enumerate(pairs)]
    group = [key.this.copy() for key in keys]
    written = query.args["group"].expressions if query.args.get("group") else []
    alike = {canonical(inner.resolve(key)) for key in group}
    grouped = exp.Select(group=exp.Group(expressions=[*group, *(one.copy() for one in written)]))
    if query.args.get("having"):
        grouped.set("having", query.args["having"].copy())
    item = quoted_alias(query.expressions[0].unalias(), f"{name}.value")
    scope = Scope(filter_rows(inner.relation, local), inner.sources, inner.merged)
    try:
        relation = read_aggregate(grouped, scope, [*keys, item])
        is_alike = all(canonical(inner.resolve(one)) in alike for one in written)
    except UnknownName:  # a name of the outer query, or the position of an item
        return None
    across = [
        kind(this=theirs, expression=exp.column(key.alias, quoted=True))
        for key, (_, theirs, kind) in zip(keys, pairs, strict=True)
    ]
    return CorrelatedGroups(relation, tuple(across), item.alias, is_alike)


def is_null_over_no_rows(query: exp.Expr) -> TypeGuard[exp.Select]:
    """Whether a query is one aggregate without GROUP BY that is NULL over no rows: NULL is equal to nothing."""
    if not isinstance(query, exp.Select) or any(v for part, v in query.args.items() if v and part not in _PARTS):
        return False
    if query.args.get("group") or query.args.get("having") or len(query.expressions) != 1:
        return False
    item = query.expressions[0].unalias()
    record = aggregate_of(item) if aggregate_calls(item) == [item] else None
    return record is not None and record.of_nothing == "null"


def _pair(part: exp.Expr, inner: Scope, outer: Scope) -> tuple[exp.Expr, exp.Expr, type[exp.Binary]] | None:
    """The inner side of an equality as written, its outer side resolved, and the operator."""
    if not isinstance(part, exp.EQ | exp.NullSafeEQ):
        return None
    for mine, theirs in ((part.this, part.expression), (part.expression, part.this)):
        own, other = (resolve_inside_out(side, inner, outer) for side in (mine, theirs))
        names = outer.outputs_of(own)
        is_apart = bool(names) and names <= set(inner.known) and not outer.outputs_of(other) & set(inner.known)
        if is_apart and is_one_key(infer(own, inner.known), infer(other, outer.known)):
            return mine, other, type(part)
    return None
