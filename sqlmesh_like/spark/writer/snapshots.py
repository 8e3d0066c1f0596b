"""A snapshot's new versions → one Hudi commit. Owns running its program and prior checks; `delta` has the SQL."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sqlmesh_like.delta.snapshot import (
    SOURCE,
    STORED,
    key_expression,
    refuse_other_types,
    require_own_beginnings,
    snapshot_program,
)
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import RetryableError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.recovery.table_swap import recover
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import IS_DELETED, KEY
from sqlmesh_like.plan.history import RECORD_KEY
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.project.snapshots import SnapshotConfig
from sqlmesh_like.run.ports import WriteResult
from sqlmesh_like.spark.change_feed.change_feed import change_feed
from sqlmesh_like.spark.program.view_bindings import Bindings, visible_rows
from sqlmesh_like.spark.writer import upsert as sinks
from sqlmesh_like.spark.writer.upsert import TableSpec


def take_snapshot(planned: PlannedModel, bindings: Bindings, target: TableSpec, must_carry: bool) -> WriteResult:
    """Bring a snapshot's table up to date. Raises NodeError where a key is NULL or repeats, or a type changed."""
    config, model = planned.compiled.model.config.snapshot, planned.compiled.model
    assert config is not None
    fault_point("snapshot.begin")
    if recover(planned.target.uri):
        raise RetryableError(f"{model.table}: a swap cut short by a crash was finished: plan anew")
    source = bindings.as_written().persist()
    bindings.steps["_source"] = source
    sinks.check_rows(_with_computed_keys(source, config), target)
    source.createOrReplaceTempView(SOURCE)
    kept = _stored_versions(planned, bindings)
    now = planned.now.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
    columns = None if kept is None else sinks.frame_schema(visible_rows(kept))
    refuse_other_types(model.table, sinks.frame_schema(source), columns or ())
    program = snapshot_program(config, sinks.frame_schema(source), columns, now)
    record = planned.record("full_refresh", target.table.buckets, {})
    if kept is None:
        rows = bindings.session.sql(program.first)
        sinks.rebuild(rows, target, {RECORD_KEY: record.to_json()})
        fault_point("snapshot.end")
        return WriteResult("full_refresh", source.count(), 0, committed=True)
    kept.createOrReplaceTempView(STORED)
    rows = bindings.session.sql(program.changes).persist()
    bindings.steps["_rows"] = rows
    count = _count(rows, planned)
    known = {column.name.lower() for column in columns or ()}
    is_wider = any(name.lower() not in known for name in source.columns)
    if not count and not must_carry and not is_wider:
        return WriteResult("full_refresh", 0, 0, committed=False)
    record = replace(record, rows={"upserts": count})
    if not count:
        sinks.merge_nothing(rows, target, {RECORD_KEY: record.to_json()})
        return WriteResult("full_refresh", 0, 0, committed=True)
    actions = target.prepared(rows).withColumn(IS_DELETED, F.lit(False))
    sinks.commit_actions(actions, sinks.WriteCounts(count, 0), target, {RECORD_KEY: record.to_json()}, kept)
    fault_point("snapshot.end")
    return WriteResult("full_refresh", count, 0, committed=True)


def _with_computed_keys(source: DataFrame, config: SnapshotConfig) -> DataFrame:
    """The rows with a column for each part of the key that is computed, named by its text, as the key's parts are."""
    computed = {part: tree for part in config.unique_key if (tree := key_expression(part)) is not None}
    return source.withColumns({part: F.expr(tree.sql(SPARK)) for part, tree in computed.items()})


def _stored_versions(planned: PlannedModel, bindings: Bindings) -> DataFrame | None:
    if not planned.target.exists:
        return None
    timeline = Timeline(planned.target.uri)
    assert timeline.frontier is not None
    return change_feed(bindings.session, timeline).current(timeline.frontier, hidden=True)


def _count(rows: DataFrame, planned: PlannedModel) -> int:
    versions, keys = rows.agg(F.count(F.lit(1)), F.count_distinct(KEY)).collect()[0]
    require_own_beginnings(planned.compiled.model.table, versions, keys)
    return int(versions)
