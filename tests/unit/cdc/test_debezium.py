"""Decoding of Debezium events as text: no JVM."""

from __future__ import annotations

import json

import pytest
import sqlglot

from sqlmesh_like.cdc.formats.debezium import DEBEZIUM_MESSAGES, ENVELOPED, PLAIN, debezium_envelope, schema_fields
from sqlmesh_like.cdc.formats.encoding import Encoding
from sqlmesh_like.cdc.formats.row_images import EventShape, parsed_images, row_image, unreadable
from sqlmesh_like.cdc.formats.source_types import SourceField, decoder, exact_type, normal_type, widen
from sqlmesh_like.errors import IngestError
from sqlmesh_like.names import Column


def block(*columns: dict[str, object]) -> str:
    return json.dumps([{"field": image, "type": "struct", "fields": columns} for image in ("before", "after")])


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ({"type": "int8"}, ("int", Encoding.PLAIN)),
        ({"type": "int16"}, ("int", Encoding.PLAIN)),
        ({"type": "int32"}, ("int", Encoding.PLAIN)),
        ({"type": "int64"}, ("bigint", Encoding.PLAIN)),
        ({"type": "float"}, ("float", Encoding.PLAIN)),
        ({"type": "double"}, ("double", Encoding.PLAIN)),
        ({"type": "boolean"}, ("boolean", Encoding.PLAIN)),
        ({"type": "bytes"}, ("binary", Encoding.BASE64)),
        ({"type": "string"}, ("string", Encoding.PLAIN)),
        ({"type": "struct", "name": "io.debezium.data.geometry.Point"}, ("string", Encoding.PLAIN)),
        ({"type": "int32", "name": "io.debezium.time.Date"}, ("date", Encoding.DAYS)),
        ({"type": "int32", "name": "org.apache.kafka.connect.data.Date"}, ("date", Encoding.DAYS)),
        ({"type": "int64", "name": "io.debezium.time.Timestamp"}, ("timestamp", Encoding.MILLIS)),
        ({"type": "int64", "name": "io.debezium.time.MicroTimestamp"}, ("timestamp", Encoding.MICROS)),
        ({"type": "int64", "name": "io.debezium.time.NanoTimestamp"}, ("timestamp", Encoding.NANOS)),
        ({"type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"}, ("timestamp", Encoding.MILLIS)),
        ({"type": "string", "name": "io.debezium.time.ZonedTimestamp"}, ("timestamp", Encoding.PLAIN)),
        ({"type": "int64", "name": "io.debezium.time.MicroTime"}, ("string", Encoding.MICROS_OF_DAY)),
        ({"type": "string", "name": "io.debezium.data.Json"}, ("string", Encoding.PLAIN)),
        ({"type": "string", "name": "io.debezium.data.Enum"}, ("string", Encoding.PLAIN)),
        ({"type": "int32", "name": "io.debezium.time.Year"}, ("int", Encoding.PLAIN)),
        ({"type": "struct", "name": "io.debezium.data.VariableScaleDecimal"}, ("string", Encoding.OWN_SCALE)),
        ({"type": "bytes", "name": "io.debezium.data.Bits"}, ("binary", Encoding.BASE64)),
        ({"type": "bytes", "name": "io.debezium.data.Bits", "parameters": {"length": "10"}}, ("bigint", Encoding.BITS)),
        (
            {"type": "bytes", "name": "io.debezium.data.Bits", "parameters": {"length": "64"}},
            ("decimal(20,0)", Encoding.BITS),
        ),
        (
            {"type": "bytes", "name": "io.debezium.data.Bits", "parameters": {"length": "65"}},
            ("binary", Encoding.BASE64),
        ),
    ],
)
def test_a_schema_block_gives_the_type(column: dict[str, object], expected: tuple[str, Encoding]) -> None:
    (field,) = schema_fields(block({**column, "field": "a"}))
    assert (field.type, field.encoding) == expected


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"scale": "2", "connect.decimal.precision": "10"}, ("decimal(10,2)", 2)),
        ({"scale": "0"}, ("decimal(38,0)", 0)),
        ({"scale": "4", "connect.decimal.precision": "65"}, ("string", 4)),
        (None, ("decimal(38,0)", 0)),
    ],
)
def test_a_decimal_has_the_precision_of_its_schema(parameters: object, expected: tuple[str, int]) -> None:
    name = "org.apache.kafka.connect.data.Decimal"
    (field,) = schema_fields(block({"type": "bytes", "name": name, "parameters": parameters, "field": "a"}))
    assert (field.type, field.scale) == expected
    assert field.encoding is Encoding.BASE64_DECIMAL


def test_a_column_of_only_one_image_is_found() -> None:
    text = json.dumps(
        [{"field": "after", "fields": [{"field": "a", "type": "int32"}]}, {"field": "op", "type": "string"}]
    )
    assert [field.name for field in schema_fields(text)] == ["a"]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ({"type": "int32", "default": 18}, "18"),
        ({"type": "boolean", "default": False}, "false"),
        ({"type": "string", "default": "a'b"}, "a'b"),
        ({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "default": "lg=="}, "lg=="),
        ({"type": "int32", "name": "io.debezium.time.Date", "default": 0}, "0"),
        ({"type": "int32"}, None),
        ({"type": "string", "default": None}, None),
        # The moment of the statement, which nobody knows afterwards.
        ({"type": "string", "name": "io.debezium.time.ZonedTimestamp", "default": "1970-01-01T00:00:00Z"}, None),
        ({"type": "int64", "name": "io.debezium.time.Timestamp", "default": 0}, None),
        ({"type": "int64", "name": "io.debezium.time.Timestamp", "default": 1000}, "1000"),
    ],
)
def test_a_default_is_kept_as_events_spell_it(column: dict[str, object], expected: str | None) -> None:
    (field,) = schema_fields(block({**column, "field": "a"}))
    assert field.default == expected


def test_a_schema_block_without_rows_states_nothing() -> None:
    assert schema_fields('[{"field": "source", "type": "struct"}]') == ()


@pytest.mark.parametrize("encoding", list(Encoding))
@pytest.mark.parametrize(
    "kind", ["int", "bigint", "double", "string", "boolean", "binary", "date", "timestamp", "decimal(9,2)"]
)
def test_every_decoder_is_spark_sql(encoding: Encoding, kind: str) -> None:
    sql = decoder(SourceField("a", kind, encoding, 2), "texts.after.`a`", "decimals.after.`a`")
    assert sqlglot.parse_one(sql, dialect="spark") is not None


@pytest.mark.parametrize("message", [PLAIN, ENVELOPED])
def test_images_read_decimals_exactly_and_give_null_for_columns_an_event_lacks(message: str) -> None:
    shape = EventShape(DEBEZIUM_MESSAGES[message], (SourceField("id", "int"), SourceField("p", "decimal(10,2)")))
    read = parsed_images(shape)
    assert "`p`: decimal(38,30)" in read["all_decimals"]
    assert "`p`: STRING" in read["all_texts"]
    assert read["all_texts"].endswith(".payload") is (message == ENVELOPED)
    sql = row_image(shape, "after", (Column("id", "int"), Column("p", "decimal(10,2)"), Column("new", "date")))
    assert "'new', cast(null as date)" in sql
    assert sqlglot.parse_one(sql, dialect="spark") is not None


def test_a_text_is_never_unreadable() -> None:
    shape = EventShape(DEBEZIUM_MESSAGES[PLAIN], (SourceField("a", "string"),))
    assert unreadable(shape) == "cast(null as string)"
    numbers = unreadable(EventShape(DEBEZIUM_MESSAGES[PLAIN], (SourceField("a", "int"),)))
    assert "column `a`" in numbers.replace("', '", "").replace("'", "")


def test_the_envelope_is_spark_sql() -> None:
    for name, sql in debezium_envelope("value").items():
        assert sqlglot.parse_one(sql, dialect="spark") is not None, name


@pytest.mark.parametrize(
    ("stored", "arriving", "expected"),
    [
        ("int", "int", "int"),
        ("int", "bigint", "bigint"),
        ("bigint", "int", "bigint"),
        ("int", "double", "double"),
        ("float", "double", "double"),
        ("int", "string", "string"),
        ("double", "string", "string"),
        ("string", "int", "string"),
        ("string", "timestamp", "string"),
        ("int", "decimal(10,2)", "string"),
        ("double", "decimal(10,2)", "double"),
        ("decimal(10,2)", "decimal(12,2)", "decimal(12,2)"),
        ("decimal(10,2)", "decimal(10,4)", "decimal(12,4)"),
        ("decimal(10,2)", "double", "decimal(10,2)"),
        ("decimal(10,2)", "string", "decimal(10,2)"),
        ("timestamp", "string", "timestamp"),
        ("date", "string", "date"),
    ],
)
def test_a_column_only_widens(stored: str, arriving: str, expected: str) -> None:
    assert widen("a", stored, SourceField("a", arriving)) == expected


@pytest.mark.parametrize("arriving", ["string", "bigint", "boolean", "double"])
@pytest.mark.parametrize("stored", ["date", "timestamp", "boolean", "decimal(10,2)", "double", "string"])
def test_a_guess_never_changes_a_stated_type(stored: str, arriving: str) -> None:
    assert widen("a", stored, SourceField("a", arriving, is_inferred=True)) == stored


@pytest.mark.parametrize(
    ("stored", "arriving"),
    [("date", "timestamp"), ("boolean", "int"), ("int", "date"), ("decimal(38,0)", "decimal(10,9)")],
)
def test_a_change_that_a_table_cannot_take_is_refused(stored: str, arriving: str) -> None:
    with pytest.raises(IngestError, match=f"'a' changed from .*{stored[:4]}") as caught:
        widen("a", stored, SourceField("a", arriving))
    assert caught.value.hint is not None


@pytest.mark.parametrize("unknown", ["map<int,int>", "decimal(39,0)", "decimal(2,3)", "nonsense", ""])
def test_an_unknown_type_is_none(unknown: str) -> None:
    assert normal_type(unknown) is None


def test_decimals_that_may_be_numbers_need_an_exact_reading() -> None:
    assert exact_type(SourceField("a", "decimal(23,6)")) == "decimal(38,21)"
    assert exact_type(SourceField("a", "decimal(23,6)", Encoding.BASE64_DECIMAL)) == "decimal(38,21)"
    assert exact_type(SourceField("a", "double")) is None
