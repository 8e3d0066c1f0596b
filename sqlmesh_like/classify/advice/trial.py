"""Whether a rewriting helps: it is applied to the query, and the plan that follows is compared with the one at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice

from sqlmesh_like.analyze.query_analysis import QueryFacts
from sqlmesh_like.classify.advice.rewritings import REWRITINGS, Rewrite
from sqlmesh_like.classify.rules import Reason
from sqlmesh_like.classify.strategy import Classification, classify
from sqlmesh_like.errors import SqlError
from sqlmesh_like.render.rendered import RenderedModel

Analyze = Callable[[RenderedModel], QueryFacts]
"""Analyzes another form of a model over the same inputs. Raises SqlError."""
_CHEAPEST_FIRST = ("row_based", "aggregate_merge", "partition_rescan", "group_recompute", "full_refresh")
MOST_TRIALS = 12
"""Forms of one kind that are tried of a query: each is analyzed anew."""


def with_tried_advice(facts: QueryFacts, given: Classification, analyze: Analyze) -> Classification:
    """The classification, whose reasons say how to write the query otherwise where that has a cheaper plan.

    Advice that holds for several reasons is given at the first of them.
    """
    tried: dict[Rewrite, str] = {}
    advised: dict[Reason, Reason] = {}
    for one in given.reasons:
        for rewrite in REWRITINGS.get(one.rule, ()):
            is_new = rewrite not in tried
            if is_new:
                tried[rewrite] = _advice(rewrite, one.rule, facts, given, analyze)
            if tried[rewrite]:
                advised[one] = replace(one, hint=tried[rewrite]) if is_new else one
                break
    aggregates = (replace(each, reason=advised.get(each.reason, each.reason)) for each in given.aggregates)
    reasons = (advised.get(one, one) for one in given.reasons)
    return replace(given, aggregates=tuple(aggregates), reasons=tuple(reasons))


def with_useful_advice(reason: Reason, given: Classification) -> Reason:
    """A reason of one run, without advice to change a setting where the SQL itself allows no plan but a rebuild.

    >>> rebuilt = Classification("full_refresh", (), ())
    >>> with_useful_advice(Reason("CFG002", "rebuilt each run", hint="materialized: incremental"), rebuilt).hint
    ''
    """
    is_vain = given.strategy == "full_refresh" and reason.rule in ("CFG002", "INP002")
    return replace(reason, hint="") if is_vain else reason


def _advice(rewrite: Rewrite, rule: str, facts: QueryFacts, given: Classification, analyze: Analyze) -> str:
    """The advice of the first form of the query that has a cheaper plan; empty if none has."""
    for candidate in islice(rewrite(facts), MOST_TRIALS):
        is_same_text = candidate.model.sql == facts.model.sql
        try:
            new = classify(replace(facts, model=candidate.model) if is_same_text else analyze(candidate.model))
        except SqlError:
            continue
        if _is_cheaper(rule, new, given):
            return f"{candidate.advice}: {new.strategy}" if new.strategy != given.strategy else candidate.advice
    return ""


def _is_cheaper(rule: str, new: Classification, given: Classification) -> bool:
    ranks = [_CHEAPEST_FIRST.index(each.strategy) for each in (new, given) if each.strategy in _CHEAPEST_FIRST]
    if len(ranks) != 2 or new.strategy == "full_refresh":
        return False
    # A join that has got a key is followed by that key: the strategy has the same name, but reads less.
    is_keyed = rule == "JOI003" and _count(rule, new) < _count(rule, given)
    return ranks[0] < ranks[1] or (ranks[0] == ranks[1] and is_keyed)


def _count(rule: str, classification: Classification) -> int:
    return sum(one.rule == rule for one in classification.reasons)
