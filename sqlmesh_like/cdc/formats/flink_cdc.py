"""What Flink CDC and Flink's changelog formats write. Owns where they differ from Debezium and Canal; knows no engine.

Flink CDC's Kafka sink writes `debezium-json` (the default; `source` has only `db` and `table`) or `canal-json` (values
of any JSON type, no `mysqlType`). Flink's own sinks write the same without any table name, and an update as a delete
and an insert: such messages are assigned by the topic or file they are in.
Format: https://nightlies.apache.org/flink/flink-cdc-docs-stable/docs/connectors/pipeline-connectors/kafka/ and
https://nightlies.apache.org/flink/flink-docs-stable/docs/connectors/table/formats/debezium/
"""

from __future__ import annotations

from sqlmesh_like.cdc.formats import canal, debezium
from sqlmesh_like.cdc.formats.message import MessageDialect, names_in

IS_CANAL = "coalesce(get_json_object(value, '$.op') is null and get_json_object(value, '$.type') is not null, false)"
"""Spark SQL over a line's `value`: whether it is a `canal-json` message."""


def _like_debezium(line: str) -> dict[str, str]:
    return _named_by_log(debezium.debezium_envelope(line))


def _like_canal(line: str) -> dict[str, str]:
    return _named_by_log(canal.canal_envelope(line))


def _named_by_log(envelope: dict[str, str]) -> dict[str, str]:
    named = {
        "database": f"coalesce({envelope['database']}, log_database)",
        "source_table": f"coalesce({envelope['source_table']}, log_table)",
    }
    return {**envelope, **named}


# Flink CDC's Kafka sink puts the table's name into a record's key.
_KEY = names_in("log_key", "^TableId$")
LIKE_DEBEZIUM = MessageDialect(_like_debezium, _KEY)
LIKE_CANAL = MessageDialect(_like_canal, f"coalesce({canal.CANAL_KEY}, {_KEY})")
