"""Rows that cross a boundary set by the clock. Owns their change, and binding a query to the clocks of two runs.

A filter that reads the clock is another function in each run. With F_then and F_now, its change over a child that
changes by Δ is F_now(Δ) and, of the rows that were there before, those that only one of the two lets through.
"""

from __future__ import annotations

from datetime import datetime

from sqlglot import exp

from sqlmesh_like.analyze.clock import as_then, clock_calls, frozen
from sqlmesh_like.delta.keys import key
from sqlmesh_like.names import WEIGHT


def crossing(names: list[exp.Expr], previous: exp.Expr, condition: exp.Expr) -> exp.Select:
    """Signed rows of a FROM item (the child as it was) that enter or leave the filter by the clock alone."""
    passes, passed = _is_true(condition), _is_true(as_then(condition))
    sign = exp.Case().when(passes.copy(), exp.Literal.number(1)).else_(exp.Literal.number(-1))
    weight = exp.alias_(exp.cast(sign, "bigint", dialect="spark"), WEIGHT, quoted=True)
    # The second part follows from the first; it is one that files can be skipped by.
    either = exp.or_(condition.copy(), as_then(condition))
    differs = exp.NEQ(this=passes, expression=passed)
    return exp.select(*names, key(), weight).from_(previous).where(differs, either)


def at_clocks(query: exp.Expr, now: datetime, then: datetime | None) -> exp.Expr:
    """The query (a copy) with the clocks of this run and the one before; rows that cannot cross are not looked for."""
    if not clock_calls(query):
        return query.copy()
    bound = frozen(query, now, then)
    for union in list(bound.find_all(exp.Union)):
        if _is_never(union.expression):
            union.replace(union.this)
    return bound


def _is_true(condition: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=exp.Paren(this=condition.copy()), expressions=[exp.false()])


def _is_never(query: exp.Expr) -> bool:
    """Whether a SELECT asks for rows of which one value differs from itself."""
    where = query.args.get("where")
    differences = where.find_all(exp.NEQ) if where is not None else ()
    return any(
        isinstance(found.parent, exp.And | exp.Where) and repr(found.this) == repr(found.expression)
        for found in differences
    )
