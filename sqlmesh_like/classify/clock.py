"""How the clock of a run affects a plan. Owns its rules: rows that cross a boundary, and values whose change forces a
rebuild."""

from __future__ import annotations

import re

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Filter, Relation, expressions, walk
from sqlmesh_like.analyze.binding.scope import offset_of
from sqlmesh_like.analyze.expressions.clock import clock_calls
from sqlmesh_like.analyze.query_analysis import QueryFacts
from sqlmesh_like.classify.rules import Reason, reason
from sqlmesh_like.dialects import SPARK


def time_filter_calls(relation: Relation) -> list[exp.Expr]:
    """Clock calls in filters: when their value changes, rows enter and leave."""
    return [call for node in walk(relation) if isinstance(node, Filter) for call in clock_calls(node.condition)]


def time_value_calls(relation: Relation) -> list[exp.Expr]:
    """Clock calls anywhere else: when the value of one changes, any row may change."""
    return [
        call
        for node in walk(relation)
        if not isinstance(node, Filter)
        for expression in expressions(node)
        for call in clock_calls(expression)
    ]


def clock_reasons(relation: Relation, facts: QueryFacts) -> tuple[Reason, ...]:
    """A reason for each clock call of a derived plan."""
    time_filters = [
        reason("CLK002", f"rows that cross {_text(call)} since the last run enter or leave", _place(call, facts))
        for call in time_filter_calls(relation)
    ]
    return tuple(dict.fromkeys([*time_filters, *time_value_reasons(relation, facts)]))


def time_value_reasons(relation: Relation, facts: QueryFacts) -> tuple[Reason, ...]:
    """A reason for each clock call whose changed value forces a rebuild."""
    return tuple(
        dict.fromkeys(
            reason("CLK001", f"{_text(call)} is part of a value: rows are kept while it stays", _place(call, facts))
            for call in time_value_calls(relation)
        )
    )


def _text(call: exp.Expr) -> str:
    return "UNIX_TIMESTAMP()" if isinstance(call, exp.StrToUnix) else call.sql(SPARK)


def _place(call: exp.Expr, facts: QueryFacts) -> tuple[int | None, int | None]:
    """Line and column of a call. The parser records none without parentheses: take the nearest one in the text."""
    offset = offset_of(call)
    if offset is not None:
        return facts.position(offset)
    words = _text(call).removesuffix("()")
    starts = [match.start() for match in re.finditer(rf"\b{words}\b", facts.model.sql, re.IGNORECASE)]
    around: exp.Expr | None = call
    while around is not None and offset_of(around) is None:
        around = around.parent
    near = offset_of(around) if around is not None else None
    return facts.position(min(starts, key=lambda start: abs(start - (near or 0)), default=near))
