"""Whether a table is built in slices, and whether an unfinished build goes on. Owns this choice and its refusals."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from sqlmesh_like.classify.rules import reason
from sqlmesh_like.errors import NodeError, SqlError
from sqlmesh_like.names import is_store
from sqlmesh_like.plan.checks.config_place import config_place
from sqlmesh_like.plan.history import History, TableRecord, TableState
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.plan.slices.cuts import why_not_cut
from sqlmesh_like.plan.slices.sliced_build import Slice, SlicedBuild, SliceWish, beside, unfinished_build

if TYPE_CHECKING:  # what has nothing to do imports none of it
    from sqlmesh_like.delta.slices.partition_range import PartitionRange
    from sqlmesh_like.delta.slices.slice_program import SliceProgram

KEY = "build_by"


def with_slices(planned: PlannedModel, history: History, wish: SliceWish, *, full_refresh: bool) -> PlannedModel:
    """The plan with its build in slices, if that is wished or was begun.

    `full_refresh`: the user asks for all rows. Raises SqlError, at the config key, where the config asks for slices
    that the query does not allow, and NodeError where a strict wish does.
    """
    model, target = planned.compiled.model, planned.target
    by = str(wish.count) if wish.count is not None else model.config.build_by
    begun = unfinished_build(target, history, rebuilds=by is not None or planned.strategy == "full_refresh")
    dropped = ""
    if begun is not None and begun.record is not None and not _has_taken_place(begun, target):
        is_whole = full_refresh and by is None
        dropped = "the table is built as a whole" if is_whole else _why_not_continued(planned, begun, history)
        if not dropped:
            return _continued(planned, begun, begun.record)
    if begun is not None:
        planned = replace(planned, has_remains=begun.uri != target.uri)
    if dropped:
        anew = reason("SLC002", f"{begun.record.slices_built if begun and begun.record else 0} slices: {dropped}")
        planned = replace(planned, reasons=(*planned.reasons, anew))
    is_build = planned.strategy == "full_refresh" and not planned.rewrites and planned.frozen is None
    if by is None or not is_build or _has_unknown_columns(planned) or planned.is_refused:
        return planned
    if why := _why_whole(planned, by):
        return _whole(planned, why, wish)
    place = target if model.config.build_visible else TableState(beside(target.uri), "missing")
    from sqlmesh_like.delta.slices.slice_program import partition_type

    type_ = partition_type(planned.compiled.facts, planned.compiled.classification)
    is_required = wish.count is None or wish.is_strict
    build = SlicedBuild(
        model.config.partition_by[0], type_, by, place, is_in_place=model.config.build_visible, is_required=is_required
    )
    return replace(planned, slices=build, reasons=(*planned.reasons, reason("SLC001", build.progress())))


def slice_program(planned: PlannedModel, part: PartitionRange, *, replaces: bool) -> SliceProgram:
    """The program of a range of the model's table. Raises UnsplitError."""
    from sqlmesh_like.delta.slices.slice_program import compile_slice

    return compile_slice(planned.compiled.facts, planned.compiled.classification, part, replaces=replaces)


def plan_slice(planned: PlannedModel, build: SlicedBuild) -> PlannedModel:
    """The plan of the next slice of a build, for the table as its last slice has left it."""
    from sqlmesh_like.delta.slices.partition_range import PartitionRange

    assert build.left
    low, further = build.left[0], tuple(value for value in build.left[1:] if value is not None)
    part = PartitionRange(build.type, low, further[0] if further else None)
    is_first = low is None
    table = slice_program(planned, part, replaces=False).table
    inputs = planned.inputs if is_first else tuple(replace(item, start=item.end) for item in planned.inputs)
    return replace(
        planned, target=build.state, strategy="full_refresh" if is_first else "partition_rescan", inputs=inputs,
        slices=None, has_remains=False,
        slice=Slice(
            table, build.built + 1 if further else 0, further, build.built + len(build.left),
            is_beside=not build.is_in_place,
        ),
    )  # fmt: skip


def _has_taken_place(begun: TableState, target: TableState) -> bool:
    """Whether the table has been copied to its place, on a store, and what it was copied of has not been removed.

    Also where the table has had a commit since, of a run that did not look for the build.
    """
    is_beside = begun.uri != target.uri and is_store(target.uri)
    return is_beside and target.frontier is not None and (begun.frontier or "") <= target.frontier


def _why_not_continued(planned: PlannedModel, begun: TableState, history: History) -> str:
    record = begun.record
    assert record is not None
    if begun.is_foreign_on_top:
        return "something else has written to them"
    if missing := history.missing(begun.uri):
        return missing
    if record.fingerprint != planned.fingerprint:
        return "the query or its settings have changed since"
    if set(record.frontier) != {item.ref.unique_id for item in planned.inputs}:
        return "other inputs are read since"
    for item in planned.inputs:
        state, start = item.state, record.frontier[item.ref.unique_id]
        if state.frontier is None or (state.kind == "files" and state.frontier != start):
            return f"{item.ref.table} is not what it was"
        lost = history.unreadable_reason(state.uri, start, state.frontier) if start != state.frontier else None
        if lost:
            return f"{item.ref.table}: {lost}"
    return ""


def _continued(planned: PlannedModel, begun: TableState, record: TableRecord) -> PlannedModel:
    """The plan that goes on with a build, over the inputs as its first slice has read them."""
    from sqlmesh_like.delta.slices.slice_program import partition_type

    config = planned.compiled.model.config
    inputs = tuple(
        replace(
            item, start=None, end=record.frontier[item.ref.unique_id], awaits=False,
            repeats_keys=item.ref.unique_id in record.repeating,
        )
        for item in planned.inputs
    )  # fmt: skip
    type_ = partition_type(planned.compiled.facts, planned.compiled.classification)
    build = SlicedBuild(
        config.partition_by[0], type_, config.build_by or "", begun,
        is_in_place=begun.uri == planned.target.uri, is_required=True,
        built=record.slices_built, left=record.slices_left,
    )  # fmt: skip
    return replace(
        planned, strategy="full_refresh", reasons=(reason("SLC001", build.progress()),), inputs=inputs,
        now=datetime.fromisoformat(record.now), is_refused=False, estimate=None, reconciles=False, rewrites=False,
        edit=None, frozen=None, follows=True, slices=build,
    )  # fmt: skip


def _has_unknown_columns(planned: PlannedModel) -> bool:
    """Whether an input has no columns yet: the run that builds it first knows more."""
    reasons = planned.compiled.classification.reasons
    return planned.compiled.facts.relation is None and bool(reasons) and reasons[0].rule == "INP001"


def _why_whole(planned: PlannedModel, by: str) -> str | None:
    """Why the table cannot be built in slices; None if it can."""
    from sqlmesh_like.delta.slices.partition_range import PartitionRange
    from sqlmesh_like.delta.slices.restriction import UnsplitError
    from sqlmesh_like.delta.slices.slice_program import partition_type

    model = planned.compiled.model
    if model.config.snapshot is not None:
        return "a snapshot keeps versions of rows"
    if files := [item for item in planned.inputs if item.state.kind == "files"]:
        return f"{files[0].ref.table} is not a Hudi table"
    try:
        type_ = partition_type(planned.compiled.facts, planned.compiled.classification)
        column = model.config.partition_by[0]
        if why := why_not_cut(type_, by):
            return f"its partition column {column}: {why}"
        slice_program(planned, PartitionRange(type_), replaces=False)
    except UnsplitError as error:
        about = f"its partition column {model.config.partition_by[0]}: " if model.config.partition_by else ""
        return f"{about}{error}"
    return None


def _whole(planned: PlannedModel, why: str, wish: SliceWish) -> PlannedModel:
    """The plan of a build as a whole, with the reason. Raises SqlError or NodeError where slices are required."""
    model = planned.compiled.model
    message = f"{model.table} cannot be built in slices: {why}"
    if wish.count is None:
        hint = "leave build_by out; or partition by a column that each GROUP BY, PARTITION BY and join lets through"
        raise SqlError(message, location=config_place(model, KEY), hint=hint)
    if wish.is_strict:
        hint = "leave --slices out; or partition by a column that each GROUP BY, PARTITION BY and join lets through"
        raise NodeError(message, hint=hint)
    return replace(planned, reasons=(*planned.reasons, reason("SLC003", why)))
