"""What Flink CDC and Flink's changelog formats write. Owns where they differ from Debezium and Canal; knows no engine.

Flink CDC's Kafka sink writes `debezium-json` (the default; `source` has only `db` and `table`) or `canal-json` (values
of any JSON type, no `mysqlType`). Flink's own sinks write the same without any table name, and an update as a delete
and an insert: such messages are assigned by the topic or file they are in.
Format: https://nightlies.apache.org/flink/flink-cdc-docs-stable/docs/connectors/pipeline-connectors/kafka/ and
https://nightlies.apache.org/flink/flink-docs-stable/docs/connectors/table/formats/debezium/
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlmesh_like.cdc.formats import canal, debezium
from sqlmesh_like.cdc.formats.debezium_types import schema_fields
from sqlmesh_like.cdc.formats.encoding import Encoding
from sqlmesh_like.cdc.formats.message import Message, MessageDialect, names_in
from sqlmesh_like.cdc.formats.source_types import COUNTS, SourceField, sql_literal

IS_CANAL = "coalesce(get_json_object(value, '$.op') is null and get_json_object(value, '$.type') is not null, false)"
"""Spark SQL over a line's `value`: whether it is a `canal-json` message."""


def _named_by_log(envelope: dict[str, str]) -> dict[str, str]:
    named = {
        "message": f"concat({sql_literal(_PREFIX)}, {envelope['message']})",
        "database": f"coalesce({envelope['database']}, log_database)",
        "source_table": f"coalesce({envelope['source_table']}, log_table)",
    }
    return {**envelope, **named}


def flink_fields(schema_text: str) -> tuple[SourceField, ...]:
    """The columns that the `schema` of `debezium-json` states. Its values are not encoded as it says.

    Flink writes dates and times as texts and decimals as numbers, whatever semantic type the schema names; a number of
    a date or time counts what the schema says. Bits are bytes of a binary column.
    """
    return tuple(_as_flink_writes(field) for field in schema_fields(schema_text))


def _as_flink_writes(field: SourceField) -> SourceField:
    if field.encoding in COUNTS:
        return replace(field, encoding=Encoding.PLAIN, unit=field.encoding)
    if field.encoding is Encoding.BASE64_DECIMAL:
        # Its default is encoded.
        return replace(field, encoding=Encoding.PLAIN, default=None)
    if field.encoding is Encoding.BITS:
        return replace(field, type="binary", encoding=Encoding.BASE64, default=None)
    return field


_PREFIX = "flink_cdc "
FLINK_MESSAGES: Mapping[str, Message] = {
    **{
        _PREFIX + name: replace(message, counts_days=False, fields=flink_fields)
        for name, message in debezium.DEBEZIUM_MESSAGES.items()
    },
    **{_PREFIX + name: message for name, message in canal.CANAL_MESSAGES.items()},
}
# Flink CDC's Kafka sink puts the table's name into a record's key.
_KEY = names_in("log_key", "^TableId$")
LIKE_DEBEZIUM = MessageDialect(lambda line: _named_by_log(debezium.debezium_envelope(line)), _KEY)
LIKE_CANAL = MessageDialect(
    lambda line: _named_by_log(canal.canal_envelope(line)), f"coalesce({canal.CANAL_KEY}, {_KEY})"
)
