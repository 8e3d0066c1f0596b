"""DDL that makes a Hudi table visible in Hive and Athena. Owns the statements; runs none of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import HUDI_COLUMNS, TableName
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.sql_text import hive_literal
from sqlmesh_like.sql_text import spark_identifier as _quoted

DdlDialect = Literal["hive", "athena"]

_SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_OUTPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
_INPUT = {
    "cow": "org.apache.hudi.hadoop.HoodieParquetInputFormat",
    "mor": "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat",
}


def external_ddl(table: TableName, state: TableState, dialect: DdlDialect) -> list[str]:
    """Statements that declare a built Hudi table and its present partitions; run them again after new partitions.

    Hudi's five metadata columns come first, then the stored columns, including hidden ones.
    """
    assert state.frontier is not None and state.stored is not None
    timeline = Timeline(state.uri)
    fields = timeline.partition_fields
    name = f"{_quoted(table.schema)}.{_quoted(table.identifier)}"
    paths = sorted({file_slice.partition for file_slice in timeline.slices(state.frontier).values()} if fields else ())
    return [
        _create(name, state, fields, _location(state.uri, dialect)),
        *_partitions(name, fields, paths, _location(state.uri, dialect)),
    ]


def _create(name: str, state: TableState, fields: Sequence[str], location: str) -> str:
    stored = state.stored or ()
    types = {column.name: column.type or "string" for column in stored}
    columns = [*HUDI_COLUMNS, *(column.name for column in stored if column.name not in (*HUDI_COLUMNS, *fields))]
    lines = ",\n".join(f"  {_quoted(column)} {types.get(column, 'string')}" for column in columns)
    split = ", ".join(f"{_quoted(field)} {types.get(field, 'string')}" for field in fields)
    return "\n".join(
        [
            f"CREATE EXTERNAL TABLE IF NOT EXISTS {name} (\n{lines}\n)",
            *([f"PARTITIONED BY ({split})"] if fields else []),
            f"ROW FORMAT SERDE '{_SERDE}'",
            f"STORED AS INPUTFORMAT '{_INPUT[state.kind]}'",
            f"OUTPUTFORMAT '{_OUTPUT}'",
            f"LOCATION {hive_literal(location)}",
        ]
    )


def _partitions(name: str, fields: Sequence[str], paths: Sequence[str], location: str) -> Iterator[str]:
    """Paths are `field=value`, or the value alone."""
    for path in paths:
        values = [part.rpartition("=")[2] if "=" in part else part for part in path.split("/")]
        if len(values) == len(fields):
            pairs = ", ".join(f"{_quoted(f)} = {hive_literal(v)}" for f, v in zip(fields, values, strict=True))
            place = hive_literal(f"{location}/{path}")
            yield f"ALTER TABLE {name} ADD IF NOT EXISTS PARTITION ({pairs}) LOCATION {place}"


def _location(uri: str, dialect: DdlDialect) -> str:
    """The table's URI with its scheme. Athena does not know `s3a`."""
    full = uri if "://" in uri else f"file://{folder(uri).path}"
    return full.replace("s3a://", "s3://", 1) if dialect == "athena" else full
