"""The fingerprint of a model: what decides the meaning of stored rows. A table of another query cannot follow changes.

A table is of a query where both have one text, or one meaning (`analyze.algebra.canonical_form`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from sqlmesh_like.analyze.algebra.relation import Aggregate, Join, Relation, Scan, columns, used_columns, walk
from sqlmesh_like.analyze.binding.subqueries.in_values import asks_both_ways
from sqlmesh_like.analyze.expressions.types import averages_doubles
from sqlmesh_like.classify.group_tops import group_top
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.delta.program import STATE_VERSION
from sqlmesh_like.delta.whole_window import keeps_rows_below
from sqlmesh_like.dialects import FINGERPRINT
from sqlmesh_like.plan.history import TableRecord

_FIXED_SETTINGS = {"timezone": "UTC", "ansi": False}


def fingerprint(compiled: CompiledModel) -> str:
    """Hash of all that decides what stored rows mean: query, used input columns and types, settings, state layout."""
    if compiled.known is not None:
        return compiled.known
    text = compiled.facts.tree.sql(FINGERPRINT, comments=False, normalize=True)
    return _digest({"query": text, "columns": _columns(compiled.facts.relation), **_settings(compiled)})


def meaning(compiled: CompiledModel) -> str:
    """Hash of the same, with what the query means instead of how it is written; empty where that is not proven."""
    state = compiled.table.state
    relation = compiled.facts.pruned
    if relation is None or compiled.table.build is None or keeps_rows_below(state):
        return ""
    form = compiled.facts.forms.form
    if form is None:
        return ""
    types = [column.type for column in columns(relation)]
    hidden = [(column.name, column.type) for column in state]
    parts = {"form": form, "columns": _columns(relation), "types": types, "hidden": hidden}
    return _digest({**parts, **_settings(compiled)})


def is_of_query(record: TableRecord, compiled: CompiledModel, print_: str | None = None) -> bool:
    """Whether the rows that a commit left are those of a query: of one text, or of one meaning."""
    if record.has_fingerprint(print_ or fingerprint(compiled)):
        return True
    return bool(record.meaning) and record.meaning == meaning(compiled)


def _settings(compiled: CompiledModel) -> dict[str, object]:
    model = compiled.model
    parts: dict[str, object] = {
        "strategy": compiled.classification.strategy,
        "partition_by": model.config.partition_by,
        "unique_key": model.config.unique_key,
        "table_type": model.config.table_type,
        "state": STATE_VERSION,
        "settings": _FIXED_SETTINGS,
    }
    if compiled.facts.relation is not None and _joins_several(compiled.facts.relation):
        parts["joins"] = "flat"
    if model.session:
        parts["session"] = dict(model.session)
    if compiled.facts.relation is not None and _averages_decimals(compiled.facts.relation):
        parts["averages"] = "doubles"
    if asks_both_ways(compiled.facts.tree):
        parts["not_in"] = "apart"
    relation = compiled.facts.pruned
    if parts["strategy"] == "group_recompute" and relation is not None and group_top(relation):
        parts["tops"] = "kept"
    if any(verdict.reason.rule == "AGG010" for verdict in compiled.classification.aggregates):
        parts["floating"] = model.config.floating
    if model.config.frozen_before is not None and compiled.table.keyed_by:
        parts["keyed_by"] = compiled.table.keyed_by
    return parts


def _digest(parts: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def _joins_several(relation: Relation) -> bool:
    """Whether row keys combine those of three tables or more: such keys were once nested in pairs and now are flat."""
    return sum(isinstance(node, Join) and node.kind == "inner" for node in walk(relation)) > 1


def _averages_decimals(relation: Relation) -> bool:
    """Whether there is an AVG of decimals that Spark computes from doubles; its last digit was once another one."""
    calls = (call for node in walk(relation) if isinstance(node, Aggregate) for call in node.calls)
    return any(call.function == "AVG" and averages_doubles(call.argument_type) for call in calls)


def _columns(relation: Relation | None) -> object:
    """Input columns that the result depends on, with types, and the output columns, which `select *` may widen."""
    if relation is None:
        return None
    used = used_columns(relation)
    read = sorted(
        (node.input_id, column.name, column.type or "")
        for node in walk(relation)
        if isinstance(node, Scan)
        for column in node.schema
        if column.name in used[node.input_id]
    )
    return {"read": read, "shown": [column.name for column in columns(relation)]}
