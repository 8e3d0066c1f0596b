"""Messages in Avro decoded in this process: the JSON that their converter would write, and what is left to Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.in_process.values import NotProvenError, Undecoded
from sqlmesh_like.cdc.registry.decoded_rows import decoded_rows
from sqlmesh_like.cdc.registry.schema_registry import SchemaRegistry
from sqlmesh_like.project.nodes import RegistrySettings
from tests.avro_events import RECORDED, Broken, Messages, envelope, in_json, payload
from tests.connect_avro import completed, framed
from tests.semantic_types import FIELDS, ROW
from tests.services.schema_registry import RegistryServer, registry_server
from tests.unit.cdc.test_kafka_batches import Consumer, Message
from tests.unit.cdc.test_small_batches import Lake, SparkAskedError


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with registry_server() as server:
        yield server


def decoded(registry: RegistryServer, *values: bytes | None, keys: tuple[bytes | None, ...] = ()) -> list[Any]:
    """(value, key, fault) of each message."""
    padded = (*keys, *[None] * (len(values) - len(keys)))
    lines = RowFrame(("value", "log_key"), list(zip(values, padded, strict=True)))
    lines = lines.selectExpr("cast(value as string) as value", "cast(log_key as string) as log_key")
    return [tuple(row) for row in decoded_rows(lines, SchemaRegistry(RegistrySettings((registry.url,))), "rows").rows]


def body(text: str) -> str:
    """A message's text without its schema."""
    return text[text.index(',"payload":') :]


def test_an_event_of_each_semantic_type_is_its_json_form_byte_for_byte(registry: RegistryServer) -> None:
    whole = completed(envelope(*FIELDS), payload("u", ROW, ROW))
    nothing = dict.fromkeys(ROW) | {"id": 2}
    odd = {**nothing, "isbn": '\ufffd\u2028"\\\t\x01{é'}
    bodies = [payload("r", ROW), payload("c", nothing), payload("u", odd, ROW)]
    events = [(whole, each) for each in bodies]
    for path in sorted(RECORDED.glob("*.jsonl")):
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith('{"schema"')]
        events += [(completed((m := json.loads(line))["schema"], m["payload"]), m["payload"]) for line in lines]
    in_avro = Messages(registry)
    rows = decoded(registry, *(in_avro(*each) for each in events))
    assert len(rows) > 8
    for (block, event), (value, _, fault) in zip(events, rows, strict=True):
        assert fault is None and value.startswith('{"schema":{"type":"struct","fields":"registry:')
        expected = in_json(block, complete(block, event))
        assert json.loads(body(value)[11:-1]) == json.loads(body(expected)[11:-1])
        assert body(value) == body(expected)


def complete(block: Any, value: Any) -> Any:
    """The value with all members that its schema has, in their order, as the converters write it."""
    if not isinstance(value, dict) or block["type"] != "struct":
        return value
    return {each["field"]: complete(each, value.get(each["field"])) for each in block["fields"]}


def test_messages_that_cannot_be_decoded_name_their_schema(registry: RegistryServer) -> None:
    broken = Broken(registry)
    data = [value.encode() if isinstance(value, str) else value for value in broken.values]
    rows = decoded(registry, *data)
    assert {place: row[2] for place, row in enumerate(rows) if row[2]} == broken.reasons
    assert rows[5][0] == Undecoded(data[5]) and rows[7][0] == "\0\0\0"


def test_a_key_that_cannot_be_decoded_is_kept(registry: RegistryServer) -> None:
    record = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "int"}]}
    good = framed(registry.add(record), record, {"id": 2})
    rows = decoded(registry, None, None, b"{}", keys=(good, good + b"\xff", good[:2]))
    fault = "cannot be decoded by schema 1"
    assert rows[:2] == [(None, '{"id":2}', None), (None, "base64:AAAAAAEE/w==", f"its key: {fault}")]
    assert rows[2] == ("{}", "base64:AAA=", None)


NUMBERS = {"type": "record", "name": "r", "fields": [{"name": "i", "type": "int"}, {"name": "d", "type": "double"},
           {"name": "f", "type": "float"}, {"name": "b", "type": "boolean"}]}  # fmt: skip


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"i": -1, "d": 0.1, "f": 1.5, "b": True}, '{"i":-1,"d":0.1,"f":1.5,"b":true}'),
        ({"i": 2**31 - 1, "d": 1e7, "f": 1e-4, "b": False}, '{"i":2147483647,"d":1.0E7,"f":1.0E-4,"b":false}'),
        ({"i": 0, "d": -0.0, "f": 16777216.0, "b": False}, '{"i":0,"d":-0.0,"f":1.6777216E7,"b":false}'),
        ({"i": 0, "d": 2e23, "f": 0.0, "b": False}, None),
        ({"i": 0, "d": float("nan"), "f": 0.0, "b": False}, None),
        ({"i": 0, "d": 2.0**-60, "f": 0.0, "b": False}, None),
    ],
)
def test_numbers_are_spelt_as_java_spells_them_or_left_to_spark(
    registry: RegistryServer, row: Any, text: str | None
) -> None:
    message = framed(registry.add(NUMBERS), NUMBERS, row)
    if text is None:
        with pytest.raises(NotProvenError):
            decoded(registry, message)
    else:
        assert body(decoded(registry, message)[0][0]) == f',"payload":{text}}}'


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        ("boolean", b"\2", "false"),
        ("int", b"\x82\x00", "1"),
        ("int", b"\x82\x80\x80\x80\x10", "1"),
        ("long", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", str(-(2**63))),
        ({"type": "array", "items": "int"}, b"\x01\x02\x02\x02\x04\x00", "[1,2]"),
        (["float", "double"], b"\0\xcd\xcc\xcc\x3d", "0.10000000149011612"),
    ],
)
def test_bytes_that_writers_would_not_choose_mean_what_java_reads(
    registry: RegistryServer, kind: Any, data: bytes, text: str
) -> None:
    assert body(decoded(registry, one(registry, kind, data))[0][0]) == f',"payload":{{"a":{text}}}}}'


def one(registry: RegistryServer, kind: Any, data: bytes) -> bytes:
    """A message of one field with these bytes."""
    number = registry.add({"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]})
    return b"\0" + number.to_bytes(4, "big") + data


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (["null", "int"], b"\x01\x02"),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, b"\x02"),
        ("int", b"\x82\x80\x80\x80\x80\x00"),
        ("string", b"\x01"),
        ({"type": "array", "items": "string"}, b"\xfe\xff\xff\xff\x0f\0"),
    ],
)
def test_bytes_that_java_refuses_are_letters(registry: RegistryServer, kind: Any, data: bytes) -> None:
    assert decoded(registry, one(registry, kind, data))[0][2] == "cannot be decoded by schema 1"


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ({"type": "map", "values": "int"}, b"\x04\x02a\x02\x02b\x02\x00"),
        ({"type": "array", "items": {"type": "record", "name": "e", "fields": []}}, b"\x02\x00"),
        ({"type": "record", "name": "s", "fields": [{"name": "t", "type": "string"}, {"name": "u", "type": "string"}]},
         b"\x02\xff\x06\xef\xbf\xbd"),
        ("int", b"\2\x9esml\0end"),
    ],
)  # fmt: skip
def test_what_spark_may_read_otherwise_is_left_to_it(registry: RegistryServer, kind: Any, data: bytes) -> None:
    with pytest.raises(NotProvenError):
        decoded(registry, one(registry, kind, data))


def test_a_replacement_character_in_a_name_is_left_to_spark(registry: RegistryServer) -> None:
    record = {"type": "record", "name": "r", "fields": [{"name": "a\ufffd", "type": "int"}]}
    with pytest.raises(NotProvenError, match="replacement"):
        decoded(registry, b"\0" + registry.add(record).to_bytes(4, "big") + b"\2")


class Brokers(Consumer):
    """Stands in for the client: a topic of these messages."""

    values: Sequence[bytes | None] = ()

    def __init__(self, _: object) -> None:
        place = ("t", 0)
        sent = [Message(place, number, value) for number, value in enumerate(self.values)]
        super().__init__(("t",), sent, {place: (0, len(sent))})

    def close(self) -> None: ...


OF_SPARK = {"structured_timestamp": "a str as timestamp", "structured_zoned_timestamp": "a str as timestamp"}
"""Columns whose value only Spark knows, and why; also in JSON."""


def from_kafka(root: Path, registry: RegistryServer, *values: bytes | None) -> Lake:
    kafka = {"bootstrap_servers": "a:1", "topics": ["t"]}
    Brokers.values = values
    return Lake(root, settings={"files": None, "kafka": kafka, "registry": RegistrySettings((registry.url,))})


def test_each_type_gives_the_rows_of_its_json_form(
    tmp_path: Path, registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confluent_kafka, "Consumer", Brokers)
    fields = [each for each in FIELDS if each["field"] not in OF_SPARK]
    row = {each["field"]: ROW[each["field"]] for each in fields}
    whole = completed(envelope(*fields), payload("u", row, row))
    nothing = dict.fromkeys(row) | {"id": 2}
    bodies = [payload("r", row), payload("c", nothing), payload("u", {**row, "id": 2, "isbn": "ü"}, nothing),
              payload("c", {**row, "id": 3}), payload("d", None, {**row, "id": 3})]  # fmt: skip
    in_avro = Messages(registry)
    avro = from_kafka(tmp_path / "avro", registry, *(in_avro(whole, each) for each in bodies))
    json_lake = Lake(tmp_path / "json")
    (tmp_path / "json").mkdir()
    reports = [avro.ingest(), json_lake.ingest(*(in_json(whole, each) for each in bodies))]
    assert avro.rows() == json_lake.rows() and len(avro.rows()) == 2
    assert not avro.reasons and [report.dead_letters for report in reports] == [0, 0]


@pytest.mark.parametrize("name", sorted(OF_SPARK))
def test_a_type_that_only_spark_knows_is_left_to_it(
    tmp_path: Path, registry: RegistryServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(confluent_kafka, "Consumer", Brokers)
    fields = [each for each in FIELDS if each["field"] in ("id", name)]
    row = {"id": 1, name: ROW[name]}
    whole = completed(envelope(*fields), payload("u", row, row))
    lake = from_kafka(tmp_path, registry, Messages(registry)(whole, payload("c", row)))
    with pytest.raises(SparkAskedError):
        lake.ingest()
    assert OF_SPARK[name] in lake.reasons[0] and lake.reasons[0].startswith("Spark ingests the events of source shop: ")


def test_letters_have_the_bytes_of_messages_that_cannot_be_decoded(
    tmp_path: Path, registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confluent_kafka, "Consumer", Brokers)
    broken = Broken(registry)
    data = [value.encode() if isinstance(value, str) else value for value in broken.values]
    lake = from_kafka(tmp_path, registry, *data)
    report = lake.ingest()
    assert (report.skipped, [tuple(row.values()) for row in lake.rows()]) == (
        {"tombstone": 1},
        [(1, "a", None), (2, None, -1), (4, None, None), (6, "größe", None)],
    )
    dead_letters = {row["position"]: row for row in lake.rows("shop__dead_letters")}
    assert {place: row["reason"] for place, row in dead_letters.items()} == broken.reasons
    for place, row in dead_letters.items():
        assert (row["raw"] or row["text"].encode()) == data[place]
    assert dead_letters[4]["text"] == data[4].decode(errors="replace")
