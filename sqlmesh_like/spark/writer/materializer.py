"""A planned model → one Hudi commit by Spark. Owns the layout of the table; `table_writer` commits."""

from __future__ import annotations

from dataclasses import dataclass

from sqlmesh_like.delta.machine import Machine, MaintainedTable
from sqlmesh_like.duckdb.programs.local_actions import LocalActions
from sqlmesh_like.hudi.file_sizing import buckets_for, tasks_for
from sqlmesh_like.names import KEY, PARTITION
from sqlmesh_like.plan.frontier_advance import must_advance_frontier
from sqlmesh_like.plan.history import History, Volume
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.plan.router import Router
from sqlmesh_like.run.ports import WriteResult
from sqlmesh_like.spark.program.spark_steps import SparkSteps
from sqlmesh_like.spark.program.view_bindings import Bindings
from sqlmesh_like.spark.tables.hudi_table import HudiTable
from sqlmesh_like.spark.writer.snapshots import take_snapshot
from sqlmesh_like.spark.writer.table_writer import SparkWriter
from sqlmesh_like.spark.writer.upsert import TableSpec


@dataclass(frozen=True)
class Materializer:
    """Brings tables up to date by their plans."""

    router: Router
    history: History

    def write_snapshot(self, planned: PlannedModel, bindings: Bindings) -> WriteResult:
        """Bring the table of a snapshot up to date with its query."""
        return take_snapshot(planned, bindings, self._specify(planned), must_advance_frontier(planned, self.history))

    def apply(self, planned: PlannedModel, bindings: Bindings, local: LocalActions | None = None) -> WriteResult:
        """Bring a model's table up to date by the plan's strategy. `local`: actions that DuckDB has computed."""
        steps = SparkSteps(bindings)
        writer = SparkWriter(planned, steps, self.history, self._specify)
        if local is not None:
            return writer.write_local(local)
        target = writer.target
        at = (KEY, PARTITION) if target.partition_by else (KEY,)
        table = MaintainedTable(target.table.name, at, target.unique_key)
        machine = Machine(planned.compiled.table, steps, writer, table, planned.now, planned.then)
        return machine.run(planned.strategy, planned.moves)

    def _specify(self, planned: PlannedModel) -> TableSpec:
        config = planned.compiled.model.config
        state = planned.target
        options = {**self.router.target.hudi, **config.hudi}
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
        commits_locally = self.router.why_spark_commits(state.uri) is None
        return TableSpec(table, config.partition_by, planned.unique_key, state, commits_locally)


def _volume(planned: PlannedModel, history: History) -> Volume:
    """Estimated volume of a full write: that of the inputs, or a tenth of it where groups are merged."""
    lake = [item for item in planned.inputs if item.state.kind in ("cow", "mor") and item.end]
    volume = [history.volume(item.state.uri, item.end or "") for item in lake]
    share = 10 if planned.compiled.classification.strategy == "aggregate_merge" else 1
    partitions = max((each.partitions for each in volume), default=1)
    return Volume(sum(each.bytes for each in volume) // share, partitions=partitions)
