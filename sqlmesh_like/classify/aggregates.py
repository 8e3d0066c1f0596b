"""Each aggregate call: mergeable or needs a rescan. Owns the verdict and its reason; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlmesh_like.analyze.algebra.relation import Call
from sqlmesh_like.analyze.binding.ties import core, is_decided
from sqlmesh_like.analyze.functions.aggregates import aggregate_named
from sqlmesh_like.analyze.query_analysis import QueryFacts
from sqlmesh_like.classify.rules import Reason, reason

AggregateClass = Literal["mergeable", "rescan"]
_MERGED = ("AGG001", "AGG009", "AGG010")


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
    return AggregateVerdict(call.sql, "mergeable" if rule in _MERGED else "rescan", verdict_reason)


def _rule(call: Call) -> tuple[str, str]:
    record = aggregate_named(call.function)
    if not call.distinct and is_decided(core(call.call)):
        if record is not None and record.merge is not None and call.type is not None:
            return record.merge.verdict(call.sql, call.argument_type)
        return "AGG008", f"{call.sql} depends on the order of rows: the row key decides"
    if record is None or record.order != "free":
        return "AGG006", f"{call.sql} depends on the order of rows"
    if call.distinct:
        return "AGG002", f"{call.sql} needs the values of its whole group"
    merge = record.merging(call.argument_type, call.tolerance)
    if merge is None or (call.argument is None and not merge.counts_rows):
        return "AGG005", f"{call.sql} cannot be merged{': ' * bool(record.why)}{record.why}"
    return merge.verdict(call.sql, call.argument_type)
