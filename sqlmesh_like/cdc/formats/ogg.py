"""Oracle GoldenGate's JSON (operation mode, `gg.handler.<name>.format: json`). Owns its envelope; knows no engine.

A message names its table as `schema.table` or `catalog.schema.table`, the operation (`op_type`) and, where the handler
is told to, the key's columns. A column that the trail does not have is left out of its image, which is not the same as
NULL: updates count as partial, unless a table declares that they are full.
Format: https://docs.oracle.com/en/middleware/goldengate/big-data/23/gadbd/using-pluggable-formatters.html
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlmesh_like.cdc.formats.message import (
    CORRUPT,
    Message,
    MessageDialect,
    is_tombstone,
    kind_of,
    op_of,
    parsed_message,
)
from sqlmesh_like.cdc.formats.source_types import sql_literal

OGG_NAME = "ogg"
_ENVELOPE = f"`table` STRING, op_type STRING, before STRING, after STRING, {CORRUPT} STRING"
_OPS: Mapping[str, tuple[str, str]] = {
    "I": ("upsert", "c"),
    "U": ("upsert", "u"),
    "D": ("delete", "d"),
    "T": ("truncate", "t"),
}
_MISSING = r'_isMissing"\s*:\s*true'
_PARTS = "split(_message.`table`, '[.]')"


def ogg_envelope(line: str) -> dict[str, str]:
    """Spark SQL of the members that every message has, in order of evaluation: see `MessageDialect`."""
    return {
        "_message": parsed_message(line, _ENVELOPE),
        "op": op_of("_message.op_type", _OPS),
        "database": f"if(size({_PARTS}) > 1, {_PARTS}[0], null)",
        "source_schema": f"if(size({_PARTS}) > 2, {_PARTS}[1], null)",
        "source_table": f"element_at({_PARTS}, -1)",
        "schema_text": "cast(null as string)",
        "message": sql_literal(OGG_NAME),
        "reason": _reason(line),
        "kind": kind_of(line, "_message.op_type", _OPS),
    }


def _reason(line: str) -> str:
    image = "if(op = 'd', _message.before, _message.after)"
    name = "if(op = 'd', '`before`', '`after`')"
    return (
        f"case when {is_tombstone(line)} then null "
        f"when _message is null or _message.{CORRUPT} is not null then 'not a JSON object of a GoldenGate message' "
        "when _message.op_type is null then 'no `op_type`: not a GoldenGate message' "
        "when op is null then concat('unknown op_type `', _message.op_type, '`') "
        "when coalesce(source_table, '') = '' then 'no `table`' "
        "when op = 't' then null "
        f"when {image} is null then concat('op_type `', _message.op_type, '` without ', {name}, "
        "if(get_json_object(value, '$.op_ts') is null, '', "
        "': format json_row is not read, set gg.handler.<name>.format=json')) "
        f"when {image} rlike {sql_literal(_MISSING)} then 'a column is marked `_isMissing`: let it be left out' "
        f"when left(ltrim({image}), 1) != '{{' then concat({name}, ' is not a row') "
        "end"
    )


OGG_MESSAGES: Mapping[str, Message] = {OGG_NAME: Message("pair", (), "after", "before", is_whole=False)}
OGG_KEY = "from_json(get_json_object(value, '$.primary_keys'), 'array<string>')"
_MEMBERS = "concat_ws('\\n', json_object_keys(_message.before), json_object_keys(_message.after))"
OGG = MessageDialect(ogg_envelope, OGG_KEY, _MEMBERS)
