"""Debezium's flattened events: each message is the row alone, as the transform ExtractNewRecordState leaves it.

Owns where these say what happened: `__op` and `__deleted`, or a message without a value: its key is that of a deleted
row. What else `add.fields` puts beside the row (`__lsn`, `__source_ts_ms`, …) is a column only if the table declares
it. The table is named by `__table` and `__db` (`add.fields: op,table,db`), else by the topic or the folders. Documents
of MongoDB are such rows, too, as ExtractNewDocumentState leaves them; `__collection` names their table.
Format: https://debezium.io/documentation/reference/stable/transformations/event-flattening.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlmesh_like.cdc.formats.debezium import DEBEZIUM_KEY, DEBEZIUM_KINDS
from sqlmesh_like.cdc.formats.debezium_types import row_fields
from sqlmesh_like.cdc.formats.message import (
    CORRUPT,
    Message,
    MessageDialect,
    has_no_value,
    is_tombstone,
    key_as_row,
    op_of,
    parsed_message,
    whens,
)
from sqlmesh_like.cdc.formats.source_types import SourceField, sql_literal

FLAT, FLAT_ENVELOPED = "debezium flat", "debezium flat in payload"
_ADDED = ("op", "deleted", "table", "collection", "db", "schema", "source_table", "source_db", "source_schema")
_ROW = ", ".join(f"__{name} STRING" for name in _ADDED)
_ENVELOPE = (
    f"schema STRUCT<type: STRING, fields: STRING>, payload STRUCT<{_ROW.replace(' STRING', ': STRING')}>, "
    f"{_ROW}, {CORRUPT} STRING"
)
_KINDS = {**DEBEZIUM_KINDS, "w": "upsert"}
_OPS: Mapping[str, tuple[str, str]] = {op: (kind, op) for op, kind in _KINDS.items()}
_IGNORED = frozenset({"__op", "__deleted"})
METADATA = (
    r"__(table|collection|rs|ord|db|schema|name|connector|version|snapshot|sequence|lsn|xmin|txId|ts_ms|ts_us|ts_ns|pos|file|row|gtid|"
    r"server_id|thread|query|scn|commit_scn|change_lsn|commit_lsn|event_serial_no|source_\w+|transaction_\w+|dbz__\w+)"
)
"""Names that `add.fields` gives to parts of an event that are not columns of its table."""


VALUE = key_as_row('"__deleted":"true"')


def flat_envelope(line: str) -> dict[str, str]:
    """Spark SQL of the members that every event has, in order of evaluation: see `MessageDialect`."""
    return {
        "_message": parsed_message(line, _ENVELOPE),
        "_in_payload": "_message.schema.type is not null and _message.payload is not null",
        "_added": "if(_in_payload, _message.payload, struct("
        + ", ".join(f"_message.__{name} as __{name}" for name in _ADDED)
        + "))",
        # Without `__op`, an insert looks like an update: `w`, a row that was written.
        "_op": "case when _added.__deleted = 'true' then 'd' else coalesce(_added.__op, 'w') end",
        "op": op_of("_op", _OPS),
        "database": "coalesce(_added.__db, _added.__source_db, log_database)",
        "source_schema": "coalesce(_added.__schema, _added.__source_schema)",
        "source_table": "coalesce(_added.__table, _added.__source_table, _added.__collection, log_table)",
        "schema_text": "if(_in_payload, _message.schema.fields, null)",
        "message": f"if(_in_payload, {sql_literal(FLAT_ENVELOPED)}, {sql_literal(FLAT)})",
        "reason": _reason(line),
        "kind": f"case when reason is not null then 'bad' when {is_tombstone(line)} then 'tombstone' "
        f"else case op {whens(_KINDS)} end end",
    }


def _reason(line: str) -> str:
    no_key = (
        "a delete without a value or a key: set delete.tombstone.handling.mode=rewrite of ExtractNewRecordState "
        "(delete.handling.mode=rewrite before Debezium 2.5)"
    )
    whole = "not a flattened event but a whole one: set format: debezium"
    return (
        f"case when {has_no_value(line)} then {sql_literal(no_key)} when {is_tombstone(line)} then null "
        f"when _message is null or _message.{CORRUPT} is not null then 'not a JSON object of a flattened event' "
        f"when get_json_object(value, '$.op') is not null and get_json_object(value, '$.source') is not null "
        f"then {sql_literal(whole)} "
        f"when get_json_object(value, '$.payload.op') is not null and get_json_object(value, '$.payload.source') "
        f"is not null then {sql_literal(whole)} "
        "when op is null then concat('unknown __op `', _op, '`') "
        "when coalesce(source_table, '') = '' then "
        "'no table: neither `__table` (add.fields: op,table,db) nor a topic or folder of its name' "
        "end"
    )


def flat_fields(schema_text: str) -> tuple[SourceField, ...]:
    """The columns that the `fields` of a `schema` block (JSON) state.

    >>> [field.type for field in flat_fields('[{"field": "id", "type": "int32"}, {"field": "__op", "type": "string"}]')]
    ['int']
    """
    return row_fields(schema_text, _IGNORED)


_MESSAGE = Message(
    "row", ignored=_IGNORED, marks_unavailable=True, is_compact=True, counts_days=True, metadata=METADATA
)
FLAT_MESSAGES: Mapping[str, Message] = {
    FLAT: _MESSAGE,
    FLAT_ENVELOPED: replace(_MESSAGE, new="payload", fields=flat_fields),
}
DEBEZIUM_FLAT = MessageDialect(flat_envelope, DEBEZIUM_KEY, value=VALUE)
