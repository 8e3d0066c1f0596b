"""A seed's rows → its Hudi table. Owns keys and the commit's record; `run.seeds` reads and checks the file.

The table is laid out like a derived one, so that models over it process its changes: an unchanged row keeps its key.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.writer.new_table import table_name
from sqlmesh_like.names import KEY
from sqlmesh_like.plan.history import RECORD_KEY, TableRecord, TableState
from sqlmesh_like.run.seeds import SeedTable
from sqlmesh_like.spark.tables.hudi_table import HudiTable
from sqlmesh_like.spark.writer import upsert as sinks
from sqlmesh_like.spark.writer.upsert import TableSpec


def load_seed(
    session: SparkSession, table: SeedTable, state: TableState, now: datetime, hudi: Mapping[str, str]
) -> None:
    """Replace the table's rows by the seed's in one commit; readers see either the old rows or the new ones."""
    fault_point("seed.begin")
    seed = table.seed
    options = {key: str(value) for key, value in hudi.items()}
    hudi_table = HudiTable(state.uri, table_name(seed.table), (KEY,), options=options)
    record = TableRecord(
        seed.unique_id, table.fingerprint, {}, now.isoformat(), "seed", rows={"upserts": len(table.rows)}
    )  # fmt: skip
    sink = TableSpec(hudi_table, (), table.unique_key, state)
    sinks.rebuild(_with_keys(_frame(session, table), table), sink, {RECORD_KEY: record.to_json()})
    fault_point("seed.end")


def _frame(session: SparkSession, table: SeedTable) -> DataFrame:
    types = ", ".join(f"`{column.name}` {column.type}" for column in table.schema)
    return session.createDataFrame(list(table.rows), types).coalesce(1)


def _with_keys(frame: DataFrame, table: SeedTable) -> DataFrame:
    """Key rows by a hash of `unique_key`, or of the whole row, and a number among rows with the same hash."""
    names = table.unique_key or tuple(frame.columns)
    content = F.to_json(F.struct(*[F.col(f"`{name}`") for name in names]), {"ignoreNullFields": "false"})
    hashed = frame.withColumn(KEY, F.sha2(content, 256))
    ordinal = F.row_number().over(Window.partitionBy(KEY).orderBy(KEY))
    return hashed.withColumn(KEY, F.concat_ws(".", F.col(KEY), ordinal.cast("string")))
