"""What an edit does to a table in memory: what a run would do, as far as both queries and the table's record say it."""

from __future__ import annotations

from typing import Literal

from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.duckdb.programs.memory_lake import LakeSnapshot, MemoryLake
from sqlmesh_like.plan.edits.edited_query import edit_between, program_strategy
from sqlmesh_like.plan.edits.outline import Edit, edit_of, stored_outline
from sqlmesh_like.plan.edits.recorded_query import as_recorded, query_before, recorded_query
from sqlmesh_like.plan.fingerprint import fingerprint, meaning
from sqlmesh_like.plan.history import TableRecord

Way = Literal["kept", "derived", "columns computed", "followed", "compared", "rewritten", "rebuilt"]
"""`derived`: of stored rows. `columns computed`: joined to these. `followed`: rows that enter and leave. `compared`, or
with other columns `rewritten`: the whole query. `rebuilt`: a table of other types, or one that follows no change."""


def way_of(before: CompiledModel, after: CompiledModel) -> tuple[Way, Edit | None]:
    """What becomes of a table whose query is edited."""
    if fingerprint(before) == fingerprint(after) or (meaning(before) and meaning(before) == meaning(after)):
        return "kept", None
    if before.table.build is None or after.table.build is None:
        return "rebuilt", None
    record = record_of(before)
    old, new = before.facts.schema or (), after.facts.schema or ()
    edit = edit_of(record.outline, after, old)
    if edit is None and (known := query_before(record, after)) is not None:
        edit = edit_between(known, after)
    if edit is not None:
        way: Way = "followed" if edit.rows is None else "columns computed" if edit.inputs else "derived"
        return way, edit
    if old == new and before.table.state == after.table.state:
        return "compared", None
    types = {column.name.lower(): column.type for column in (*old, *before.table.state)}
    is_retyped = any(types.get(c.name.lower(), c.type) != c.type for c in (*new, *after.table.state))
    return ("rebuilt" if is_retyped else "rewritten"), None


def plan_after(before: CompiledModel, after: CompiledModel) -> CompiledModel:
    """The query that the table goes on with: the edited one, or the recorded one if it selects the same rows."""
    return as_recorded(record_of(before), after)


def record_of(before: CompiledModel) -> TableRecord:
    """What the commits of a table hold of its query."""
    return TableRecord(
        "model.shop.m", fingerprint(before), {}, "2024-01-01T00:00:00+00:00", "row_based", meaning=meaning(before),
        outline=stored_outline(before), query=recorded_query(before),
    )  # fmt: skip


def apply_edit(
    before: CompiledModel, after: CompiledModel, lake: MemoryLake, snapshot: LakeSnapshot
) -> tuple[Way, Edit | None]:
    """Bring a table of the query before to the one after. The lake's inputs are as in the snapshot."""
    way, edit = way_of(before, after)
    if edit is not None and edit.rows is not None:
        lake.derive(edit.rows)
    elif edit is not None:
        lake.apply_edit(after, edit.table(after.table), program_strategy(after), snapshot)
    elif way == "compared":
        lake.apply(after, snapshot, snapshot, strategy="recompute_merge")
    elif way != "kept":
        lake.build(after, snapshot)
    return way, edit
