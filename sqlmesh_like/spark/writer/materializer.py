"""A planned model → one Hudi commit. Owns the steps of each strategy; the other modules here do them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from sqlglot import exp

from sqlmesh_like.classify.rules import Reason, reason
from sqlmesh_like.delta.affected_keys import key_columns
from sqlmesh_like.delta.partitions import AFFECTED
from sqlmesh_like.delta.program import RescanProgram
from sqlmesh_like.duckdb.local_program import LocalActions
from sqlmesh_like.errors import NodeError, RetryableError
from sqlmesh_like.hudi.file_sizing import buckets_for, tasks_for
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import IS_DELETED, KEY, PARTITION, WEIGHT, is_storable, visible
from sqlmesh_like.plan.checks.contracts import refuse_breach
from sqlmesh_like.plan.frontier_advance import must_advance_frontier
from sqlmesh_like.plan.history import AS_WRITTEN, RECORD_KEY, History, Volume
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.run.ports import WriteResult
from sqlmesh_like.spark.change_feed.change_feed import change_feed
from sqlmesh_like.spark.frames.content_key import keyed_by_content
from sqlmesh_like.spark.frames.partition_paths import target_paths
from sqlmesh_like.spark.program.program_runner import run_program
from sqlmesh_like.spark.program.view_bindings import Bindings
from sqlmesh_like.spark.tables.hudi_table import HudiTable
from sqlmesh_like.spark.tables.table_swap import recover
from sqlmesh_like.spark.writer import upsert as sinks
from sqlmesh_like.spark.writer.author_incremental import write_branch
from sqlmesh_like.spark.writer.snapshots import take_snapshot
from sqlmesh_like.spark.writer.upsert import TableSpec


@dataclass(frozen=True)
class Materializer:
    """Brings tables up to date by their plans. `hudi`: the target's options, which those of a model override.

    `commits_locally`: commit upserts without Hudi's writer where possible.
    """

    hudi: Mapping[str, object]
    history: History
    commits_locally: bool = False

    def write_snapshot(self, planned: PlannedModel, bindings: Bindings) -> WriteResult:
        """Bring the table of a snapshot up to date with its query."""
        return take_snapshot(planned, bindings, self._sink(planned), must_advance_frontier(planned, self.history))

    def apply(self, planned: PlannedModel, bindings: Bindings, result: LocalActions | None = None) -> WriteResult:
        """Bring a model's table up to date by the plan's strategy. `result`: actions that DuckDB has computed."""
        plan = planned.compiled.table
        match planned.strategy:
            case _ if result is not None:
                return self._write_local(planned, result, bindings, self._sink(planned))
            case "row_based" | "aggregate_merge" | "group_recompute" if plan.derive is not None:
                return self._merge(planned, bindings)
            case "partition_rescan" if plan.rescan is not None:
                return self._rescan(planned, plan.rescan, bindings)
            case "recompute_merge" if plan.build is not None:
                return self._recompute(planned, plan.build, bindings)
            case "append" | "merge" | "delete+insert" | "insert_overwrite":
                return self._branch(planned, bindings)
            case "no_op":
                return WriteResult("no_op", 0, 0, committed=False)
        return self._rebuild(planned, bindings)

    def _branch(self, planned: PlannedModel, bindings: Bindings) -> WriteResult:
        given = bindings.as_written().persist()
        bindings.steps["_given"] = given  # read more than once, and each time with other rows if it calls rand()
        _require_storable(given, planned)
        target = self._sink(planned)
        return write_branch(
            planned, given, _stored(target, bindings), target, must_advance_frontier(planned, self.history)
        )

    def _merge(self, planned: PlannedModel, bindings: Bindings) -> WriteResult:
        program = planned.compiled.table.program_for(planned.moves)
        assert program is not None
        signed = run_program(program, bindings)
        if signed is None:
            return self._is_unchanged(planned, bindings, self._sink(planned))
        return self._merge_signed(planned, signed, bindings, are_images=_has_stored_images(planned))

    def _recompute(self, planned: PlannedModel, build: exp.Query, bindings: Bindings) -> WriteResult:
        """Run the whole query and commit the rows that differ from the table by key or content."""
        fresh, stored = bindings.run(build), _stored(self._sink(planned), bindings)
        if not set(fresh.columns) <= set(stored.columns):
            return self._rebuild(replace(planned, strategy="full_refresh"), bindings)
        alike = [F.col(f"`{name}`").cast(fresh.schema[name].dataType) for name in fresh.columns]
        signed = fresh.withColumn(WEIGHT, F.lit(1)).union(stored.select(*alike, F.lit(-1)))
        return self._merge_signed(planned, signed, bindings, are_images=True)

    def _merge_signed(
        self, planned: PlannedModel, signed: DataFrame, bindings: Bindings, *, are_images: bool
    ) -> WriteResult:
        """Commit signed rows. `are_images`: rows that leave equal the stored ones in every bit."""
        target = self._sink(planned)
        actions = sinks.one_action_a_key(signed, target).persist()
        bindings.steps["_actions"] = actions
        counts = sinks.count_actions(actions, target)
        self._require_kept(planned)
        if target.unique_key and counts.upserts:
            staying = _stored(target, bindings).join(actions.select(KEY), [KEY], "left_anti")
            sinks.check_entering(actions.where(~F.col(IS_DELETED)), staying, target)
        record = planned.record(planned.strategy, target.table.buckets, vars(counts), bindings.started)
        stored = None if are_images else _stored(target, bindings)
        sinks.commit_actions(actions, counts, target, {RECORD_KEY: record.to_json()}, stored)
        return WriteResult(planned.strategy, counts.upserts, counts.deletes, committed=True)

    def _write_local(
        self, planned: PlannedModel, result: LocalActions, bindings: Bindings, target: TableSpec
    ) -> WriteResult:
        """Commit the actions that DuckDB has computed."""
        if not result.upserts and not result.deletes:
            return replace(self._is_unchanged(planned, bindings, target), engine="duckdb")
        columns = ", ".join(f"`{column.name}` {column.type}" for column in result.schema)
        rows = bindings.session.read.schema(f"{columns}, {IS_DELETED} boolean").parquet(str(result.path))
        counts = {"upserts": result.upserts, "deletes": result.deletes}
        record = planned.record(planned.strategy, target.table.buckets, counts, bindings.started)
        sinks.upsert_rows(target.prepared(rows), target, {RECORD_KEY: record.to_json()}, result.log)
        return WriteResult(planned.strategy, result.upserts, result.deletes, committed=True, engine="duckdb")

    def _is_unchanged(self, planned: PlannedModel, bindings: Bindings, target: TableSpec) -> WriteResult:
        """Commit the new frontier without rows, so that the same changes are not read again."""
        self._require_kept(planned)
        counts = {"upserts": 0, "deletes": 0}
        record = planned.record(planned.strategy, target.table.buckets, counts, bindings.started)
        sinks.merge_nothing(_stored(target, bindings), target, {RECORD_KEY: record.to_json()})
        return WriteResult(planned.strategy, 0, 0, committed=True)

    def _require_kept(self, planned: PlannedModel) -> None:
        """Raise RetryableError where files were cleaned since the plan: Hudi's reader may have returned fewer rows."""
        for item in planned.inputs:
            if item.state.kind != "mor" or not item.has_moved or item.start is None or item.end is None:
                continue
            if lost := self.history.lost(item.state.uri, item.start, item.end):
                raise RetryableError(f"{item.ref.table}: {lost}", hint="run again, which plans anew")

    def _rescan(self, planned: PlannedModel, rescan: RescanProgram, bindings: Bindings) -> WriteResult:
        bindings.keep(AFFECTED, bindings.run(rescan.affected), persist=True)
        values = bindings.steps[AFFECTED]
        target = self._sink(planned)
        names = key_columns(len(rescan.partition_by))
        renamed = values.select(*[F.col(a).alias(b) for a, b in zip(names, rescan.partition_by, strict=True)])
        paths = target_paths(renamed, rescan.partition_by)
        rows = bindings.run(rescan.query, [rescan.prune])
        counts = {"partitions": len(paths)}
        record = planned.record("partition_rescan", target.table.buckets, counts, bindings.started)
        if not paths:
            sinks.merge_nothing(rows, target, {RECORD_KEY: record.to_json()})
            return WriteResult("partition_rescan", 0, 0, committed=True)
        if target.unique_key:
            rescanned = [path.removeprefix(f"{PARTITION}=") for path in paths]
            staying = _stored(target, bindings).where(~F.col(PARTITION).isin(rescanned))
            sinks.check_entering(rows, staying, target)
        sinks.overwrite(rows, target, paths, {RECORD_KEY: record.to_json()})
        return WriteResult("partition_rescan", _rows_written(target.table.uri), 0, committed=True)

    def _rebuild(self, planned: PlannedModel, bindings: Bindings) -> WriteResult:
        if recover(planned.target.uri):
            raise RetryableError(f"{planned.compiled.model.table}: a swap cut short by a crash was finished: plan anew")
        frame, strategy_reasons, is_as_derived = self._whole(planned, bindings)
        target = self._sink(planned)
        if target.unique_key:
            sinks.check_rows(frame, target)
        record = planned.record("full_refresh", target.table.buckets, {}, bindings.started)
        if not is_as_derived:
            # The stored rows lack the state that the program needs, so no later run may be incremental.
            record = replace(record, fingerprint=record.fingerprint + AS_WRITTEN)
        sinks.rebuild(frame, target, {RECORD_KEY: record.to_json()})
        return WriteResult("full_refresh", _rows_written(target.table.uri), 0, True, strategy_reasons)

    def _whole(self, planned: PlannedModel, bindings: Bindings) -> tuple[DataFrame, tuple[Reason, ...], bool]:
        """All rows of the model with keys and state; why they are not derived; whether their state fits the plan."""
        written = bindings.as_written()
        _require_storable(written, planned)
        refuse_breach(planned.compiled.model, visible(sinks.frame_schema(written)))
        build = planned.compiled.table.build
        if build is None or any(item.state.kind == "files" for item in planned.inputs):
            return keyed_by_content(written), (), build is None
        if meant := bindings.other_meaning(written):
            result = reason("TYP003", f"Spark reads the query as {meant}, which the compiler would write")
            return keyed_by_content(written), (result,), False
        derived = bindings.run(build)
        if not sinks.have_same_columns(derived, written):
            result = reason("TYP003", f"derived {_described(derived)}, Spark says {_described(written)}")
            return keyed_by_content(written), (result,), False
        return derived, (), True

    def _sink(self, planned: PlannedModel) -> TableSpec:
        config = planned.compiled.model.config
        state = planned.target
        options = {**self.hudi, **config.hudi}
        record = state.record
        volume = _volume(planned, self.history) if record is None or planned.strategy == "full_refresh" else Volume()
        partitions = volume.partitions if config.partition_by else 1
        changed = sum(item.change.bytes for item in planned.inputs)
        table = HudiTable(
            uri=state.uri,
            name=str(planned.compiled.model.table).replace(".", "_"),
            key=(KEY,),
            partition_field=PARTITION if config.partition_by else None,
            table_type=config.table_type,
            buckets=buckets_for(volume.bytes, partitions, options) if record is None else record.buckets,
            tasks=tasks_for(max(volume.bytes, changed), options),
            options={key: str(value) for key, value in options.items()},
        )
        # With an author's other strategies, dbt does not require unique_key to be unique.
        is_key = planned.compiled.model.author_strategy in (None, "merge")
        unique_key = config.unique_key if is_key else ()
        return TableSpec(table, config.partition_by, unique_key, state, self.commits_locally)


def _stored(target: TableSpec, bindings: Bindings) -> DataFrame:
    timeline = Timeline(target.table.uri)
    assert timeline.frontier is not None
    return change_feed(bindings.session, timeline).current(timeline.frontier, hidden=True)


def _has_stored_images(planned: PlannedModel) -> bool:
    """Whether rows that leave equal the stored ones in every bit: recomputed sums of floats may differ."""
    types = (column.type or "" for column in planned.target.schema or ())
    return planned.strategy == "aggregate_merge" or not any("float" in t or "double" in t for t in types)


def _volume(planned: PlannedModel, history: History) -> Volume:
    """Estimated volume of a full write: that of the inputs, or a tenth of it where groups are merged."""
    lake = [item for item in planned.inputs if item.state.kind in ("cow", "mor") and item.end]
    volume = [history.volume(item.state.uri, item.end or "") for item in lake]
    share = 10 if planned.compiled.classification.strategy == "aggregate_merge" else 1
    partitions = max((each.partitions for each in volume), default=1)
    return Volume(sum(each.bytes for each in volume) // share, partitions=partitions)


def _require_storable(frame: DataFrame, planned: PlannedModel) -> None:
    bad = [name for name in frame.columns if not is_storable(name)]
    if bad:
        raise NodeError(
            f"{planned.compiled.model.path}: a Hudi table cannot have a column named {bad[0]!r}",
            hint="give it an alias of letters, digits and underscores",
        )
    unknown = [name for name in planned.compiled.model.config.partition_by if name not in frame.columns]
    if unknown:
        hint = f"columns: {', '.join(frame.columns)}"
        raise NodeError(f"{planned.compiled.model.path}: no column {unknown[0]!r} to partition by", hint=hint)


def _described(frame: DataFrame) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in visible(sinks.frame_schema(frame)))


def _rows_written(uri: str) -> int:
    commits = Timeline(uri).data_commits
    return sum(write.rows for write in commits[-1].writes) if commits else 0
