"""Rows that are wrong, committed without Spark as a fault of a run would. Owns the commit; a test chooses the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.upsert import Upsert, upsert
from sqlmesh_like.names import HUDI_COLUMNS, PARTITION
from sqlmesh_like.plan.history import RECORD_KEY

Values = dict[str, Any]


def plant(timeline: Timeline, change: Callable[[list[Values]], list[Values]]) -> None:
    """Commit the rows that `change` makes of the stored ones, with the record of the last run."""
    frontier, record = timeline.frontier, table_state(timeline).record
    assert frontier is not None and record is not None
    files = [pq.read_table(f"{timeline.uri}/{each.path}") for each in timeline.slices(frontier).values()]
    columns = [name for name in files[0].schema.names if name not in HUDI_COLUMNS]
    stored = pa.concat_tables([file.select(columns) for file in files])
    rows = pa.Table.from_pylist(change(stored.to_pylist()), schema=stored.schema)
    partition = PARTITION if PARTITION in columns else None
    upsert(Upsert(timeline, frontier, rows, record.buckets, {RECORD_KEY: record.to_json()}, partition))
