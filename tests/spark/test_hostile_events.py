"""Events as an attacker would write them: their texts are data, and none of them stops its source."""

from __future__ import annotations

import json
import re
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cdc.formats.encoding import Encoding
from sqlmesh_like.cdc.formats.source_types import SourceField, decoder
from sqlmesh_like.cdc.frames import frame_query
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.cdc.stream.batch import side_by_side
from sqlmesh_like.errors import Location
from sqlmesh_like.project.nodes import IngestSource, PartitionBy, Source, Target
from sqlmesh_like.spark.frames.partition_paths import partition_path
from sqlmesh_like.sql_text import spark_identifier, spark_literal
from tests.spark.ingest_lake import Lake, event, table

TEXTS = (
    "${env:PLANTED}",
    "${system:java.home}",
    "${spark.app.name}",
    "{x}",
    "{events}",
    "{",
    "}}",
    "$",
    "it's",
    "\\",
    "\\'",
    "a`b",
    "'; drop table t; --",
    "/* */",
    "\n",
    "\u0001",
    "😀",
    "\\u0027",
)


def deep(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def test_every_text_is_a_literal_and_every_name_is_a_name(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = spark.range(1)
    items = [f"{spark_literal(text)} as c{number}" for number, text in enumerate(TEXTS)]
    row = frame_query(f"select {', '.join(items)} from {{events}}", events=frame).first()
    assert row is not None and tuple(row) == TEXTS
    names = [text for text in TEXTS if "events" not in text]
    named = frame.selectExpr(*[f"id as {spark_identifier(name)}" for name in names])
    assert named.columns == names
    said = spark.sql("select '${env:PATH}' as a, '${system:java.home}' as b").first()
    assert said is not None and tuple(said) == ("${env:PATH}", "${system:java.home}")


def test_hostile_events_are_rows_or_dead_letters_and_the_other_tables_go_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_name = PartitionBy("name", None, "part")
    plain = table("t", columns={"id": "int", "name": "string"}, partition_by=by_name)
    lake = Lake(spark, tmp_path, (plain,), {"discover": True})
    first = [event("c", {"id": 1, "name": "x"}), event("c", {"id": 2, "name": "y" * 300})]
    lake.ingest(*first, event("c", {"id": 7, "name": "y" * 299 + "z"}))
    fields = [{"field": "id", "type": "int32"}, {"field": "name", "type": "string"}]
    fields.append({"field": "extra", "type": "string", "optional": True, "default": "${env:PATH}{x}"})  # type: ignore[dict-item]
    hostile = [
        event("c", {"id": 3, "name": "z", "extra": "w"}, fields=fields),
        deep(300),
        deep(5000),
        event("c", {"id": 4, "name": "n"}).replace('"n"', deep(3000)),
        "[" * 100_000,
        event("c", {"id": 1}, table="orders_secret").replace('"op"', '"k": 1, "op"'),
    ]
    lake.ingest(*hostile)
    rows = lake.rows("t", "id", "extra", "part")
    stated = "${env:PATH}{x}"
    assert [row[:2] for row in rows] == [(1, stated), (2, stated), (3, "w"), (7, stated)]
    assert len({row[2] for row in rows}) == 4 and max(len(row[2]) for row in rows) == 200
    reasons = [reason for _, _, reason, _ in lake.dead_letters()]
    assert sum("nested more than 100 deep" in reason for reason in reasons) == 4, reasons


@pytest.mark.release
def test_every_encoding_may_be_declared_as_every_type(spark: SparkSession) -> None:
    """A connector states how a value is spelt, the project what its column is; what does not go together is NULL."""
    types = ("int", "bigint", "float", "double", "string", "boolean", "binary", "date", "timestamp", "decimal(10,2)")
    fields = [SourceField("c", kind, encoding, scale=2) for encoding in Encoding for kind in types]
    texts = {Encoding.PLAIN: "1", Encoding.OWN_SCALE: '{"scale": 1, "value": "Hw=="}', Encoding.LATIN1: "a"}
    texts[Encoding.DAYS] = "1"
    read = [
        spark_literal(texts.get(field.encoding, "Hw==" if "BASE64" in field.encoding.name else "86400000"))
        for field in fields
    ]
    items = [
        f"{decoder(field, text, f'try_cast({text} as decimal(38,20))')} as c{number}"
        for number, (field, text) in enumerate(zip(fields, read, strict=True))
    ]
    row = spark.range(1).selectExpr(*items).first()
    assert row is not None
    values = {(field.encoding.name, field.type): value for field, value in zip(fields, row, strict=True)}
    assert values["BASE64", "bigint"] is None and values["BASE64", "binary"] == b"\x1f"
    assert values["LATIN1", "timestamp"] is None and values["LATIN1", "string"] == "a"
    assert values["BASE64_DECIMAL", "timestamp"] is None and values["BASE64_DECIMAL", "double"] == 0.31
    assert values["OWN_SCALE", "timestamp"] is None and values["OWN_SCALE", "decimal(10,2)"] == Decimal("3.10")
    assert values["MILLIS", "bigint"] == 86_400_000 and values["MILLIS", "date"] == date(1970, 1, 2)
    assert values["MILLIS_OF_DAY", "timestamp"] is None and values["MILLIS_OF_DAY", "string"] == "24:00:00"


def test_json_of_many_brackets_and_few_levels_is_read(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, (table("t", columns={"id": "int", "name": "string"}),))
    brackets = json.dumps([[[{}] * 50] * 10] * 3)
    lake.ingest(event("c", {"id": 1, "name": "[{" * 500 + '"\\'}), event("c", {"id": 2, "name": brackets}))
    assert lake.rows("t", "id", "name") == [(1, "[{" * 500 + '"\\'), (2, brackets)]


def test_an_error_of_one_table_does_not_cost_the_batch_of_the_others(tmp_path: Path) -> None:
    source = Source("shop", "ods", IngestSource("debezium"), (), "", Location("models/s.yml", 1, 1))

    def work(name: str) -> str:
        if name == "bad":
            raise KeyError("x")
        return name

    place = SourcePaths(Target("p", "t", "spark", warehouse=str(tmp_path)), source)
    done, failed = side_by_side(place, ["a", "bad", "b"], work, table)
    assert done == ["a", "b"] and [(each.table.identifier, each.error) for each in failed] == [
        ("bad", "unexpected KeyError: 'x'")
    ]


def test_a_partition_of_a_model_has_a_name_that_file_systems_take(spark: SparkSession) -> None:
    texts = ["x", "ü", "y" * 240, "y" * 241, "y" * 240 + "z", "ü" * 100, "ü" * 99 + "é", "../" * 200, ""]
    frame = spark.createDataFrame([(text, 1) for text in texts], "a string, b int")
    names = [row[0] for row in frame.select(partition_path(("a",))).collect()]
    assert len(set(names)) == len(texts) and max(map(len, names)) <= 240
    assert names[0] == "x" and names[2] == "y" * 240, "what was there already has the name that it had"
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in names)
