"""What AWS Database Migration Service writes. Owns its two layouts; knows no engine.

In files, a line or Parquet row is the row itself; `Op` says I, U or D and is absent in a full load; database and table
are the two folders that DMS creates. In streams, a message holds `data` and `metadata` (operation load, insert, update,
delete), and `before-image` where that is switched on under this name.
Format: https://docs.aws.amazon.com/dms/latest/userguide/CHAP_Target.S3.html, and CHAP_Target.Kafka.html
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from sqlmesh_like.cdc.formats.message import (
    CORRUPT,
    Message,
    MessageDialect,
    is_tombstone,
    kind_of,
    op_of,
    parsed_message,
)
from sqlmesh_like.cdc.formats.source_types import file_fields, sql_literal

ROW, STREAM = "dms row", "dms"
OP = "Op"
_METADATA = "STRUCT<operation: STRING, `record-type`: STRING, `schema-name`: STRING, `table-name`: STRING>"
_ENVELOPE = f"{OP} STRING, data STRING, metadata {_METADATA}, `before-image` STRING, {CORRUPT} STRING"
OPS: Mapping[str, tuple[str, str]] = {
    "I": ("upsert", "c"),
    "U": ("upsert", "u"),
    "D": ("delete", "d"),
    "load": ("upsert", "r"),
    "insert": ("upsert", "c"),
    "update": ("upsert", "u"),
    "delete": ("delete", "d"),
    "truncate-table": ("truncate", "t"),
}
"""(kind, op) by operation."""
ROW_OPS: Mapping[str, tuple[str, str]] = {name: OPS[name] for name in ("I", "U", "D", "load")}
"""The operations of rows in files."""


def dms_envelope(line: str) -> dict[str, str]:
    """Spark SQL of the members that every message has, in order of evaluation: see `MessageDialect`."""
    return {
        "_message": parsed_message(line, _ENVELOPE),
        "_in_stream": "_message.metadata.operation is not null",
        "_operation": f"if(_in_stream, _message.metadata.operation, coalesce(_message.{OP}, 'load'))",
        "op": op_of("_operation", OPS),
        "database": "coalesce(_message.metadata.`schema-name`, log_database)",
        "source_schema": "cast(null as string)",
        "source_table": "coalesce(_message.metadata.`table-name`, log_table)",
        "schema_text": "if(_in_stream, null, log_schema)",
        "message": f"if(_in_stream, {sql_literal(STREAM)}, {sql_literal(ROW)})",
        "reason": _reason(line),
        "kind": kind_of(line, "_operation", OPS),
    }


def _reason(line: str) -> str:
    row_ops = ", ".join(map(sql_literal, ROW_OPS))
    return (
        f"case when {is_tombstone(line)} then null "
        f"when _message is null or _message.{CORRUPT} is not null then 'not a JSON object of DMS' "
        "when _message.metadata.`record-type` = 'control' and op is null then null "
        "when op is null then concat('unknown operation `', _operation, '`') "
        f"when not _in_stream and _operation not in ({row_ops}) then concat('unknown {OP} `', _operation, '`') "
        "when coalesce(source_table, '') = '' then 'no table: neither in `metadata` nor by its folder' "
        "when op = 't' then null "
        "when _in_stream and _message.data is null then concat('operation `', _operation, '` without `data`') "
        "when _in_stream and left(ltrim(_message.data), 1) != '{' then '`data` is not a row' "
        "end"
    )


DMS_MESSAGES: Mapping[str, Message] = {
    ROW: Message("row", ignored=frozenset({OP}), fields=partial(file_fields, operation=OP)),
    STREAM: Message("pair", (), "data", "before-image"),
}
DMS = MessageDialect(dms_envelope)
