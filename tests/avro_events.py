"""Events of a database in Avro, as a connector and its registry have them, and some that cannot be decoded."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from tests.connect_avro import AvroConverter, avro_value, completed, framed, physical
from tests.services.schema_registry import RegistryServer

RECORDED = Path(__file__).parents[1] / "demo" / "shop" / "events"
"""Events as Debezium's connector for MySQL wrote them, with their schemas."""


def envelope(*fields: Mapping[str, Any], name: str = "t") -> dict[str, Any]:
    rows = [{"type": "struct", "name": f"db.{name}.Value", "fields": list(fields), "field": each, "optional": True}
            for each in ("before", "after")]  # fmt: skip
    return {"type": "struct", "name": f"db.{name}.Envelope", "fields": rows}


def payload(op: str, after: object = None, before: object = None, name: str = "t") -> dict[str, Any]:
    return {"before": before, "after": after, "source": {"db": "db", "table": name}, "op": op, "ts_ms": 1}


def in_json(block: Mapping[str, Any], body: Mapping[str, Any]) -> str:
    """An event as Connect's converter writes it: numbers are spelt as Java does."""
    text = json.dumps({"schema": block, "payload": body}, separators=(",", ":"), ensure_ascii=False)
    return re.sub(r"(?<=[\[:,])(-?\d+)(\.\d+)?e([+-])0?(\d+)", _java_number, text)


def _java_number(match: re.Match[str]) -> str:
    digits, fraction, sign, exponent = match.groups()
    return f"{digits}{fraction or '.0'}E{'-' if sign == '-' else ''}{exponent}"


class Registers(Protocol):
    """What takes a schema and gives its number."""

    def add(self, schema: Any, **more: Any) -> int: ...


class Messages:
    """Converts events to Avro as a connector does: each new schema is registered."""

    def __init__(self, registry: Registers) -> None:
        self.registry = registry
        self.numbers: dict[str, int] = {}

    def __call__(self, block: Mapping[str, Any], body: Mapping[str, Any]) -> bytes:
        schema = AvroConverter().schema(block)
        text = json.dumps(schema)
        if text not in self.numbers:
            self.numbers[text] = self.registry.add(text)
        return framed(self.numbers[text], physical(schema), avro_value(block, body))


def in_json_schema(registry: RegistryServer, body: Mapping[str, Any]) -> bytes:
    """An event as Confluent's converter of JSON Schema writes it: JSON behind the header."""
    number = registry.add({"type": "object"}, schemaType="JSON")
    return b"\0" + number.to_bytes(4, "big") + json.dumps(body, ensure_ascii=False).encode()


class Broken:
    """Messages that cannot be decoded, among some that can: `values` in the log's order, `reasons` by position."""

    def __init__(self, registry: RegistryServer) -> None:
        in_avro = Messages(registry)
        number = {"field": "id", "type": "int32"}
        old, new = envelope(number, {"field": "v", "type": "string"}), envelope(number, {"field": "w", "type": "int64"})
        old, new = completed(old, payload("c", {})), completed(new, payload("c", {}))
        good = in_avro(new, payload("c", {"id": 2, "w": 2**62}))
        self.late = AvroConverter().schema(
            completed(envelope(number, {"field": "x", "type": "double"}), payload("c", {}))
        )
        unknown = framed(77, physical(self.late), payload("c", {"id": 5, "x": 0.5}))
        choice = {"type": "record", "name": "r", "fields": [{"name": "a", "type": ["int", "string"]}]}
        union = registry.add(choice)
        broken = in_avro(old, payload("c", {"id": 3, "v": "größe"})).replace("ö".encode(), b"\xff\xfe")
        self.values: list[bytes | str | None] = [
            in_avro(old, payload("c", {"id": 1, "v": "a"})),
            good,
            None,
            unknown,
            good + b"x",
            good[:-1],
            # A text of two gigabytes, it says.
            good[:5] + b"\x02\x02\x02" + b"\xfe\xff\xff\xff\x0f" + b"a",
            b"\0\0\0",
            # Apicurio's own header: eight bytes.
            b"\0" + bytes(7) + b"\1" + good[5:],
            broken,
            framed(union, choice, {"a": 1}),
            b"\x03\0" + bytes(16) + b"rest",
            in_json(new, payload("u", {"id": 2, "w": -1}, {"id": 2, "w": 2**62})),
            in_avro(old, payload("c", {"id": 4, "v": None})),
            in_json_schema(registry, payload("c", {"id": 6, "v": "größe"})),
            in_json_schema(registry, payload("c", {"id": 7, "v": "ö"})).replace(b"\xc3\xb6", b"\xff"),
        ]
        self.reasons = {
            3: "schema 77 is not known to the schema registry",
            4: "cannot be decoded by schema 1",
            5: "cannot be decoded by schema 1",
            6: "cannot be decoded by schema 1",
            7: "begins with a byte 0, but no number of a schema follows",
            8: "schema 0 is not known to the schema registry: if Apicurio's converter wrote it, "
            "set its `as-confluent: true`, or give its own interface as url of `registry:`",
            9: "invalid UTF-8",
            10: f"schema {union} has a union of several types at a, which Kafka Connect does not write",
            15: "invalid UTF-8",
            11: "in AWS Glue's wire format: the url of `registry:` is that of Glue then, https://glue.REGION.amazonaws.com",
        }
