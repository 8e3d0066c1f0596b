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
from tests.semantic_types import CONNECT, DATA, DAY, FIELDS, MOMENT, ROW, SEMANTIC_TYPES, TIME
from tests.spark.ingest_lake import Lake, event, table

pytestmark = pytest.mark.release


def test_each_semantic_type_of_debezium_is_the_sources_value(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    values = {name: value for name, (_, _, value, _) in SEMANTIC_TYPES.items()}
    shop = Lake(spark, tmp_path, (table(),))
    infinite = {"year": None, "month": None, "day": None, "specialValue": "POSITIVE_INFINITY"}
    with caplog.at_level(logging.WARNING, "sqlmesh_like.cdc"):
        shop.ingest(
            event("c", ROW, fields=FIELDS),
            event("c", {"id": 2, "isbn": "0-2"}, fields=FIELDS),
            event("c", {"id": 3, "structured_date": infinite}, fields=FIELDS),
            event("c", {"id": 4, "iso_date": "next week"}, fields=FIELDS),
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


@pytest.mark.parametrize("form", ["debezium", "debezium_flat"])
def test_a_decimal_is_the_sources_in_base64_and_as_a_number(spark: SparkSession, tmp_path: Path, form: str) -> None:
    """Connect writes numbers with `decimal.format=NUMERIC`, those with exponents too; a text of digits is base64."""
    # By name: its scale, its precision, what is declared, what is written and what it means.
    cases: dict[str, tuple[int, int | None, str | None, str, object]] = {
        "plain": (2, 10, None, "12.30", Decimal("12.30")),
        "whole": (0, 10, None, "1234", Decimal(1234)),
        "digits": (0, 10, None, '"1234"', Decimal(-2658824)),
        "small": (8, 10, None, "-1.0E-7", Decimal("-0.0000001")),
        "hundreds": (-2, 5, None, "1.2E+3", Decimal(1200)),
        "long": (2, None, None, "123456789012345678901234567890123456.78", None),
        "longer": (20, 60, None, "12345678901234567890123456789012345678.00000000000000000001", None),
        "tiny": (50, 60, None, "-1.2E-49", "-0." + "0" * 48 + "12"),
        "zero": (50, 60, None, "0E-50", "0." + "0" * 50),
        "as_int": (2, 10, "int", "1234.00", 1234),
        "as_text": (2, 10, "string", "1234.50", "1234.50"),
        "as_double": (2, 10, "double", "1234.50", 1234.5),
    }
    fields: list[dict[str, Any]] = [{"field": "id", "type": "int32"}]
    for name, (scale, precision, *_) in cases.items():
        parameters = {"scale": str(scale), **({"connect.decimal.precision": str(precision)} if precision else {})}
        fields.append({"field": name, "type": "bytes", "name": CONNECT + "Decimal", "parameters": parameters})
    row = ", ".join(['"id": 1', *(f'"{name}": {written}' for name, (_, _, _, written, _) in cases.items())])
    bad = ", ".join(['"id": 2', '"as_int": 12.5', '"whole": "?"'])
    columns = {name: declared for name, (_, _, declared, _, _) in cases.items() if declared}
    shop = Lake(spark, tmp_path, (table(columns=columns),), {"format": form})
    shop.ingest(*(_in_schema(form, f"{{{text}}}", fields) for text in (row, bad)))
    means = {name: Decimal(w) if name == "long" else w if v is None else v for name, (*_, w, v) in cases.items()}
    assert dict(zip(cases, shop.rows("t", *cases)[0], strict=True)) == means
    ((_, line, reason, _),) = shop.dead_letters()
    assert line == 2 and "`as_int`: cannot read 12.5 as int" in reason and "`whole`: cannot read ? as" in reason


def _in_schema(form: str, row: str, fields: list[dict[str, Any]]) -> str:
    if form == "debezium":
        return event("c", {"id": 0}, fields=fields).replace('{"id": 0}', row)
    added = [{"field": name, "type": "string"} for name in ("__op", "__db", "__table")]
    payload = f'{row[:-1]}, "__op": "c", "__db": "db", "__table": "t"}}'
    return f'{{"schema": {json.dumps({"type": "struct", "fields": [*fields, *added]})}, "payload": {payload}}}'


@pytest.mark.parametrize("form", ["debezium", "debezium_flat", "maxwell", "canal", "dms", "ogg"])
def test_a_batch_of_empty_values_has_them(spark: SparkSession, tmp_path: Path, form: str) -> None:
    """Spark infers no type from them: they were NULL where no other row of the batch had a value."""
    shop = Lake(spark, tmp_path, (table(),), {"format": form})
    shop.ingest(_inserted(form, {"id": 1, "n": 1, "note": "a", "doc": '{"a": 1}'}))
    shop.ingest(_inserted(form, {"id": 1, "n": 2, "note": "", "doc": {}, "tags": [], "no": None}))
    assert shop.types() == {"id": "bigint", "n": "bigint", "note": "string", "doc": "string", "tags": "string"}
    assert shop.rows("t", "id", "n", "note", "doc", "tags") == [(1, 2, "", "{}", "[]")]


def _inserted(form: str, row: dict[str, Any]) -> str:
    match form:
        case "canal":
            return json.dumps({"database": "db", "table": "t", "type": "INSERT", "data": [row], "old": None})
        case "debezium_flat":
            return json.dumps({**row, "__op": "c", "__db": "db", "__table": "t"})
        case "ogg":
            return json.dumps({"table": "db.t", "op_type": "I", "after": row})
    return _message(form, row)


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
