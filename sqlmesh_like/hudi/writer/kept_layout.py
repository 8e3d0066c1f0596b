"""Whether a table that is built again stays as it is laid out. Owns this choice, which all writers share.

Where it does, one commit replaces its rows in place, and its history stays; else the new table is built beside the old
one and swapped with it (`recovery.table_swap`).
"""

from __future__ import annotations

from typing import Literal

from sqlmesh_like.analyze.spark_types.type_names import stored_type
from sqlmesh_like.names import Schema
from sqlmesh_like.plan.history import TableState


def keeps_layout(
    state: TableState, columns: Schema, partition_by: tuple[str, ...], buckets: int, table_type: Literal["cow", "mor"]
) -> bool:
    """Whether columns (hidden ones too), types, partitions, buckets and type of a table are those that it has."""
    record = state.record
    if record is None or (record.partition_by, record.buckets, state.kind) != (partition_by, buckets, table_type):
        return False
    now = {c.name: stored_type(c.type) for c in columns if not c.name.startswith("_hoodie_")}
    stored = {c.name: c.type for c in state.stored or () if not c.name.startswith("_hoodie_")}
    return now == stored
