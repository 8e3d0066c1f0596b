"""The edit between two queries of a table. Owns which of the proven ways is taken, and the edit in words."""

from __future__ import annotations

from dataclasses import replace

from sqlmesh_like.analyze.algebra.relation import Relation, TopK
from sqlmesh_like.analyze.expressions.clock import clock_calls
from sqlmesh_like.classify.strategy import Strategy
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.delta.compile import compile_table
from sqlmesh_like.delta.edits.changed_rows import edit_change
from sqlmesh_like.delta.edits.edited_columns import EditedColumns, edited_columns
from sqlmesh_like.delta.edits.joined_rows import has_plain_group_keys, joined_rows
from sqlmesh_like.delta.program import TablePlan
from sqlmesh_like.names import Schema
from sqlmesh_like.plan.edits.outline import Edit
from sqlmesh_like.plan.edits.widened_inputs import over_recorded_types


def edit_between(before: CompiledModel, after: CompiledModel) -> Edit | None:
    """What the edit computes from the inputs as they are; None if the whole query has to be run.

    The table is one of `before`. Inputs that only one of both queries reads are as they are, too.
    """
    edit = _edit_between(before, after)
    is_readable = edit is not None and edit.inputs <= {ref.unique_id for ref in after.facts.inputs}
    return edit if is_readable else None


def _edit_between(before: CompiledModel, after: CompiledModel) -> Edit | None:
    old, new = before.facts.relation, after.facts.relation
    if old is None or new is None or any(clock_calls(each.facts.tree) for each in (before, after)):
        return None  # what was selected by the clock of then cannot be told from what the edit changes
    new = over_recorded_types(new, old)
    merges = after.classification.strategy == "aggregate_merge"
    if (before.classification.strategy == "aggregate_merge") != merges:
        is_below = not merges and not after.table.state and has_plain_group_keys(old)
        return _column_edit(joined_rows(old, new)) if is_below and not after.table.keyed_by else None
    if before.facts.schema == after.facts.schema and before.table.state == after.table.state:

        def table(marked: Relation) -> TablePlan:
            return compile_table(replace(after.facts, relation=marked), after.classification)

        if before.classification.strategy == after.classification.strategy:
            change = edit_change(old, new, table)
            if change is not None:
                return Edit("; ".join(change.words), None, change.program)
    if not merges and any(each.table.state != _ordered_by(each) for each in (before, after)):
        return None
    has_other_keys = merges or after.table.keyed_by
    return _column_edit(edited_columns(old, new, merges=merges) or (None if has_other_keys else joined_rows(old, new)))


def _column_edit(edited: EditedColumns | None) -> Edit | None:
    if edited is None:
        return None
    computed = [f"{' and '.join(edited.computed)} computed alone"] * bool(edited.computed)
    return Edit("; ".join([*edited.words, *computed]) or "other columns", edited.rows)


def _ordered_by(compiled: CompiledModel) -> Schema:
    """Hidden columns by which the rows of a LIMIT are ordered."""
    relation = compiled.facts.relation
    return relation.order_only if isinstance(relation, TopK) else ()


def program_strategy(compiled: CompiledModel) -> Strategy:
    """The strategy under which the program of an edit runs."""
    own = compiled.classification.strategy
    return "group_recompute" if own == "partition_rescan" else own
