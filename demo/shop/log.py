"""Events of the shop's database as Debezium's MySQL connector writes them. Owns messages, and the landing folder.

`events/` has the documents' rows and changes, and some more; `user` and `product` events contain their schema,
`user_order` events do not.
"""

from __future__ import annotations

import base64
import datetime
import json
import shutil
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

Row = dict[str, object]

EVENTS = Path(__file__).parent / "events"
KEYS = {"user": "id", "product": "pid", "user_order": "id"}
_ZONED = {"type": "string", "name": "io.debezium.time.ZonedTimestamp", "version": 1}
_PRICE = {
    "type": "bytes",
    "name": "org.apache.kafka.connect.data.Decimal",
    "version": 1,
    "parameters": {"scale": "2", "connect.decimal.precision": "10"},
}
_TYPES: Mapping[str, Mapping[str, object]] = {
    "id": {"type": "int32"},
    "pid": {"type": "int32"},
    "age": {"type": "int32"},
    "pprice": _PRICE,
    "create_time": _ZONED,
    "modify_time": _ZONED,
}


def land(root: Path, *names: str) -> int:
    """Copy files of `events/` to where the project's source reads them; return their number of lines."""
    landing = root / "landing" / "shop"
    landing.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copyfile(EVENTS / f"{name}.jsonl", landing / f"{name}.jsonl")
    return sum(len((EVENTS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()) for name in names)


def event(table: str, op: str, before: Row | None, after: Row | None, position: int = 0) -> str:
    """Return a message value as Debezium's MySQL connector writes it."""
    row = after or before or {}
    body = {
        "before": _image(before),
        "after": _image(after),
        "source": {
            "version": "1.6.4.Final",
            "connector": "mysql",
            "name": "mysql_binlog_source",
            "ts_ms": _millis(row),
            "snapshot": "true" if op == "r" else "false",
            "db": "test_db",
            "table": table,
            "server_id": 1,
            "file": "mysql-bin.000003",
            "pos": position,
            "row": 0,
        },
        "op": op,
        "ts_ms": _millis(row),
    }
    if table == "user_order":
        return json.dumps(body, ensure_ascii=False)
    return json.dumps({"schema": _schema(table, row), "payload": body}, ensure_ascii=False)


def _image(row: Row | None) -> Row | None:
    """Return a row as JSON values: decimals as base64 of their unscaled value, times in ISO 8601."""
    if row is None:
        return None
    return {name: _json_value(value) for name, value in row.items()}


def _json_value(value: object) -> object:
    if isinstance(value, Decimal):
        unscaled = int(value.scaleb(2))
        return base64.b64encode(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)).decode()
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    return value


def _millis(row: Row) -> int:
    moment = row.get("modify_time")
    return int(moment.timestamp() * 1000) if isinstance(moment, datetime.datetime) else 0


def _schema(table: str, row: Row) -> Row:
    columns = [
        {**_TYPES.get(name, {"type": "string"}), "optional": name != KEYS.get(table), "field": name} for name in row
    ]
    images = [
        {"type": "struct", "fields": columns, "optional": True, "name": f"test_db.{table}.Value", "field": image}
        for image in ("before", "after")
    ]
    return {"type": "struct", "fields": images, "optional": False, "name": f"test_db.{table}.Envelope"}
