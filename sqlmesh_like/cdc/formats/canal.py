"""Alibaba Canal's flat JSON messages. Owns their envelope and the MySQL types they state; knows no engine.

A message holds many rows of one statement (`data`), for updates with the former values of what changed (`old`, one by
one), and the columns' types (`mysqlType`). All values are texts. DDL comes as `isDdl`; a TRUNCATE empties the table.
Format: https://github.com/alibaba/canal/wiki/Canal-Kafka-RocketMQ-QuickStart, `flatMessage` of canal.mq.flatMessage.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace

from sqlmesh_like.cdc.formats.encoding import Encoding
from sqlmesh_like.cdc.formats.message import (
    CORRUPT,
    Message,
    MessageDialect,
    is_tombstone,
    kind_of,
    op_of,
    parsed_message,
)
from sqlmesh_like.cdc.formats.source_types import MAX_PRECISION, SourceField, sql_literal

CANAL_NAME = "canal"
_ENVELOPE = (
    "type STRING, isDdl BOOLEAN, `database` STRING, `table` STRING, data ARRAY<STRING>, old STRING, "
    f"mysqlType STRING, sqlType STRING, sql STRING, {CORRUPT} STRING"
)
_OPS: Mapping[str, tuple[str, str]] = {
    "INSERT": ("upsert", "c"),
    "INIT": ("upsert", "r"),
    "UPDATE": ("upsert", "u"),
    "DELETE": ("delete", "d"),
    "TRUNCATE": ("truncate", "t"),
}
_DDL = (
    "CREATE",
    "ALTER",
    "ERASE",
    "RENAME",
    "QUERY",
    "CINDEX",
    "DINDEX",
    "TINDEX",
    "TIDB_WATERMARK",
    "GTID",
    "XACOMMIT",
)

_UNTYPED = (
    "array_except(flatten(transform(_message.data, row -> coalesce(json_object_keys(row), array()))), "
    "json_object_keys(_message.mysqlType))"
)
"""Columns of the rows that `mysqlType` lacks: they would be lost silently. NULL where there is no `mysqlType`."""


_TEXT_CODES = (1, 12, -1, -9, -15, -16, 2005)
"""What JDBC calls CHAR, VARCHAR and the like. From the binlog, Canal writes the number of an enumeration's label."""
_IS_LABELLED = "(?i)^(?:enum|set)[(]"
_NUMBERED = (
    "map_keys(map_filter(from_json(_message.sqlType, 'map<string, int>'), (name, code) -> "
    f"try_element_at(from_json(_message.mysqlType, 'map<string, string>'), name) rlike {sql_literal(_IS_LABELLED)}"
    f" and code not in ({', '.join(map(str, _TEXT_CODES))})))"
)
_SCHEMA_TEXT = (
    "if(_message.mysqlType rlike '(?i)\"(?:enum|set)[(]', concat('[', _message.mysqlType, ', ', "
    f"coalesce(to_json({_NUMBERED}), '[]'), ']'), _message.mysqlType)"
)
"""`mysqlType`; if it has enumerations or sets, a list of it and the names of those whose values are numbers."""


def canal_envelope(line: str) -> dict[str, str]:
    """Spark SQL of the members that every message has, in order of evaluation: see `MessageDialect`."""
    return {
        "_message": parsed_message(line, _ENVELOPE),
        "_type": "upper(_message.type)",
        "op": op_of("_type", _OPS),
        "database": "_message.`database`",
        "source_schema": "cast(null as string)",
        "source_table": "_message.`table`",
        "schema_text": _SCHEMA_TEXT,
        "message": sql_literal(CANAL_NAME),
        "reason": _reason(line),
        "kind": kind_of(line, "_type", _OPS),
    }


def _reason(line: str) -> str:
    known = ", ".join(map(sql_literal, (*_OPS, *_DDL)))
    return (
        f"case when {is_tombstone(line)} then null "
        f"when _message is null or _message.{CORRUPT} is not null then 'not a JSON object of a Canal message' "
        "when _type is null then 'no `type`: not a Canal message' "
        "when _message.isDdl and _type != 'TRUNCATE' then null "
        f"when _type not in ({known}) then concat('unknown type `', _message.type, '`') "
        "when op is null then null "
        "when coalesce(source_table, '') = '' then 'no `table`' "
        "when op = 't' then null "
        "when coalesce(size(_message.data), 0) < 1 then concat('type `', _message.type, '` without `data`') "
        "when exists(_message.data, row -> coalesce(left(ltrim(row), 1), '') != "
        "'{') then '`data` has what is not a row' "
        f"when size({_UNTYPED}) > 0 then concat('`mysqlType` lacks column `', {_UNTYPED}[0], '`') "
        "end"
    )


def mysql_fields(schema_text: str) -> tuple[SourceField, ...]:
    """The columns that `mysqlType` states, in its order; see `_SCHEMA_TEXT`.

    >>> [field.type for field in mysql_fields('{"id": "bigint(20) unsigned", "price": "decimal(10,2)"}')]
    ['decimal(20,0)', 'decimal(10,2)']
    """
    stated = json.loads(schema_text)
    types, numbered = stated if isinstance(stated, list) else (stated, [])
    fields = (mysql_field(str(name), str(kind), is_numbered=name in numbered) for name, kind in types.items())
    # All values are texts; only a document might be nested.
    return tuple(replace(each, is_nested=None if types[each.name] == "json" else False) for each in fields)


CANAL_MESSAGES: Mapping[str, Message] = {
    CANAL_NAME: Message("overlay", (), "data", "old", is_list=True, fields=mysql_fields),
}
CANAL_KEY = "from_json(get_json_object(value, '$.pkNames'), 'array<string>')"
CANAL = MessageDialect(canal_envelope, CANAL_KEY)


_TYPE = re.compile(r"(?P<name>[a-z]+)\s*(?:\((?P<size>[^)]*)\))?(?P<rest>.*)", re.DOTALL)
_LABEL = re.compile(r"'((?:[^']|'')*)'")
_PLAIN = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "year", "bool", "boolean"), "int"),
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "float": "float",
    "double": "double",
    "real": "double",
    "date": "date",
    "datetime": "timestamp",
    "timestamp": "timestamp",
}
_BINARY = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}


def mysql_field(name: str, declared: str, *, is_numbered: bool = False) -> SourceField:
    """The column of a MySQL type; a type without a Spark equivalent stays text, which loses nothing.

    >>> mysql_field("a", "int(10) unsigned").type, mysql_field("a", "bit(1)").type, mysql_field("a", "json").type
    ('bigint', 'bigint', 'string')
    >>> mysql_field("a", "enum('new','it''s')", is_numbered=True).labels
    ('new', "it's")
    """
    match = _TYPE.match(declared.strip().lower())
    if match is None:
        return SourceField(name, "string")
    kind, size, is_unsigned = match["name"], match["size"] or "", "unsigned" in match["rest"]
    if kind in ("decimal", "numeric", "dec", "fixed"):
        return SourceField(name, _decimal(size))
    if is_numbered:
        labels = tuple(label.replace("''", "'") for label in _LABEL.findall(declared))
        encoding = Encoding.LABEL_NUMBER if kind == "enum" else Encoding.LABEL_BITS
        return SourceField(name, "string", encoding, labels=labels)
    if kind in _BINARY:
        return SourceField(name, "binary", Encoding.LATIN1)
    if (kind == "bigint" and is_unsigned) or (kind == "bit" and size == "64"):
        return SourceField(name, "decimal(20,0)")
    if (kind in ("int", "integer") and is_unsigned) or kind == "bit":
        return SourceField(name, "bigint")
    spark_type = _PLAIN.get(kind, "string")
    return SourceField(name, spark_type, is_instant=kind == "timestamp" or spark_type in ("int", "bigint"))


def _decimal(size: str) -> str:
    parts = [int(part) for part in size.split(",") if part.strip().isdigit()] or [10]
    precision, scale = parts[0], parts[1] if len(parts) > 1 else 0
    return f"decimal({precision},{scale})" if precision <= MAX_PRECISION else "string"
