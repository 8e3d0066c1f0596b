"""What a schema, a format and a declaration say of a value's encoding: no JVM."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sqlmesh_like.cdc.formats.canal import mysql_fields
from sqlmesh_like.cdc.formats.debezium import DEBEZIUM_MESSAGES, PLAIN, schema_fields
from sqlmesh_like.cdc.formats.debezium_flat import FLAT_MESSAGES
from sqlmesh_like.cdc.formats.encoding import Encoding
from sqlmesh_like.cdc.formats.flink_cdc import flink_fields
from sqlmesh_like.cdc.formats.format_registry import MESSAGE_STYLES
from sqlmesh_like.cdc.formats.row_images import EventShape, advice, missing
from sqlmesh_like.cdc.formats.source_types import SourceField, decoder, sql_literal
from sqlmesh_like.cdc.formats.unavailable_values import placeholder_texts
from sqlmesh_like.cdc.schema.schema_evolution import evolve_schema
from sqlmesh_like.names import Column, TableName
from sqlmesh_like.project.nodes import IngestTable, SourceTable, TimeUnit
from tests.unit.cdc.test_ods_layout import AT


def _unit(field: SourceField, kind: str, own: TimeUnit | None = None, of_table: TimeUnit | None = None) -> object:
    """What a number of this field counts in a column of that type."""
    ingest = IngestTable("db", "t", ("id",), unit=of_table)
    columns = (Column("at", kind),)
    table = SourceTable(
        *("source.p.s.t", "s", "t", TableName("ods", "t"), None, "hudi", ingest, columns, "", (), {}, AT),
        units={} if own is None else {"AT": own},
    )
    shape = EventShape(DEBEZIUM_MESSAGES[PLAIN], (SourceField("id", "int"), field))
    ((_, settled),) = (shape.fields for shape in evolve_schema(table, ingest, (), [shape]).shapes)
    return settled.unit


INFERRED = SourceField("at", "bigint", is_inferred=True)
DAYS = replace(INFERRED, unit=Encoding.DAYS)


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (_unit(INFERRED, "timestamp"), None),
        (_unit(INFERRED, "timestamp", "micros"), Encoding.MICROS),
        (_unit(INFERRED, "timestamp", "days"), Encoding.DAYS),
        (_unit(INFERRED, "timestamp", of_table="millis"), Encoding.MILLIS),
        (_unit(INFERRED, "timestamp", "seconds", "millis"), Encoding.SECONDS),
        # The unit of a table's moments says nothing of its dates and times.
        (_unit(INFERRED, "date", of_table="millis"), None),
        (_unit(INFERRED, "string", of_table="millis"), None),
        (_unit(INFERRED, "string", "micros"), Encoding.MICROS_OF_DAY),
        (_unit(DAYS, "date"), Encoding.DAYS),
        (_unit(DAYS, "date", "millis"), Encoding.MILLIS),
        (_unit(DAYS, "timestamp"), None),
        (_unit(DAYS, "bigint", "millis"), None),
    ],
)
def test_a_number_counts_what_is_declared_or_else_what_the_format_always_means(unit: object, expected: object) -> None:
    assert unit is expected


def test_only_debezium_counts_days_without_saying_so() -> None:
    assert {name for name, message in MESSAGE_STYLES.items() if message.counts_days} == {
        *DEBEZIUM_MESSAGES,
        *FLAT_MESSAGES,
    }


@pytest.mark.parametrize("kind", ["date", "timestamp"])
def test_a_number_whose_unit_is_not_known_is_not_read(kind: str) -> None:
    """Whatever its size: the decoder has no branch for it, and the reason says what to declare."""
    field = SourceField("at", kind)
    assert not any(word in decoder(field, "t.at", "d.at") for word in ("unix", "micros", "millis", "seconds"))
    assert "declare `unit:`" in advice(field, "t.at")
    assert "declare `unit:`" not in advice(replace(field, unit=Encoding.MICROS), "t.at")


def _stated(*columns: dict[str, object]) -> str:
    return json.dumps([{"field": "after", "type": "struct", "fields": columns}])


def test_a_semantic_type_that_is_not_known_is_noted_with_its_column() -> None:
    known = {"field": "a", "type": "string", "name": "io.debezium.data.Xml"}
    unknown = {"field": "b", "type": "int64", "name": "com.example.Epoch"}
    fields = schema_fields(_stated(known, unknown, {"field": "c", "type": "string"}))
    assert [(field.name, field.unknown_type) for field in fields] == [
        ("a", None),
        ("b", "com.example.Epoch"),
        ("c", None),
    ]


def test_flink_writes_plain_values_whatever_its_schema_says() -> None:
    text = _stated(
        {"field": "day", "type": "int32", "name": "io.debezium.time.Date"},
        {"field": "took", "type": "int64", "name": "io.debezium.time.MicroTime"},
        {"field": "price", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "default": "1234",
         "parameters": {"scale": "2", "connect.decimal.precision": "10"}},
        {"field": "raw", "type": "bytes", "name": "io.debezium.data.Bits", "parameters": {"length": "16"}},
    )  # fmt: skip
    assert [(f.type, f.encoding, f.unit, f.default) for f in flink_fields(text)] == [
        ("date", Encoding.PLAIN, Encoding.DAYS, None),
        ("string", Encoding.PLAIN, Encoding.MICROS_OF_DAY, None),
        # Its digits are not base64, and its default, which is, is not a number.
        ("decimal(10,2)", Encoding.PLAIN, None, None),
        ("binary", Encoding.BASE64, None, None),
    ]


def test_canals_enumerations_are_numbers_only_where_it_says_so() -> None:
    types = {"state": "enum('New','it''s, (really)')", "tags": "set('a','b')"}
    plain = mysql_fields(json.dumps(types))
    assert [(field.encoding, field.labels) for field in plain] == [(Encoding.PLAIN, ())] * 2
    numbered = mysql_fields(json.dumps([types, ["state", "tags"]]))
    assert [(field.encoding, field.labels) for field in numbered] == [
        (Encoding.LABEL_NUMBER, ("New", "it's, (really)")),
        (Encoding.LABEL_BITS, ("a", "b")),
    ]


def test_each_form_of_the_placeholder_counts_as_missing() -> None:
    texts = placeholder_texts("__debezium_unavailable_value")
    # What Java's UUID.nameUUIDFromBytes gives for its bytes: see DBZ-6720.
    assert '["b68a35a7-17ad-35b3-af2a-ae46edb4545a"]' in texts
    assert "[95,95,100,101,98" in next(text for text in texts if text.startswith("[95"))
    shape = EventShape(DEBEZIUM_MESSAGES[PLAIN], (SourceField("a", "string"),), unavailable=texts)
    sql = missing(shape, (Column("a", "string"),), partial=False)
    assert all(sql_literal(text) in sql for text in texts)
    assert "__debezium" not in missing(replace(shape, unavailable=()), (Column("a", "string"),), partial=False)
