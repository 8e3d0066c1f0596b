"""Debezium's JSON change events. Owns the envelope and the kinds of message; `debezium_types` reads the `schema` block.

Format: https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-events, and the same of the
connectors for PostgreSQL, SQL Server and MariaDB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlmesh_like.cdc.formats.debezium_types import schema_fields
from sqlmesh_like.cdc.formats.message import CORRUPT, Message, MessageDialect, is_tombstone, names_in, parsed_message
from sqlmesh_like.cdc.formats.source_types import sql_literal

_TEXTS = (
    *("op STRING", "before STRING", "after STRING"),
    "source STRUCT<db: STRING, `schema`: STRING, `table`: STRING, collection: STRING>",
    *("ddl STRING", "status STRING", "ts_ms STRING"),
)
_ENVELOPE = f"schema STRING, payload STRUCT<{', '.join(text.replace(' ', ': ', 1) for text in _TEXTS)}>, "
_ENVELOPE += f"{', '.join(_TEXTS)}, {CORRUPT} STRING"

FLAT_MEMBER = '"__(op|deleted)"'
"""A pattern of what flattened events have."""
_IS_FLAT = "no `op`, but what ExtractNewRecordState adds: of flattened events the format is debezium_flat"

_IS_DOCUMENT = "an event of MongoDB: let the transform ExtractNewDocumentState (add.fields: op,db,collection) make rows"
_IS_DOCUMENT += " of its documents, and set format: debezium_flat"

DEBEZIUM_KINDS = {"c": "upsert", "u": "upsert", "r": "upsert", "d": "delete", "t": "truncate", "m": "skip"}


def debezium_envelope(line: str) -> dict[str, str]:
    """Spark SQL of the members that every event has, in order of evaluation: see `MessageDialect`."""
    cases = " ".join(
        f"when _body.op = {sql_literal(op)} then {sql_literal(kind)}" for op, kind in DEBEZIUM_KINDS.items()
    )
    return {
        "_message": parsed_message(line, _ENVELOPE),
        "is_enveloped": "_message.payload is not null and _message.op is null",
        "_body": "if(is_enveloped, _message.payload, struct("
        + ", ".join(f"_message.{name}" for name in ("op", "before", "after", "source", "ddl", "status", "ts_ms"))
        + "))",
        "op": "_body.op",
        "database": "_body.source.db",
        "source_schema": "_body.source.`schema`",
        "source_table": "_body.source.`table`",
        "schema_text": "if(is_enveloped, get_json_object(_message.schema, '$.fields'), null)",
        "message": f"if(is_enveloped, {sql_literal(ENVELOPED)}, {sql_literal(PLAIN)})",
        "reason": debezium_reason(line),
        "kind": f"case when {is_tombstone(line)} then 'tombstone' when reason is not null then 'bad' "
        f"when _body.op is null then 'skip' {cases} end",
    }


def debezium_reason(line: str) -> str:
    """Spark SQL: why a line is malformed, or NULL. Heartbeats, DDL and transaction messages lack `op` and rows."""
    # A row without an envelope may have a column `status`.
    transaction = "if(_body.status in ('BEGIN', 'END'), _body.status, null)"
    no_row = (
        "_body.op is null and _body.before is null and _body.after is null"
        f" and coalesce(_body.ddl, {transaction}, if(_body.source is null, _body.ts_ms, null)) is not null"
    )
    known = ", ".join(map(sql_literal, DEBEZIUM_KINDS))
    image = "if(_body.op = 'd', _body.before, _body.after)"
    return (
        f"case when {is_tombstone(line)} then null "
        f"when _message is null or _message.{CORRUPT} is not null then 'not a JSON object of a change event' "
        f"when _body.op is null and {line} rlike {sql_literal(FLAT_MEMBER)} then {sql_literal(_IS_FLAT)} "
        f"when {no_row} then null "
        "when _body.op is null then 'no `op`: not a Debezium change event' "
        f"when _body.op not in ({known}) then concat('unknown op `', _body.op, '`') "
        "when _body.op = 'm' then null "
        f"when source_table is null and _body.source.collection is not null then {sql_literal(_IS_DOCUMENT)} "
        "when coalesce(source_table, '') = '' then 'no `source.table`' "
        "when _body.op = 't' then null "
        f"when {image} is null then concat('op `', _body.op, '` without ', if(_body.op = 'd', '`before`', '`after`')) "
        f"when left(ltrim({image}), 1) != '{{' then concat(if(_body.op = 'd', '`before`', '`after`'), ' is not a row') "
        "end"
    )


PLAIN, ENVELOPED = "debezium", "debezium in payload"
_CONNECTOR = (
    "coalesce(get_json_object(value, '$.source.connector'), get_json_object(value, '$.payload.source.connector'))"
)
_MESSAGE = Message(
    *("pair", (), "after", "before"),
    fields=schema_fields,
    marks_unavailable=True,
    is_compact=True,
    counts_days=True,
    # With REPLICA IDENTITY DEFAULT; columns that are NOT NULL have their default then, or 0, '' and the like.
    only_key=f"{_CONNECTOR} <=> 'postgresql'",
)
DEBEZIUM_MESSAGES: Mapping[str, Message] = {
    PLAIN: _MESSAGE,
    ENVELOPED: replace(_MESSAGE, path=("payload",)),
}
_ROUTERS = "^__dbz__"
_PAYLOAD = "get_json_object(log_key, '$.payload')"
DEBEZIUM_KEY = f"coalesce({names_in(_PAYLOAD, _ROUTERS)}, {names_in('log_key', _ROUTERS)})"
"""Spark SQL of the key columns, with or without a schema, less the one that Debezium's topic router adds."""
MEMBERS = "concat_ws('\\n', json_object_keys(_body.before), json_object_keys(_body.after))"
DEBEZIUM = MessageDialect(debezium_envelope, DEBEZIUM_KEY, MEMBERS)
