"""What an Avro schema of Kafka Connect says, beside the `schema` block of the same events in JSON: no JVM."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from sqlmesh_like.cdc.formats.debezium_flat import flat_fields
from sqlmesh_like.cdc.formats.debezium_types import schema_fields
from sqlmesh_like.cdc.registry.avro_schema import avro_message_schema
from sqlmesh_like.cdc.registry.message_schema import ENTRY_KEY, ENTRY_VALUE, SchemaError
from tests.connect_avro import AvroConverter, avro_value, completed, framed, physical
from tests.semantic_types import CONNECT, FIELDS, ROW, TIME

RECORDED = Path(__file__).parents[3] / "demo" / "shop" / "events"
"""Events as Debezium's connector for MySQL wrote them, with their schemas."""


def block(*fields: dict[str, Any], name: str = "db.t.Value") -> dict[str, Any]:
    """The schema block of an event whose rows have these fields."""
    rows = [{"type": "struct", "fields": list(fields), "name": name, "field": image} for image in ("before", "after")]
    source = {"type": "struct", "name": "source", "field": "source", "fields": [{"type": "string", "field": "table"}]}
    return {"type": "struct", "name": "db.t.Envelope", "fields": [*rows, source, {"type": "string", "field": "op"}]}


def test_each_semantic_type_is_that_of_the_json_form() -> None:
    whole = completed(block(*FIELDS), {"before": ROW, "after": ROW, "source": {"table": "t"}, "op": "u"})
    schema = avro_message_schema(json.dumps(AvroConverter().schema(whole)))
    assert schema_fields(schema.fields) == schema_fields(json.dumps(whole["fields"]))
    assert len(schema_fields(schema.fields)) == len(FIELDS)
    assert schema.cast is None


def test_each_recorded_event_has_the_schema_of_its_json_form() -> None:
    seen = 0
    for path in sorted(RECORDED.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.startswith('{"schema"'):
                continue
            message = json.loads(line)
            whole = completed(message["schema"], message["payload"])
            schema = avro_message_schema(json.dumps(AvroConverter().schema(whole)))
            assert schema_fields(schema.fields) == schema_fields(json.dumps(whole["fields"]))
            seen += 1
    assert seen > 5


def test_what_decodes_a_message_reads_its_bytes_without_meaning() -> None:
    """By the Avro that Spark is given, a message has the values of its JSON form: bytes and counts."""
    payload = {"before": ROW, "after": ROW, "source": {"table": "t"}, "op": "u"}
    whole = completed(block(*FIELDS), payload)
    avro = AvroConverter().schema(whole)
    value = avro_value(whole, payload)
    message = framed(7, physical(avro), value)
    text = avro_message_schema(json.dumps(avro)).avro
    given = json.loads(text.replace(ENTRY_KEY, "key").replace(ENTRY_VALUE, "value"))["type"]
    assert "logicalType" not in json.dumps(given)
    assert message[:5] == b"\0\0\0\0\7"
    assert fastavro.schemaless_reader(io.BytesIO(message[5:]), fastavro.parse_schema(given), None) == value


def test_without_connects_properties_logical_types_say_what_a_value_is() -> None:
    fields = [
        {"field": "price", "type": "bytes", "name": CONNECT + "Decimal",
         "parameters": {"scale": "2", "connect.decimal.precision": "10"}},
        {"field": "any", "type": "bytes", "name": CONNECT + "Decimal", "parameters": {"scale": "3"}},
        *({"field": name.lower(), "type": kind, "name": CONNECT + name}
          for name, kind in (("Date", "int32"), ("Time", "int32"), ("Timestamp", "int64"))),
    ]  # fmt: skip
    avro = AvroConverter(meta_data=False).schema(completed(block(*fields), {}))
    assert "connect." not in json.dumps(avro)
    stated = schema_fields(avro_message_schema(json.dumps(avro)).fields)
    assert stated == schema_fields(json.dumps(block(*fields)["fields"]))


@pytest.mark.parametrize(
    ("logical", "kind", "name"),
    [
        ("timestamp-micros", "long", TIME + "MicroTimestamp"),
        ("local-timestamp-millis", "long", CONNECT + "Timestamp"),
        ("time-micros", "long", TIME + "MicroTime"),
        ("uuid", "string", "io.debezium.data.Uuid"),
        ("timestamp-micros", "int", None),
        ("duration", "long", None),
    ],
)
def test_a_logical_type_counts_where_it_fits_its_type(logical: str, kind: str, name: str | None) -> None:
    record = {"type": "record", "name": "r", "fields": [{"name": "a", "type": {"type": kind, "logicalType": logical}}]}
    (field,) = json.loads(avro_message_schema(json.dumps(record)).fields)
    assert field.get("name") == name


def test_defaults_are_spelt_as_in_json() -> None:
    decimal = {"scale": 2, "value": base64.b64encode(b"\x01\x90").decode()}
    fields = [
        {"field": "n", "type": "int32", "default": 5, "optional": True},
        {"field": "raw", "type": "bytes", "default": base64.b64encode(b"\x00\xff").decode()},
        {"field": "text", "type": "string", "default": "x", "optional": True},
        {"field": "none", "type": "string", "optional": True},
        {"field": "price", "type": "bytes", "name": CONNECT + "Decimal", "parameters": {"scale": "2"},
         "default": base64.b64encode(b"\x01\x90").decode(), "optional": True},
    ]  # fmt: skip
    whole = completed(block(*fields), {})
    stated = schema_fields(avro_message_schema(json.dumps(AvroConverter().schema(whole))).fields)
    assert stated == schema_fields(json.dumps(whole["fields"]))
    assert [field.default for field in stated] == ["5", "AP8=", "x", None, "AZA="]
    inner = {
        "type": "record",
        "name": "v",
        "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
    }
    record = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "a", "type": inner, "default": {"scale": 2, "value": "\x01\x90"}}],
    }
    assert json.loads(avro_message_schema(json.dumps(record)).fields)[0]["default"] == decimal


def test_flattened_rows_have_their_columns() -> None:
    row = {"type": "struct", "name": "db.t.Value", "fields": [*FIELDS, {"field": "__op", "type": "string"}]}
    whole = completed(row, ROW)
    schema = avro_message_schema(json.dumps(AvroConverter().schema(whole)))
    assert flat_fields(schema.fields) == flat_fields(json.dumps(whole["fields"]))


def test_types_of_other_schemas_are_found_by_their_full_names() -> None:
    place = {"type": "record", "name": "Place", "namespace": "geo", "fields": [{"name": "point", "type": "Point"}]}
    point = {"type": "record", "name": "geo.Point", "fields": [{"name": "x", "type": "double"}]}
    user = {"type": "record", "name": "User", "namespace": "shop", "fields": [
        {"name": "home", "type": ["null", "geo.Place"]}, {"name": "kind", "type": "Kind"},
        {"name": "other", "type": {"type": "record", "name": "Point", "fields": [{"name": "y", "type": "Kind"}]}},
        {"name": "same", "type": "Point"},
    ]}  # fmt: skip
    kind = {"type": "enum", "name": "shop.Kind", "symbols": ["A", "B"]}
    schema = avro_message_schema(json.dumps(user), [json.dumps(each) for each in (point, place, kind)])
    home, kind_of, other, same = json.loads(schema.fields)
    assert home["optional"] and home["fields"][0]["fields"][0] == {"type": "double", "optional": False, "field": "x"}
    assert kind_of["type"] == "string"
    assert [each["fields"][0]["field"] for each in (other, same)] == ["y", "y"]
    fastavro.parse_schema(json.loads(schema.avro)["type"])


def test_names_that_spark_cannot_tell_apart_are_given_back_by_a_cast() -> None:
    names = [
        {"name": "ID", "type": "int"},
        {"name": "id", "type": ["null", "string"]},
        {"name": "größe`", "type": "long"},
    ]
    schema = avro_message_schema(json.dumps({"type": "record", "name": "r", "fields": names}))
    assert schema.cast == "struct<`ID`:int,`id`:string,`größe```:bigint>"
    assert [each["name"] for each in json.loads(schema.avro)["type"]["fields"]] == ["f0", "f1", "f2"]
    assert [each["field"] for each in json.loads(schema.fields)] == ["ID", "id", "größe`"]


def _record(kind: object) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (_record(["null", "int", "string"]), "has a union of several types at a, which Kafka Connect does not write"),
        (_record(["null"]), "has a union of several types at a"),
        (_record(["null", "r"]), "contains itself, or too many levels at a"),
        (_record("nowhere"), "is not an Avro schema that can be read"),
        (_record({"type": "enum", "name": "e", "symbols": ["a-b"]}), "has an enumeration with symbols"),
        ('{"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}]}',
         "has a field twice"),
        ('{"type": "record"}', "is not an Avro schema that can be read"),
        ("{not json", "is not an Avro schema that can be read"),
        ("[" * 100_000, "is not an Avro schema that can be read"),
        ('{"type": "record", "name": "r", "fields": 7}', "is not an Avro schema that can be read"),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_used_says_why(text: str, why: str) -> None:
    with pytest.raises(SchemaError, match=f"^{why}"):
        avro_message_schema(text)


def test_few_types_that_are_nested_into_very_many_are_refused() -> None:
    kinds = [{"type": "record", "name": "r0", "fields": [{"name": "a", "type": "int"}]}]
    for level in range(1, 12):
        fields = [{"name": f"f{each}", "type": f"r{level - 1}"} for each in range(10)]
        kinds.append({"type": "record", "name": f"r{level}", "fields": fields})
    with pytest.raises(SchemaError, match="has more than 20,000 fields"):
        avro_message_schema(json.dumps(kinds[-1]), [json.dumps(each) for each in kinds[:-1]])


def test_two_numbers_of_a_union_are_the_wider_one() -> None:
    schema = avro_message_schema(_record(["null", "int", "long"]))
    assert json.loads(schema.fields) == [{"type": "int64", "optional": True, "field": "a"}]
    assert json.loads(schema.avro)["type"]["fields"] == [{"name": "a", "type": ["null", "int", "long"]}]
