"""Queries whose rows decide an EXISTS or IN. Owns which plain SELECT has the same rows, or some where they have."""

from __future__ import annotations

from typing import TypeGuard

from sqlglot import exp

from sqlmesh_like.analyze.binding.joining import conjuncts


def select_of(query: exp.Expr) -> exp.Expr:
    """The query without its parentheses."""
    return query.this if isinstance(query, exp.Subquery) else query


_PLAIN = {"expressions", "from_", "from", "where", "joins", "kind", "distinct", "order", "laterals"}


def is_plain(query: exp.Expr) -> TypeGuard[exp.Select]:
    """Whether a query is a SELECT whose rows are those of its FROM and WHERE."""
    return isinstance(query, exp.Select) and all(not value or part in _PLAIN for part, value in query.args.items())


def has_plain_keys(group: exp.Group | None) -> bool:
    """Whether a GROUP BY is by expressions alone, without sets and ALL."""
    if group is None or not group.expressions:
        return False
    return not any(value for part, value in group.args.items() if part != "expressions")


def plain_rows(query: exp.Expr) -> exp.Select | None:
    """A SELECT of FROM and WHERE that has rows where this query has some; None where there is none.

    GROUP BY of plain keys has a group where there is a row.
    """
    query, skipped = without_order(query)
    query = select_of(query)
    if not isinstance(query, exp.Select) or skipped:
        return None
    if has_plain_keys(query.args.get("group")):
        query = query.copy()
        query.set("group", None)
        query.set("expressions", [exp.Literal.number(1)])
    return query if is_plain(query) else None


def without_order(query: exp.Expr) -> tuple[exp.Expr, int]:
    """The query without ORDER BY, OFFSET and a LIMIT other than 0, and how many of its rows it may have without one.

    >>> import sqlglot
    >>> texts = ("select a from t order by a limit 2", "select a from t limit 0", "select a from t limit 2 offset 1")
    >>> [(left.sql(), skipped) for left, skipped in map(without_order, map(sqlglot.parse_one, texts))]
    [('SELECT a FROM t', 0), ('SELECT a FROM t LIMIT 0', 0), ('SELECT a FROM t', 1)]
    """
    select = select_of(query)
    limit, offset = select.args.get("limit"), select.args.get("offset")
    counts = [clause.expression if clause is not None else None for clause in (limit, offset)]
    numbers = [int(c.name) if isinstance(c, exp.Literal) and c.name.isdigit() else None for c in counts]
    if (limit is not None and not numbers[0]) or (offset is not None and numbers[1] is None):
        return query, 0
    if not (limit or offset or select.args.get("order")):
        return query, 0
    copy = query.copy()
    for part in ("order", "limit", "offset"):
        select_of(copy).set(part, None)
    return copy, numbers[1] or 0


def move_on_subqueries_to_where(select: exp.Select) -> exp.Select:
    """The SELECT with what the last join's ON asks of queries in WHERE, which is the same for an inner join.

    >>> import sqlglot
    >>> asking = "select 1 from a join b on a.x = b.x and b.y in (select z from c)"
    >>> move_on_subqueries_to_where(sqlglot.parse_one(asking)).sql()
    'SELECT 1 FROM a JOIN b ON a.x = b.x WHERE b.y IN (SELECT z FROM c)'
    """
    joins = select.args.get("joins") or []
    on = joins[-1].args.get("on") if joins else None
    if on is None or on.find(exp.Query) is None or select.args.get("laterals"):
        return select
    if joins[-1].side or joins[-1].kind not in ("", "INNER") or joins[-1].method:
        return select
    copy = select.copy()
    last, where = copy.args["joins"][-1], copy.args.get("where")
    parts = conjuncts(last.args["on"])
    plain = [part for part in parts if part.find(exp.Query) is None]
    asking = [part for part in parts if part.find(exp.Query) is not None]
    last.set("on", exp.and_(*plain) if plain else exp.true())
    copy.set("where", exp.Where(this=exp.and_(*asking, *([where.this] if where else []))))
    return copy
