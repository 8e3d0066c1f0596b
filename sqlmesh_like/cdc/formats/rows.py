"""Rows instead of change events: a JSON object a line or message, a line of CSV, a row of a Parquet file.

Owns what they mean: each row is inserted, or replaces the row that has its key; a message without a value deletes the
row of its key, as compacted topics mean it. The topic or the folders name the table. With a `schema` block, as Kafka
Connect's converters write it (sources such as JDBC's), the row is in `payload`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from sqlmesh_like.cdc.formats.debezium import DEBEZIUM_KEY
from sqlmesh_like.cdc.formats.debezium_types import row_fields
from sqlmesh_like.cdc.formats.dms import OPS
from sqlmesh_like.cdc.formats.message import (
    CORRUPT,
    Message,
    MessageDialect,
    has_no_value,
    is_tombstone,
    key_as_row,
    kind_of,
    op_of,
    parsed_message,
)
from sqlmesh_like.cdc.formats.source_types import file_fields, sql_literal

ROW, ENVELOPED_ROW, FILE_ROW = "row", "row in payload", "row of a file"
OPERATION = "_sml_op"
"""Member of a message that was made of a key alone, and column of files; no source has one."""
_ENVELOPE = f"schema STRUCT<type: STRING, fields: STRING>, payload STRING, {OPERATION} STRING, {CORRUPT} STRING"
_OPS: Mapping[str, tuple[str, str]] = {"load": OPS["load"], "D": OPS["D"]}


def row_envelope(line: str) -> dict[str, str]:
    """Spark SQL of the members that every message has, in order of evaluation: see `MessageDialect`."""
    return {
        "_message": parsed_message(line, _ENVELOPE),
        "_in_payload": "_message.schema.type is not null and _message.payload is not null",
        "_operation": f"coalesce(_message.{OPERATION}, 'load')",
        "op": op_of("_operation", _OPS),
        "database": "log_database",
        "source_schema": "cast(null as string)",
        "source_table": "log_table",
        "schema_text": "if(_in_payload, _message.schema.fields, log_schema)",
        "message": f"if(_in_payload, {sql_literal(ENVELOPED_ROW)}, if(log_schema is null, {sql_literal(ROW)}, "
        f"{sql_literal(FILE_ROW)}))",
        "reason": _reason(line),
        "kind": f"if(reason is not null, 'bad', {kind_of(line, '_operation', _OPS)})",
    }


def _reason(line: str) -> str:
    no_key = "a message without a value, and its key is not a JSON object: which row is deleted?"
    return (
        f"case when {has_no_value(line)} then {sql_literal(no_key)} when {is_tombstone(line)} then null "
        f"when _message is null or _message.{CORRUPT} is not null then 'not a JSON object of a row' "
        "when op is null then concat('unknown operation `', _operation, '`') "
        "when coalesce(source_table, '') = '' then 'no table: neither a topic nor a folder of its name' "
        "when _in_payload and left(ltrim(_message.payload), 1) != '{' then '`payload` is not a row' "
        "end"
    )


_MESSAGE = Message("row", ignored=frozenset({OPERATION}))
ROW_MESSAGES: Mapping[str, Message] = {
    ROW: _MESSAGE,
    ENVELOPED_ROW: replace(_MESSAGE, new="payload", fields=row_fields),
    FILE_ROW: replace(_MESSAGE, fields=partial(file_fields, operation=OPERATION)),
}
ROWS = MessageDialect(row_envelope, DEBEZIUM_KEY, value=key_as_row(f'"{OPERATION}":"D"'))
