"""Rows that cross a boundary set by the clock. Owns their change, and binding a query to the clocks of two runs.

A filter that reads the clock is a different function in each run. With F_then and F_now, its change over a child that
changes by Δ is F_now of the rows that enter, F_then of the rows that leave, and the unchanged rows that only one of
the two passes.
"""

from __future__ import annotations

from datetime import datetime
from typing import cast

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Filter
from sqlmesh_like.analyze.expressions.clock import as_then, clock_calls, frozen
from sqlmesh_like.delta.keys import key, weight
from sqlmesh_like.delta.rows import names, subquery, union_all
from sqlmesh_like.names import WEIGHT


def clock_filter_change(source: Filter, change: str | None, stay: exp.Select) -> exp.Select:
    """Signed rows of a filter that reads the clock, from its child's change (a step) and its child's unchanged rows.

    A row that entered passes by the filter of this run, one that left by that of the previous run.
    """
    shown = [*names(source), key(), weight()]
    time_filter = crossing(names(source), subquery(stay), source.condition)
    if change is None:
        return time_filter
    entered = exp.and_(exp.GT(this=weight(), expression=_zero()), exp.Paren(this=source.condition.copy()))
    left = exp.and_(exp.LT(this=weight(), expression=_zero()), exp.Paren(this=as_then(source.condition)))
    kept = exp.select(*shown).from_(change).where(exp.or_(entered, left))
    both = exp.alias_(subquery(union_all([kept, time_filter])), "_sml_c", table=True)
    return exp.select(*[item.copy() for item in shown]).from_(both)


def crossing(shown: list[exp.Expr], rows: exp.Expr, condition: exp.Expr) -> exp.Select:
    """Signed rows of a FROM item that enter or leave a filter only because the clock moved."""
    passes, passed = _is_true(condition), _is_true(as_then(condition))
    sign = exp.Case().when(passes.copy(), exp.Literal.number(1)).else_(exp.Literal.number(-1))
    weight_ = exp.alias_(exp.cast(sign, "bigint", dialect="spark"), WEIGHT, quoted=True)
    # `either` follows from `differs`, but only it lets Spark skip files.
    either = exp.or_(condition.copy(), as_then(condition))
    differs = exp.NEQ(this=passes, expression=passed)
    source = exp.alias_(rows, "_sml_s", table=True)
    return exp.select(*shown, key(), weight_).from_(source).where(differs, either)


def at_clocks(query: exp.Query, now: datetime, then: datetime | None) -> exp.Query:
    """A copy of the query with the times of this run and the previous one as literals."""
    return cast(exp.Query, frozen(query, now, then)) if clock_calls(query) else query.copy()


def _is_true(condition: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=exp.Paren(this=condition.copy()), expressions=[exp.false()])


def _zero() -> exp.Expr:
    return exp.Literal.number(0)
