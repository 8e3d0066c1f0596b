"""A seed loaded without Spark. Owns for which seeds that is possible; `spark.writer.seeds` does all others.

Row keys are those that Spark gives, for all values whose texts in JSON are the same: a row that stays keeps its key
when the seed is loaded again. Where a text differs, the row is replaced, with no other effect.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal

import pyarrow as pa

from sqlmesh_like.hudi.recovery.table_swap import has_remains
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.writer.arrow_schema import UnsupportedRowsError, file_schema
from sqlmesh_like.hudi.writer.kept_layout import keeps_layout
from sqlmesh_like.hudi.writer.new_table import NewTable, table_name, table_schema
from sqlmesh_like.hudi.writer.open_commit import settled_timeline
from sqlmesh_like.hudi.writer.table_support import unsupported_option, unsupported_reason
from sqlmesh_like.names import HUDI_COLUMNS, IS_DELETED, KEY, Column, is_store
from sqlmesh_like.plan.history import RECORD_KEY, TableRecord, TableState
from sqlmesh_like.run.seeds import SeedTable


def load_here(table: SeedTable, state: TableState, now: datetime, hudi: Mapping[str, object]) -> bool:
    """Replace the rows of a seed's table, or make it; False if Spark has to.

    Readers see the old rows or the new ones. Raises RetryableError where another writer was there.
    """
    seed, options = table.seed, {name: str(value) for name, value in hudi.items()}
    if unsupported_option(options) or not (is_store(state.uri) or _is_settled(state)):
        return False
    made = NewTable(state.uri, table_name(seed.table), (*table.schema, Column(KEY, "string")))
    record = TableRecord(
        seed.unique_id, table.fingerprint, {}, now.isoformat(), "seed", rows={"upserts": len(table.rows)}
    )  # fmt: skip
    try:
        _write(made, _arrow(table, made), state, {RECORD_KEY: record.to_json()}, options)
    except (
        UnsupportedRowsError,
        pa.ArrowInvalid,
        pa.ArrowTypeError,
        OverflowError,
    ):
        return False
    return True


def _write(
    made: NewTable, rows: pa.Table, state: TableState, metadata: Mapping[str, str], options: Mapping[str, str]
) -> None:
    """Raises UnsupportedRowsError where only Spark can write this table."""
    if state.kind == "missing":
        made.write(rows, metadata)
    elif state.frontier and keeps_layout(state, made.columns, (), made.buckets, "cow"):
        timeline = settled_timeline(state.uri)
        if reason := unsupported_reason(timeline, (), None, options):
            raise UnsupportedRowsError(reason)
        made.overwrite(timeline, state.frontier, rows, metadata)
    else:
        made.replace(rows, metadata)


def _is_settled(state: TableState) -> bool:
    """Whether no table was being built, or swapped, at a place on a disk when a process died."""
    return not (has_remains(state.uri) or (state.kind == "missing" and folder(state.uri).exists()))


def _arrow(table: SeedTable, made: NewTable) -> pa.Table:
    """The rows with their keys, as the table has them."""
    fields = [field for field in file_schema(table_schema(made)) if field.name not in (*HUDI_COLUMNS, IS_DELETED)]
    rows = table.naive_rows()
    values = zip(*rows, strict=True) if rows else ((),) * len(table.schema)
    columns = [pa.array(column, field.type) for column, field in zip(values, fields, strict=False)]
    typed = pa.table(columns, schema=pa.schema(fields[:-1]))
    return typed.append_column(fields[-1], pa.array(_keys(typed, table.unique_key), pa.string()))


def _keys(rows: pa.Table, unique_key: Sequence[str]) -> list[str]:
    """A hash of `unique_key`, or of the whole row, and a number among rows with the same hash."""
    seen, keys = Counter[str](), []
    for row in rows.select(list(unique_key) or rows.column_names).to_pylist():
        text = ",".join(f"{_text(name)}:{_text(value)}" for name, value in row.items())
        hashed = hashlib.sha256(f"{{{text}}}".encode(errors="surrogatepass")).hexdigest()
        seen[hashed] += 1
        keys.append(f"{hashed}.{seen[hashed]}")
    return keys


def _text(value: object) -> str:
    """A value in JSON, as Spark writes it.

    >>> _text(Decimal("1.50")), _text(datetime(2024, 1, 31, 12)), _text("a\\"é"), _text(None)
    ('1.50', '"2024-01-31T12:00:00.000Z"', '"a\\\\"é"', 'null')
    """
    match value:
        case None | bool() | int() | str():
            return json.dumps(value, ensure_ascii=False)
        case Decimal():
            return format(value, "f")
        case datetime():
            return f'"{value.replace(tzinfo=None).isoformat(timespec="milliseconds")}Z"'
    return json.dumps(str(value), ensure_ascii=False)
