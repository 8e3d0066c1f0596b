"""The layout of a table that Spark writes. Owns its buckets, its options and where it is committed."""

from __future__ import annotations

from dataclasses import dataclass

from sqlmesh_like.hudi.file_sizing import buckets_of_whole, estimated_volume, tasks_for
from sqlmesh_like.hudi.writer.new_table import table_name
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
        is_whole = record is None or planned.strategy == "full_refresh" or planned.slice is not None
        slices = planned.slice.of if planned.slice is not None else 1
        volume = estimated_volume(planned, self.history) if is_whole else Volume()
        changed = sum(item.change.bytes for item in planned.inputs)
        table = HudiTable(
            uri=state.uri,
            name=table_name(planned.compiled.model.table),
            key=(KEY,),
            partition_field=PARTITION if config.partition_by else None,
            table_type=config.table_type,
            buckets=buckets_of_whole(planned, self.history, options),
            tasks=tasks_for(max(volume.bytes // slices, changed), options),
            options={key: str(value) for key, value in options.items()},
        )
        commits_locally = self.router.why_executors_commit(state.uri) is None
        return TableSpec(table, config.partition_by, planned.unique_key, state, commits_locally)
