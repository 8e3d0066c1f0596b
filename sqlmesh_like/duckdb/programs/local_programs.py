"""Changes of tables, computed in this process by DuckDB over Parquet files. Owns when that is possible.

A program over a small change is many small joins: Spark spends its time on planning them and starting jobs. If driver
and tables are on one machine, DuckDB does the same in milliseconds. If it cannot, or anything fails on the way, Spark
does all of the work.
"""

from __future__ import annotations

import logging
from contextlib import closing

import duckdb

from sqlmesh_like.delta.machine import Machine, MaintainedTable, work_of
from sqlmesh_like.duckdb.exact_sql import Unproven
from sqlmesh_like.duckdb.programs.local_actions import LocalActions, LocalWriter
from sqlmesh_like.duckdb.programs.local_steps import LocalSteps, tables_read
from sqlmesh_like.duckdb.programs.read_limit import ReadLimit
from sqlmesh_like.duckdb.programs.shared_rows import SharedRows
from sqlmesh_like.hudi.writer.new_table import table_name
from sqlmesh_like.names import KEY
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.run.ports import NamedColumns

_LOG = logging.getLogger(__name__)


def local_actions(
    planned: PlannedModel,
    shared: SharedRows,
    named: NamedColumns,
    *,
    logged: bool,
    limit: ReadLimit | None = None,
) -> LocalActions | None:
    """What a run does to a table; None if Spark has to compute it.

    `named`: see `run.ports.ModelWriter.apply`. `logged`: also write a log of the change. `limit`: of what is read
    here, None: there is none. Raises NodeError where a declared key is NULL or not unique.
    """
    work = work_of(planned.table, planned.strategy, planned.moves)
    if isinstance(work, str) and not (work == "all rows" and planned.strategy == "full_refresh"):
        return None
    is_new = planned.strategy == "full_refresh" and not planned.rewrites and planned.edit is None
    tables = tables_read(planned, shared.merged, target=not is_new)
    if tables is None:
        return None
    model = planned.compiled.model
    target = MaintainedTable(table_name(model.table), (KEY, *model.config.partition_by), planned.unique_key)
    try:
        with closing(shared.cursor()) as db:
            steps = LocalSteps(shared, db, planned, tables, named, limit or ReadLimit())
            writer = LocalWriter(steps, shared.new_file(), logged)
            machine = Machine(
                planned.table, steps, writer, target, planned.now, planned.then, frozen=planned.frozen
            )  # fmt: skip
            return machine.run(planned.strategy, planned.moves)
    except (Unproven, duckdb.Error, OSError) as error:
        # It may fail in Spark as well, which then reports the reason.
        _LOG.debug("%s is computed by Spark: %s", model.unique_id, error)
        return None
