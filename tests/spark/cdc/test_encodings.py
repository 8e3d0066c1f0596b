"""Recorded forms of every encoding that the connectors have, on real Spark: what arrives is the source's value.

Only Spark can show it: the decoders are Spark SQL.
"""

from __future__ import annotations

import base64
import datetime
import json
import logging
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cdc.formats.unavailable_values import placeholder_texts
from sqlmesh_like.project.nodes import TimeUnit
from tests.spark.ingest_lake import Lake, base64_decimal, event, table

pytestmark = pytest.mark.release
DAY = datetime.date(2017, 9, 15)
MOMENT = datetime.datetime(2019, 7, 9, 2, 28, 57, 123456)
WKB = {"wkb": "AQEAAAAAAAAAAADwPwAAAAAAAABA", "srid": None}
TIME, DATA, CONNECT = "io.debezium.time.", "io.debezium.data.", "org.apache.kafka.connect.data."
SEMANTIC_TYPES: dict[str, tuple[str, str, Any, Any]] = {
    "connect_date": ("int32", CONNECT + "Date", 17424, DAY),
    "connect_time": ("int32", CONNECT + "Time", 14711789, "04:05:11.789"),
    "connect_timestamp": ("int64", CONNECT + "Timestamp", 1562639337123, MOMENT.replace(microsecond=123000)),
    "date": ("int32", TIME + "Date", 17424, DAY),
    "time": ("int32", TIME + "Time", 14711789, "04:05:11.789"),
    "micro_time": ("int64", TIME + "MicroTime", 14711789000, "04:05:11.789000"),
    "nano_time": ("int64", TIME + "NanoTime", 14711789000001, "04:05:11.789000001"),
    "timestamp": ("int64", TIME + "Timestamp", 1562639337123, MOMENT.replace(microsecond=123000)),
    "micro_timestamp": ("int64", TIME + "MicroTimestamp", 1562639337123456, MOMENT),
    "nano_timestamp": ("int64", TIME + "NanoTimestamp", 1562639337123456789, MOMENT),
    "zoned_timestamp": ("string", TIME + "ZonedTimestamp", "2019-07-09T04:28:57.123456+02:00", MOMENT),
    "zoned_time": ("string", TIME + "ZonedTime", "04:05:11.789Z", "04:05:11.789Z"),
    "year": ("int32", TIME + "Year", 2018, 2018),
    "iso_date": ("string", TIME + "IsoDate", "2017-09-15Z", DAY),
    "iso_time": ("string", TIME + "IsoTime", "04:05:11.789Z", "04:05:11.789"),
    "iso_timestamp": ("string", TIME + "IsoTimestamp", "2019-07-09T02:28:57.123456Z", MOMENT),
    "structured_date": ("struct", TIME + "StructuredDate", {"year": 2017, "month": 9, "day": 15}, DAY),
    "structured_time": (
        *("struct", TIME + "StructuredTime"),
        *({"hour": 4, "minute": 5, "second": 11, "nanos": 789000000, "precision": 3}, "04:05:11.789000"),
    ),
    "structured_timestamp": (
        *("struct", TIME + "StructuredTimestamp"),
        {"year": 2019, "month": 7, "day": 9, "hour": 2, "minute": 28, "second": 57, "nanos": 123456789},
        MOMENT,
    ),
    "structured_zoned_time": (
        *("struct", TIME + "StructuredZonedTime"),
        *({"hour": 4, "minute": 5, "second": 11, "nanos": 0, "offsetSeconds": -19800}, "04:05:11-05:30"),
    ),
    "structured_zoned_timestamp": (
        *("struct", TIME + "StructuredZonedTimestamp"),
        {
            "year": 2019,
            "month": 7,
            "day": 9,
            "hour": 4,
            "minute": 28,
            "second": 57,
            "nanos": 123456000,
            "offsetSeconds": 7200,
            "zoneId": "Europe/Paris",
            "specialValue": None,
        },
        MOMENT,
    ),
    "structured_duration": (
        *("struct", TIME + "StructuredDuration"),
        *({"years": 1, "seconds": 5}, '{"years":1,"seconds":5}'),
    ),
    "interval": ("string", TIME + "Interval", "P1Y2M3DT4H5M6.78S", "P1Y2M3DT4H5M6.78S"),
    "micro_duration": ("int64", TIME + "MicroDuration", 37091106780000, 37091106780000),
    "nano_duration": ("int64", TIME + "NanoDuration", 37091106780000000, 37091106780000000),
    "variable_scale": ("struct", DATA + "VariableScaleDecimal", {"scale": 3, "value": "MDk="}, "12.345"),
    "negative_scale": ("struct", DATA + "VariableScaleDecimal", {"scale": -2, "value": "MDk="}, "1234500"),
    "enum": ("string", DATA + "Enum", "paid", "paid"),
    "set": ("string", DATA + "EnumSet", "a,b", "a,b"),
    "json": ("string", DATA + "Json", '{"a": 1.10}', '{"a": 1.10}'),
    "uuid": ("string", DATA + "Uuid", "0b7c4ef2-0000-4000-8000-000000000001", "0b7c4ef2-0000-4000-8000-000000000001"),
    "xml": ("string", DATA + "Xml", "<a>1</a>", "<a>1</a>"),
    "ltree": ("string", DATA + "Ltree", "Top.Science", "Top.Science"),
    "tsvector": ("string", DATA + "Tsvector", "'fat':2 'rat':3", "'fat':2 'rat':3"),
    "point": ("struct", DATA + "geometry.Point", {"x": 1.0, "y": 2.5, **WKB}, None),
    "geometry": ("struct", DATA + "geometry.Geometry", {**WKB, "extensions": {"type": "box"}}, None),
    "geography": ("struct", DATA + "geometry.Geography", WKB, None),
    "line": ("struct", DATA + "geometry.Line", {"a": 1.0, "b": -1.0, "c": 1e-07}, None),
    "circle": ("struct", DATA + "geometry.Circle", {"center": {"x": 1.0, "y": 2.0}, "radius": 2.5}, None),
    "double_vector": ("array", DATA + "DoubleVector", [1.1, 22.0, 1e16], "[1.1,22.0,1e+16]"),
    "float_vector": ("array", DATA + "FloatVector", [0.1, 2.0], "[0.1,2.0]"),
    "sparse_vector": ("struct", DATA + "SparseDoubleVector", {"dimensions": 5, "vector": {"1": 1.5}}, None),
    "bytes": ("bytes", "", "AAH/", bytearray(b"\x00\x01\xff")),
    "boolean": ("boolean", "", True, True),
    "int8": ("int8", "", -5, -5),
    "float64": ("float64", "", 0.1, 0.1),
    "numbers": ("array", "", [7, None], "[7,null]"),
    "hstore": ("map", "", {"k": "v"}, '{"k":"v"}'),
}
"""Of each column: literal type, semantic type, the value as an event of that type has it, and what it means."""


def test_each_semantic_type_of_debezium_is_the_sources_value(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fields = [{"field": "id", "type": "int32"}]
    fields += [{"field": name, "type": kind, "name": said} for name, (kind, said, _, _) in SEMANTIC_TYPES.items()]
    fields += [
        {"field": "decimal", "type": "bytes", "name": CONNECT + "Decimal", "parameters": {"scale": "2"}},
        {
            "field": "hundreds",
            "type": "bytes",
            "name": CONNECT + "Decimal",
            "parameters": {"scale": "-2", "connect.decimal.precision": "5"},
        },
        {"field": "bits", "type": "bytes", "name": DATA + "Bits", "parameters": {"length": "10"}},
        {"field": "isbn", "type": "string", "name": "io.debezium.postgresql.type.Isbn"},
    ]
    values = {name: value for name, (_, _, value, _) in SEMANTIC_TYPES.items()}
    row = {
        "id": 1,
        **values,
        "decimal": base64_decimal(-1234),
        "hundreds": base64_decimal(7),
        "bits": "AwI=",
        "isbn": "0-1",
    }
    shop = Lake(spark, tmp_path, (table(),))
    infinite = {"year": None, "month": None, "day": None, "specialValue": "POSITIVE_INFINITY"}
    with caplog.at_level(logging.WARNING, "sqlmesh_like.cdc"):
        shop.ingest(
            event("c", row, fields=fields),
            event("c", {"id": 2, "isbn": "0-2"}, fields=fields),
            event("c", {"id": 3, "structured_date": infinite}, fields=fields),
            event("c", {"id": 4, "iso_date": "next week"}, fields=fields),
        )
    compact = {name: json.dumps(value, separators=(",", ":")) for name, value in values.items()}
    expected = {n: compact[n] if means is None else means for n, (_, _, _, means) in SEMANTIC_TYPES.items()}
    more = {"decimal": Decimal("-12.34"), "hundreds": Decimal(700), "bits": 515, "isbn": "0-1"}
    names = [*expected, *more]
    first = dict(zip(("id", *names), shop.rows("t", "id", *names)[0], strict=True))
    assert first == {"id": 1, **expected, **more}
    assert shop.rows("t", "id", *names)[1][1:-1] == (None,) * (len(names) - 1)
    assert [(line, reason[:36]) for _, line, reason, _ in shop.dead_letters()] == [
        (3, "column `structured_date`: cannot rea"),
        (4, "column `iso_date`: cannot read next "),
    ]
    warnings = [each.getMessage() for each in caplog.records]
    assert [each for each in warnings if "semantic" in each] == [
        "warning: ods.t: columns of unknown semantic types are taken as sent:"
        " isbn (io.debezium.postgresql.type.Isbn, as string)"
    ]


def test_a_placeholder_of_any_form_leaves_the_stored_value(spark: SparkSession, tmp_path: Path) -> None:
    mark = 'not "loggé"'
    texts = placeholder_texts(mark)
    plain = [text for text in texts if not text.startswith(("[", "{"))]
    nested = [json.loads(text) for text in texts if text.startswith(("[", "{"))]
    fields = [{"field": "id", "type": "int32"}]
    fields += [{"field": f"t{i}", "type": "string"} for i, _ in enumerate(plain)]
    fields += [
        {"field": f"n{i}", "type": "map" if isinstance(value, dict) else "array"} for i, value in enumerate(nested)
    ]
    fields += [{"field": "raw", "type": "bytes"}, {"field": "n", "type": "int32"}]
    unchanged = {f"t{i}": value for i, value in enumerate(plain)} | {f"n{i}": value for i, value in enumerate(nested)}
    unchanged["raw"] = base64.b64encode(mark.encode()).decode()
    kept = {name: "old" if name.startswith("t") else ["old"] for name in unchanged} | {"raw": "AAE="}
    schema_less = {name: value for name, value in kept.items() if name != "raw"}
    settings = {"unavailable_value_placeholder": mark}
    shop = Lake(spark, tmp_path, (table(), table("u")), settings)
    shop.ingest(event("c", {"id": 1, **kept, "n": 1}, fields=fields), event("c", {"id": 1, **schema_less}, table="u"))
    before = shop.rows()
    # Each form alone: it must be noticed by itself.
    for number, (name, value) in enumerate(unchanged.items(), start=2):
        shop.land(event("u", {"id": 1, **kept, name: value, "n": number}, fields=fields))
        if name != "raw":
            shop.land(event("u", {"id": 1, **schema_less, name: value}, table="u"))
    stored = shop.rows("u")
    shop.settings = {**settings, "max_files_per_batch": 100}
    shop.run()
    assert shop.rows() == [(*before[0][:-1], len(unchanged) + 1)]
    assert shop.rows("u") == stored


@pytest.mark.parametrize(
    ("form", "columns", "unit", "refused", "given"),
    [
        ("debezium", {"at": "timestamp"}, "micros", 168480000000000, datetime.datetime(1975, 5, 5)),
        ("maxwell", {"at": "timestamp"}, "seconds", 168480000, datetime.datetime(1975, 5, 5)),
        ("dms", {"at": "date"}, "days", 1950, datetime.date(1975, 5, 5)),
    ],
)
def test_a_number_without_a_unit_is_refused_until_its_unit_is_declared(
    spark: SparkSession,
    tmp_path: Path,
    *,
    form: str,
    columns: dict[str, str],
    unit: TimeUnit,
    refused: int,
    given: object,
) -> None:
    declared = table(columns=columns)
    shop = Lake(spark, tmp_path, (declared,), {"format": form})
    rows = ({"id": 1, "at": refused}, {"id": 2, "at": str(given)})
    shop.ingest(*(_message(form, row) for row in rows))
    assert shop.rows("t", "id") == [(2,)]
    ((_, _, reason, _),) = shop.dead_letters()
    assert reason.startswith(f"column `at`: cannot read {refused} as {columns['at']}: ") and "declare `unit:`" in reason
    shop.tables = (replace(declared, units={"at": unit}),)
    shop.ingest(_message(form, {"id": 3, "at": refused}))
    assert shop.rows("t", "id", "at") == [(2, given), (3, given)]


def _message(form: str, row: dict[str, Any]) -> str:
    if form == "maxwell":
        return json.dumps({"database": "db", "table": "t", "type": "insert", "data": row})
    if form == "dms":
        metadata = {"operation": "insert", "record-type": "data", "schema-name": "db", "table-name": "t"}
        return json.dumps({"data": row, "metadata": metadata})
    return event("c", row)


DOCUMENT = (
    '{ "amount":12345678901234567.89, "rate" : 0.10,"no":98765432109876543210,"e":1E400, "s":"\\u00e9 1.0  \\/" }'
)


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("maxwell", '{"database":"db","table":"t","type":"insert","data":{"id":1,"größe" : %s, "n":[1.0 ],"x":1.50}}'),
        (
            "canal",
            '{"database":"db","table":"t","type":"INSERT","data":[{"id":0},{"id":1,"größe":%s ,"n":[1.0 ],"x":1.50}]}',
        ),
        (
            "flink_cdc",
            '{"database":"db","table":"t","type":"INSERT","data":[{"id":0},{"id":1,"größe":%s ,"n":[1.0 ],"x":1.50}]}',
        ),
        (
            "dms",
            '{"data":{"id":1,"gr\\u00f6\\u00dfe":%s,"n":[1.0 ],"x":1.50},'
            '"metadata":{"operation":"insert","record-type":"data","schema-name":"db","table-name":"t"}}',
        ),
        ("debezium", '{"op":"c","after":{"id":1,"größe":%s,"n":[1.0 ],"x":1.50},"source":{"db":"db","table":"t"}}'),
    ],
)
def test_json_is_kept_as_it_is_written(spark: SparkSession, tmp_path: Path, *, form: str, line: str) -> None:
    shop = Lake(spark, tmp_path, (table(columns={"id": "int", "x": "string"}),), {"format": form})
    shop.ingest(line % DOCUMENT)
    written = (DOCUMENT, "[1.0 ]", "1.50")
    # Kafka's converter writes no blanks: what Debezium nests is no document of the source.
    compact = '{"amount":12345678901234567.89,"rate":0.10,"no":98765432109876543210,"e":1E400,"s":"\\u00e9 1.0  \\/"}'
    assert [row[1:] for row in shop.rows("t", "id", "größe", "n", "x") if row[0] == 1] == [
        (compact, "[1.0]", "1.50") if form == "debezium" else written
    ]


def test_canal_writes_the_numbers_of_labels(spark: SparkSession, tmp_path: Path) -> None:
    types = {"id": "int", "state": "enum('new','it''s')", "tags": "set('a','b','c')"}
    codes = {"id": 4, "state": 4, "tags": -7}

    def message(*rows: dict[str, Any], codes: dict[str, int] = codes) -> str:
        body = {"database": "db", "table": "t", "type": "INSERT", "isDdl": False, "mysqlType": types, "sqlType": codes}
        return json.dumps({**body, "data": rows})

    shop = Lake(spark, tmp_path, (table(),), {"format": "canal"})
    shop.ingest(
        message({"id": "1", "state": "2", "tags": "5"}, {"id": "2", "state": "0", "tags": "0"}),
        message({"id": "3", "state": None, "tags": None}, {"id": "4", "state": "3", "tags": "1"}),
        message({"id": "5", "state": "new", "tags": "a,c"}, codes={"id": 4, "state": 12, "tags": 12}),
    )
    assert shop.rows() == [(1, "it's", "a,c"), (2, "", ""), (3, None, None), (5, "new", "a,c")]
    assert [reason for _, _, reason, _ in shop.dead_letters()] == ["column `state`: cannot read 3 as string"]


def test_flink_states_types_of_debezium_and_writes_plain_values(spark: SparkSession, tmp_path: Path) -> None:
    fields = (
        {"field": "id", "type": "int32"},
        {"field": "day", "type": "int32", "name": TIME + "Date"},
        {"field": "at", "type": "int64", "name": TIME + "MicroTimestamp"},
        {
            "field": "price",
            "type": "bytes",
            "name": CONNECT + "Decimal",
            "parameters": {"scale": "2", "connect.decimal.precision": "10"},
        },
        {"field": "raw", "type": "bytes", "name": DATA + "Bits", "parameters": {"length": "3"}},
    )
    row = {"id": 1, "day": "2017-09-15", "at": "2019-07-09 02:28:57.123456", "price": 1234, "raw": "AAH/"}
    shop = Lake(spark, tmp_path, (table(),), {"format": "flink_cdc"})
    shop.ingest(event("c", row, fields=fields), event("c", {**row, "id": 2, "day": 17424, "at": 7}, fields=fields))
    raw = bytearray(b"\x00\x01\xff")
    early = datetime.datetime(1970, 1, 1, 0, 0, 0, 7)
    assert shop.rows() == [(1, DAY, MOMENT, Decimal(1234), raw), (2, DAY, early, Decimal(1234), raw)]
