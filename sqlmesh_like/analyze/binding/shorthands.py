"""Forms of SELECT that stand for longer ones: named windows, GROUP BY ALL, LIKE ANY and ALL. Owns writing them out."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqlmesh_like.analyze.binding.expression_copies import operand
from sqlmesh_like.analyze.binding.grouping import aggregate_calls
from sqlmesh_like.analyze.binding.scope import UnknownName, Unsupported


def expand_shorthands(select: exp.Select) -> exp.Select:
    """The SELECT with its named windows and its LIKE ANY and ALL written out; itself if it has none.

    Raises UnknownName and Unsupported.

    >>> import sqlglot
    >>> query = "select sum(a) over w as s from t where b like any ('x', 'y') window w as (partition by c)"
    >>> expand_shorthands(sqlglot.parse_one(query, dialect="spark")).sql("spark")
    "SELECT SUM(a) OVER (PARTITION BY c) AS s FROM t WHERE (b LIKE 'x' OR b LIKE 'y')"
    """
    named = select.args.get("windows")
    if not named and select.find(exp.Any, exp.All) is None:
        return select
    copy = select.copy()
    definitions = {window.name.lower(): window for window in copy.args.pop("windows", None) or []}
    for window in list(copy.find_all(exp.Window)) if definitions else []:
        if window.args.get("alias") and window.parent_select is copy:
            _define(window, definitions)
    for like in list(copy.find_all(exp.Like, exp.ILike)):
        if isinstance(like.expression, exp.Any | exp.All):
            like.replace(_likes(like))
    return copy


def with_plain_values(select: exp.Select) -> exp.Select:
    """The SELECT with the value of a subquery without FROM in its place; itself if it has none.

    All names of such a subquery are those of the query around it, and it has one row, or none: then it is NULL.

    >>> import sqlglot
    >>> query = "select (select a where a > 1) as x from t where b in (select 9) or c = (select d)"
    >>> with_plain_values(sqlglot.parse_one(query, dialect="spark")).sql("spark")
    'SELECT (CASE WHEN a > 1 THEN a END) AS x FROM t WHERE (b = 9) OR c = (d)'
    """
    if not any(map(_is_plain_value, select.find_all(exp.Subquery))):
        return select
    copy = select.copy()
    for query in list(filter(_is_plain_value, copy.find_all(exp.Subquery))):
        value, where = query.this.expressions[0].unalias(), query.this.args.get("where")
        if isinstance(query.parent, exp.In):
            # Compared as by `=`, which types of both sides make one as those of IN of a query, unlike IN of a list.
            query.parent.replace(exp.Paren(this=exp.EQ(this=operand(query.parent.this), expression=operand(value))))
        else:
            kept = exp.Case().when(where.this.copy(), value.copy()) if where else value.copy()
            query.replace(exp.Paren(this=kept))
    return copy


def _is_plain_value(query: exp.Subquery) -> bool:
    """Whether a subquery is one value of the query around it, not an item of FROM."""
    select = query.this
    if not isinstance(select, exp.Select) or query.alias or len(select.expressions) != 1 or select.is_star:
        return False
    if any(value for part, value in select.args.items() if value and part not in ("expressions", "where", "kind")):
        return False
    if select.find(exp.AggFunc, exp.Window, exp.UDTF, exp.Subquery, exp.Exists) or select.args.get("kind"):
        return False
    above = query.parent
    if isinstance(above, exp.In):
        return not select.args.get("where") and not isinstance(above.this, exp.Tuple) and _is_test(above)
    holders = exp.Condition | exp.Alias | exp.Ordered | exp.Where | exp.Having
    return isinstance(above, holders) and not isinstance(above, exp.Subquery | exp.Exists | exp.Any | exp.All)


def _is_test(node: exp.Expr) -> bool:
    """Whether a part decides about rows, so that its NULL is false: IN as a value is never NULL in Spark."""
    above = node.parent
    while isinstance(above, exp.And | exp.Or | exp.Not | exp.Paren):
        above = above.parent
    return isinstance(above, exp.Where | exp.Having | exp.Join)


def expand_group_by_all(select: exp.Select, items: Sequence[exp.Alias]) -> exp.Select:
    """The SELECT with GROUP BY ALL as the items without aggregates; itself if it has none. Raises Unsupported.

    Source: Spark 3.5 `ResolveReferencesInAggregate`.
    """
    group = select.args.get("group")
    if group is None or not group.args.get("all"):
        return select
    keys = [item.this for item in items if not aggregate_calls(item.this)]
    plain = [key for key in keys if not isinstance(key, exp.Literal)]
    if any(key.find(exp.Window, exp.Query) for key in plain) or (keys and not plain):
        raise Unsupported("QRY010", "GROUP BY ALL of windows, subqueries or nothing but constants", group)
    copy = select.copy()
    copy.set("group", exp.Group(expressions=[key.copy() for key in plain]) if plain else None)
    return copy


def _define(window: exp.Window, definitions: dict[str, exp.Expr]) -> None:
    """Give a window the definition of its name."""
    alias = window.args["alias"]
    definition = definitions.get(alias.name.lower())
    if definition is None:
        raise UnknownName(f"unknown window {alias.name!r}", window, f"known: {', '.join(definitions)}")
    if definition.args.get("alias") or any(window.args.get(part) for part in ("partition_by", "order", "spec")):
        raise Unsupported("QRY006", "a window that extends a named one", window)
    window.set("alias", None)
    for part in ("partition_by", "order", "spec"):
        value = definition.args.get(part)
        window.set(part, [one.copy() for one in value] if isinstance(value, list) else value and value.copy())


def _likes(like: exp.Expr) -> exp.Expr:
    """LIKE ANY as OR, LIKE ALL as AND, which have the same value for NULL."""
    patterns = like.expression.this
    listed = patterns.expressions if isinstance(patterns, exp.Tuple) else [patterns.unnest()]
    parts: list[exp.Expr] = [type(like)(this=like.this.copy(), expression=pattern.copy()) for pattern in listed]
    if like.args.get("negate"):
        parts = [exp.Not(this=part) for part in parts]
    joined = exp.or_(*parts) if isinstance(like.expression, exp.Any) else exp.and_(*parts)
    return exp.Paren(this=joined)
