"""Tables that are not declared are ingested where their events name a key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cdc.formats.format_registry import FORMATS
from sqlmesh_like.hudi.timeline import Timeline
from tests.spark.ingest_lake import Lake, report_of, table


def canal(name: str, key: list[str] | None, *rows: object) -> str:
    types = {"id": "int", "v": "varchar(9)"}
    return json.dumps(
        {"type": "INSERT", "database": "db", "table": name, "data": rows, "mysqlType": types, "pkNames": key}
    )


@pytest.mark.release
def test_tables_are_found_by_the_keys_of_their_events(spark: SparkSession, tmp_path: Path) -> None:
    shop = Lake(spark, tmp_path, (table(),), {"format": "canal", "discover": True})
    report = shop.ingest(
        canal("t", ["id"], {"id": "1", "v": "a"}),
        canal("found", ["id"], {"id": "1", "v": "a"}, {"id": "1", "v": "b"}),
        canal("keyless", None, {"id": "1", "v": "a"}),
    )
    assert [str(each) for each in report.discovered] == ["ods.found"]
    assert report.skipped == {"undeclared db.keyless (no key in its events)": 1}
    assert (shop.rows(), shop.rows("found")) == ([(1, "a")], [(1, "b")])
    # Its key is known from now on, and a declaration may take it over.
    again = shop.ingest(canal("found", None, {"id": "2", "v": "c"}), canal("found", None, {"id": "1", "v": "d"}))
    assert (again.discovered, report_of(again, "found").upserts) == ((), 2)
    shop.tables = (table(), table("found"))
    shop.ingest(canal("found", None, {"id": "2", "v": "e"}))
    assert shop.rows("found") == [(1, "d"), (2, "e")]
    assert len(Timeline(shop.uri("found")).data_commits) == 3


def test_keys_are_where_each_format_puts_them(spark: SparkSession) -> None:
    def keys(form: str, value: object, key: object) -> list[list[str] | None]:
        texts = spark.createDataFrame([(json.dumps(value), json.dumps(key))], "value STRING, log_key STRING")
        return [texts.selectExpr(f"{dialect.key} as k").first()["k"] for _, dialect in FORMATS[form]]  # type: ignore

    plain, stated = {"id": 1, "__dbz__physicalTableIdentifier": "x"}, {"schema": {}, "payload": {"a": 1, "b": 2}}
    assert keys("debezium", {}, plain) == [["id"]]
    assert keys("debezium", {}, stated) == [["a", "b"]]
    assert keys("debezium", {}, None) == [None]
    assert keys("flink_cdc", {"pkNames": ["c"]}, {"TableId": "db.t", "id": 1}) == [["id"], ["c"]]
    assert keys("maxwell", {"primary_key_columns": ["id"]}, None) == [["id"]]
    assert keys("maxwell", {}, {"database": "db", "table": "t", "pk.id": 1}) == [["id"]]
    assert keys("maxwell", {}, {"database": "db"}) == [None]
    assert keys("dms", {}, {"id": 1}) == [None]
