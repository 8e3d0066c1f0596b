"""A range of partitions that is computed again (`--backfill`). Owns its plan, and what is refused before it runs.

The table is brought up to date before, so that the range is computed of the inputs that all other rows are of.
"""

from __future__ import annotations

from dataclasses import replace

from sqlmesh_like.delta.slices.partition_range import PartitionRange, range_of_words
from sqlmesh_like.delta.slices.restriction import UnsplitError
from sqlmesh_like.delta.slices.slice_program import partition_type
from sqlmesh_like.errors import NodeError
from sqlmesh_like.plan.checks.config_place import config_place
from sqlmesh_like.plan.history import AS_WRITTEN, TableState
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.plan.slices.sliced_build import Slice
from sqlmesh_like.plan.slices.sliced_plan import slice_program

_FOLLOWING = ("no_op", "row_based", "aggregate_merge", "group_recompute", "partition_rescan", "recompute_merge")


def require_backfill(planned: PlannedModel, words: str) -> None:
    """Raise NodeError where a range of the table cannot be computed again, before its next run changes anything."""
    model, record = planned.compiled.model, planned.target.record
    if not planned.target.exists or record is None:
        raise _refusal(planned, "it does not exist yet", f"build it first: sml run --select {model.name}")
    if (
        planned.strategy not in _FOLLOWING
        or planned.edit is not None
        or (planned.reconciles and planned.frozen is None)
    ):
        why = "; ".join(f"{each.rule} {each.message}" for each in planned.reasons) or planned.strategy
        raise _refusal(planned, f"this run recomputes all of it: {why}", "leave --backfill out")
    if record.fingerprint.endswith(AS_WRITTEN):
        raise _refusal(planned, "its rows have no keys by which they are replaced", "rebuild it: --full-refresh")
    part = _range(planned, words)
    if planned.frozen is not None and part.reaches_below(planned.frozen.before):
        hint = f"begin at {planned.frozen.before}, or lower frozen_before"
        raise _refusal(planned, f"rows before {planned.frozen.before} are frozen", hint)


def plan_backfill(planned: PlannedModel, target: TableState, words: str) -> PlannedModel:
    """The plan that replaces the range. `planned`: that of the run which has brought the table to this state."""
    inputs = tuple(replace(item, start=item.end) for item in planned.inputs)
    table = slice_program(planned, _range(planned, words), replaces=True).table
    return replace(
        planned, target=target, strategy="partition_rescan", inputs=inputs, slice=Slice(table), estimate=None,
        reconciles=False, rewrites=False, follows=False, frozen=None,
    )  # fmt: skip


def _range(planned: PlannedModel, words: str) -> PartitionRange:
    try:
        type_ = partition_type(planned.compiled.facts, planned.compiled.classification)
        part = range_of_words(type_, words)
        slice_program(planned, part, replaces=True)
    except UnsplitError as error:
        partition_by = planned.compiled.model.config.partition_by
        about = f"its partition column {partition_by[0]}: " if partition_by else ""
        hint = "recompute all of it: --full-refresh" if partition_by else "set partition_by, or recompute all of it"
        raise _refusal(planned, f"{about}{error}", hint) from error
    except ValueError as error:
        raise _refusal(
            planned, f"--backfill {words}: {error}", "give two values of its first partition column"
        ) from error
    return part


def _refusal(planned: PlannedModel, why: str, hint: str) -> NodeError:
    model = planned.compiled.model
    place = config_place(model, "partition_by") if model.config.partition_by else None
    return NodeError(f"no range of {model.table} can be recomputed: {why}", location=place, hint=hint)
