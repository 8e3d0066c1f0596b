"""The layout of a table that Spark writes. Owns its buckets, its options and where it is committed."""

from __future__ import annotations

from dataclasses import dataclass

from sqlmesh_like.hudi.file_sizing import buckets_for, tasks_for
from sqlmesh_like.names import KEY, PARTITION
from sqlmesh_like.plan.history import History, Volume
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.plan.router import Router
from sqlmesh_like.spark.tables.hudi_table import HudiTable
from sqlmesh_like.spark.writer.upsert import TableSpec


@dataclass(frozen=True)
class TableLayout:
    """The layout of tables that Spark writes, by their plans and the settings of the target."""

    router: Router
    history: History

    def specify(self, planned: PlannedModel) -> TableSpec:
        """Buckets of a new or rebuilt table follow its volume; those of others stay."""
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
