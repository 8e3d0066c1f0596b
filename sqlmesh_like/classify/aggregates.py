"""Each aggregate call: mergeable or needs a rescan. Owns the verdict and its reason; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlmesh_like.analyze.algebra.relation import Call
from sqlmesh_like.analyze.binding.ties import core, is_decided
from sqlmesh_like.analyze.expressions.types import is_exact_key, is_exact_number
from sqlmesh_like.analyze.query_analysis import QueryFacts
from sqlmesh_like.classify.rules import Reason, reason

AggregateClass = Literal["mergeable", "rescan"]


ORDER_FREE = frozenset(
    {"COUNT", "SUM", "AVG", "MIN", "MAX", "LOGICAL_AND", "LOGICAL_OR", "STDDEV", "STDDEV_POP", "STDDEV_SAMP",
     "VARIANCE", "VARIANCE_POP", "QUANTILE", "MEDIAN", "APPROX_DISTINCT", "CORR", "COVAR_POP", "COVAR_SAMP", "SKEWNESS",
     "KURTOSIS", "BITWISE_AND_AGG", "BITWISE_OR_AGG", "BITWISE_XOR_AGG", "REGR_COUNT", "REGR_SLOPE",
     "REGR_INTERCEPT", "REGR_R2", "REGR_SXX", "REGR_SXY", "REGR_SYY", "REGR_AVGX", "REGR_AVGY"}
)  # fmt: skip
"""Aggregates that are functions of the multiset of their group's rows (sqlglot's names)."""


@dataclass(frozen=True)
class AggregateVerdict:
    """One aggregate of a model, as `explain` prints it."""

    sql: str
    verdict: AggregateClass
    reason: Reason


def classify_aggregate(call: Call, facts: QueryFacts) -> AggregateVerdict:
    """Whether the stored state of one call can absorb a change, and why."""
    rule, message = _rule(call)
    verdict_reason = reason(rule, message, facts.position(call.offset))
    return AggregateVerdict(call.sql, "mergeable" if rule == "AGG001" else "rescan", verdict_reason)


def _rule(call: Call) -> tuple[str, str]:
    type_ = call.argument_type
    if not call.distinct and is_decided(core(call.call)):
        return "AGG008", f"{call.sql} depends on the order of rows: the row key decides"
    if call.function not in ORDER_FREE:
        return "AGG006", f"{call.sql} depends on the order of rows"
    if call.distinct:
        return "AGG002", f"{call.sql} needs the values of its whole group"
    if call.function in ("LOGICAL_AND", "LOGICAL_OR") and call.argument is not None:
        return "AGG001", f"{call.sql} keeps a count of values and of those that decide it"
    if call.function not in ("COUNT", "SUM", "AVG", "MIN", "MAX") or (
        call.argument is None and call.function != "COUNT"
    ):
        return "AGG005", f"{call.sql} cannot be merged"
    if call.function == "COUNT":
        return "AGG001", f"{call.sql} adds up"
    if type_ is None:
        return "AGG004", f"the type of the argument of {call.sql} is not proven"
    if call.function in ("SUM", "AVG"):
        if is_exact_number(type_):
            return "AGG001", f"{call.sql} keeps an exact sum and a count"
        return "AGG003", f"{call.sql} adds values of type {type_}"
    if is_exact_key(type_):
        return "AGG001", f"{call.sql} is kept while no retracted value equals it, else its group is recomputed"
    return "AGG005", f"{call.sql} compares values of type {type_}"
