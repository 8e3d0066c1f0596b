"""Maxwell's JSON messages. Owns their envelope; knows no engine.

A message holds one row (`data`), for updates with the former values of what changed (`old`). It states no types.
Bootstrap rows are a snapshot; messages about the bootstrap itself and DDL carry no row.
Format: https://maxwells-daemon.io/dataformat/
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlmesh_like.cdc.formats.message import (
    CORRUPT,
    Message,
    MessageDialect,
    is_tombstone,
    kind_of,
    names_in,
    op_of,
    parsed_message,
)
from sqlmesh_like.cdc.formats.source_types import sql_literal

MAXWELL_NAME = "maxwell"
_ENVELOPE = f"type STRING, `database` STRING, `table` STRING, data STRING, old STRING, {CORRUPT} STRING"
_OPS: Mapping[str, tuple[str, str]] = {
    "insert": ("upsert", "c"),
    "bootstrap-insert": ("upsert", "r"),
    "update": ("upsert", "u"),
    "delete": ("delete", "d"),
}
_WITHOUT_ROW = (
    *("bootstrap-start", "bootstrap-complete", "heartbeat"),
    *("database-create", "database-alter", "database-drop", "table-create", "table-alter", "table-drop"),
)


def maxwell_envelope(line: str) -> dict[str, str]:
    """Spark SQL of the members that every message has, in order of evaluation: see `MessageDialect`."""
    return {
        "_message": parsed_message(line, _ENVELOPE),
        "op": op_of("_message.type", _OPS),
        "database": "_message.`database`",
        "source_schema": "cast(null as string)",
        "source_table": "_message.`table`",
        "schema_text": "cast(null as string)",
        "message": sql_literal(MAXWELL_NAME),
        "reason": _reason(line),
        "kind": kind_of(line, "_message.type", _OPS),
    }


def _reason(line: str) -> str:
    known = ", ".join(map(sql_literal, (*_OPS, *_WITHOUT_ROW)))
    return (
        f"case when {is_tombstone(line)} then null "
        f"when _message is null or _message.{CORRUPT} is not null then 'not a JSON object of a Maxwell message' "
        "when _message.type is null then 'no `type`: not a Maxwell message' "
        f"when _message.type not in ({known}) then concat('unknown type `', _message.type, '`') "
        "when op is null then null "
        "when coalesce(source_table, '') = '' then 'no `table`' "
        "when _message.data is null then concat('type `', _message.type, '` without `data`') "
        "when left(ltrim(_message.data), 1) != '{' then '`data` is not a row' "
        "end"
    )


MAXWELL_MESSAGES: Mapping[str, Message] = {MAXWELL_NAME: Message("overlay", (), "data", "old")}
# Present if `output_primary_key_columns` is on; in Kafka, the record's key names them too, as `pk.<column>`.
_IN_KEY = names_in("log_key", "^(?!pk[.])")
MAXWELL_KEY = (
    "coalesce(from_json(get_json_object(value, '$.primary_key_columns'), 'array<string>'), "
    f"nullif(transform({_IN_KEY}, name -> substr(name, 4)), cast(array() as array<string>)))"
)
MAXWELL = MessageDialect(maxwell_envelope, MAXWELL_KEY)
