"""Signed rows: what leaves with weight -1, what enters with +1. Owns putting two steps together so."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqlmesh_like.delta.keys import weight
from sqlmesh_like.names import WEIGHT


def signed(names: Sequence[exp.Expr], leaving: str | exp.Expr, entering: str | exp.Expr) -> exp.Select:
    """SELECT of the rows of both, with their sign."""
    parts = [
        exp.select(*[n.copy() for n in names], sign(value)).from_(
            exp.table_(source) if isinstance(source, str) else source
        )
        for source, value in ((leaving, -1), (entering, 1))
    ]
    both = exp.union(parts[0], parts[1], distinct=False)
    return exp.select(*[n.copy() for n in names], weight()).from_(both.subquery("s"))


def sign(value: int) -> exp.Expr:
    return exp.alias_(exp.cast(exp.Literal.number(value), "bigint", dialect="spark"), WEIGHT, quoted=True)
