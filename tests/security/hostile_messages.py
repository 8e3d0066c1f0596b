"""Messages that an attacker, or a broken connector, would send. Owns them as data and the mixing of them.

Each is one line of a log; nothing is promised of what it is: a row, something to skip, or a dead letter.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from functools import partial

VALUES: tuple[object, ...] = (
    None, True, False, 0, -1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**40, 1e308, -0.0, 1e-320, "", " ", "\0",
    "x" * 5_000, "null", "NaN", "1e999", "-1", "01", "0x1", "2024-02-30", "0000-00-00 00:00:00",
    "9999-12-31T23:59:59.999999Z",
    "${env:PATH}", "{x}", "'; drop table t; --", "\\", "\\u0000", "\u202e", "\ud83d\ude00", "é", [], [[]], {}, {"": ""},
    {"a": {"a": 1}}, [None], [1, "a", {}], {"id": {"id": 1}}, "AAAA", "====", "//8=", {"scale": 99, "value": "AQ=="},
    {"scale": -5, "value": "not base64"}, "__debezium_unavailable_value", 1700000000000, -62135596800000,
    9223372036854775807,
)  # fmt: skip
OPS: tuple[object, ...] = (
    "c",
    "u",
    "d",
    "r",
    "t",
    "m",
    "i",
    "x",
    "",
    None,
    0,
    [],
    {},
    "C",
    "insert",
    "bootstrap-start",
)
NAMES = (
    "t",
    "T",
    "orders",
    "a.b",
    "a`b",
    "",
    "t ",
    "../t",
    "x" * 300,
    "shop__dead_letters",
    "${env:PATH}",
    "\0",
    "t\u202e",
)
TYPES = (
    "int8",
    "int32",
    "int64",
    "float",
    "double",
    "boolean",
    "string",
    "bytes",
    "array",
    "struct",
    "map",
    "",
    None,
    7,
    "x",
)
LOGICAL = (
    None, "org.apache.kafka.connect.data.Decimal", "io.debezium.time.Date", "io.debezium.time.MicroTimestamp",
    "io.debezium.time.ZonedTimestamp", "io.debezium.data.VariableScaleDecimal", "io.debezium.data.Bits", "unknown", 7,
)  # fmt: skip
BROKEN = (
    "", " ", "{", "}", "[", "]", "{}", "[]", "null", "true", "0", '"', '""', "{]", '{"a"', '{"a":', '{"a":}', "{{}}",
    '{"op":"c"}', '{"op":"c","after":{}}', '{"op":"c","after":[]}', '{"op":"c","after":"x"}', '{"payload":null}',
    '{"payload":7}', '{"schema":{},"payload":{}}', '{"schema":null,"payload":{"op":"c"}}', '{"op":"d","before":null}',
    '{"after":{"id":1},"after":{"id":2},"op":"c","source":{"db":"db","table":"t"}}', "\ufeff{}", "'{}'", "NaN",
    '{"op":"c","source":[]}', '{"op":"c","source":{"db":7,"table":[]}}', '{"ts_ms":"x"}', "[" * 99, "[" * 101,
    '{"a":' * 150 + "1" + "}" * 150, '{"op":"c","after":' + "[" * 120 + "]" * 120 + "}", "\\", "\u0000", "\\u0000",
    '{"data":[],"type":"INSERT"}', '{"data":{},"type":"INSERT","database":"db","table":"t"}', '{"type":"DELETE"}',
    '{"database":"db","table":"t","type":"insert"}', '{"data":{"id":1},"metadata":{}}', '{"metadata":{"operation":7}}',
    '{"data":[{"id":1},7,null],"old":[{}],"type":"UPDATE","database":"db","table":"t"}', "a,b,c", "I,1,x", "--", "/*",
)  # fmt: skip
PAYLOADS = (*BROKEN, *(json.dumps({"op": "c", "after": {"id": value}}) for value in VALUES))
"""Single messages; `mixed` makes more of their parts."""


def mixed(random_: random.Random, count: int, keys: Sequence[str] = ("id", "name")) -> list[str]:
    """So many messages, each mostly right and somewhere wrong."""
    shapes = [_shape(random_, keys) for _ in range(4)]  # each is planned by itself
    makers = (_debezium, _debezium, partial(_with_schema, shapes), _canal, _maxwell, _dms)
    lines = [_damaged(random_, json.dumps(random_.choice(makers)(random_, keys))) for _ in range(count)]
    lines[: len(PAYLOADS)] = PAYLOADS[:count]
    random_.shuffle(lines)
    return [line.replace("\n", " ").replace("\r", " ") for line in lines]


def _row(random_: random.Random, keys: Sequence[str]) -> object:
    if random_.random() < 0.1:
        return random_.choice(VALUES)
    row = {key: random_.choice(VALUES) for key in keys}
    if random_.random() < 0.7:
        row["id"] = random_.randrange(50)
    if random_.random() < 0.2:
        row[random_.choice(NAMES)] = random_.choice(VALUES)
    return row


def _of(random_: random.Random) -> object:
    if random_.random() < 0.1:
        return random_.choice(VALUES)
    return {"db": "db", "table": random_.choice(("t", "t", "t", *NAMES)), "ts_ms": random_.choice((1, *VALUES))}


def _debezium(random_: random.Random, keys: Sequence[str]) -> object:
    images = {"before": _row(random_, keys), "after": _row(random_, keys)}
    op = random_.choice(("c", "u", "d", *OPS))
    return {**images, "source": _of(random_), "op": op, "ts_ms": random_.choice((1, *VALUES))}


def _with_schema(shapes: Sequence[object], random_: random.Random, keys: Sequence[str]) -> object:
    return {"schema": random_.choice(shapes), "payload": _debezium(random_, keys)}


def _shape(random_: random.Random, keys: Sequence[str]) -> object:
    if random_.random() < 0.1:
        return random_.choice(VALUES)
    fields = [
        {"field": key, "type": random_.choice(TYPES), "name": random_.choice(LOGICAL),
         "optional": random_.choice((True, 7)), "default": random_.choice(VALUES),
         "parameters": random_.choice(({"scale": "2"}, {"scale": "x"}, None, 7))}
        for key in keys
    ]  # fmt: skip
    images = [{"type": "struct", "fields": fields, "field": image} for image in ("before", "after")]
    return {"type": "struct", "fields": images}


def _canal(random_: random.Random, keys: Sequence[str]) -> object:
    rows = [_row(random_, keys) for _ in range(random_.randrange(3))]
    type_ = random_.choice(("INSERT", "UPDATE", "DELETE", *map(str, OPS)))
    return {"data": rows, "old": rows[:1], "database": "db", "table": random_.choice(NAMES), "type": type_, "es": 1,
            "isDdl": random_.choice(VALUES), "pkNames": random_.choice((["id"], *VALUES))}  # fmt: skip


def _maxwell(random_: random.Random, keys: Sequence[str]) -> object:
    type_ = random_.choice(("insert", "update", "delete", *map(str, OPS)))
    return {"database": "db", "table": random_.choice(NAMES), "type": type_, "ts": random_.choice((1, *VALUES)),
            "data": _row(random_, keys), "old": _row(random_, keys), "xid": 1, "commit": True}  # fmt: skip


def _dms(random_: random.Random, keys: Sequence[str]) -> object:
    operation = random_.choice(("insert", "update", "delete", "load", *OPS))
    metadata = {"schema-name": "db", "table-name": random_.choice(NAMES), "operation": operation, "record-type": "data"}
    return {"data": _row(random_, keys), "before-image": _row(random_, keys), "metadata": metadata}


def _damaged(random_: random.Random, text: str) -> str:
    """One of ten loses a part, or has it twice."""
    if random_.random() > 0.1:
        return text
    at, end = sorted(random_.randrange(len(text)) for _ in range(2))
    return random_.choice((text[:at], text[:at] + text[end:], text[:end] + text[at:], text[:at] + "\u0001" + text[at:]))
