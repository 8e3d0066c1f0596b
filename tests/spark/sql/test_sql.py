"""Tables that Spark wrote, asked without it: by `sml sql`, and by DuckDB through hudi-rs."""

from __future__ import annotations

import json
from decimal import Decimal as D

import duckdb
import pyarrow as pa
import pytest
from hudi import HudiTableBuilder
from pyspark.sql import SparkSession

from sqlmesh_like.app.lakes import lake as cli_lake
from sqlmesh_like.cli.app import main
from tests.spark.demo_lake import share
from tests.spark.lake import ORDERS, Lake


@pytest.mark.checklist(56, 57)
def test_a_query_has_the_same_rows_with_spark_and_without(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = lake.source("orders", ORDERS, partition="ym")
    orders.upsert((1, 7, D(5), "Ulm", "01"), (2, 7, D(5), "Ulm", "01"), (3, 8, D(1), None, "02"))
    orders.upsert((2, 7, D(6), "Ulm", "01"), (4, 8, D(2), "Bonn", "02"), delete=[(3, 8, D(1), None, "02")])
    logged = lake.source("logged", "id int, name string", table_type="mor")
    logged.upsert((1, "a"), (2, "b"))
    logged.upsert((2, "c"))
    lake.model("by_city", "select city, sum(amount) as total, count(1) as n from @orders group by city")
    assert lake.run_well("by_city") == {"by_city": "full_refresh"}
    query = "select o.id, o.amount, b.total, b.n from ods.orders o join by_city b on o.city = b.city order by 1"

    def answer(text: str) -> list[dict[str, object]]:
        assert main(["sql", text, "--output", "json", "--project-dir", str(lake.root)]) == 0
        document = json.loads(capsys.readouterr().out)
        assert isinstance(document, list)
        return document

    with monkeypatch.context() as without:
        without.setattr(cli_lake, "spark_engine", lambda *_: pytest.fail("Spark was asked"))
        alone = answer(query)
    share(spark, monkeypatch)
    with monkeypatch.context() as with_spark:
        with_spark.setattr("sqlmesh_like.duckdb.local_query.local_rows", lambda *_: None)
        assert answer(query) == alone
    assert alone == [
        {"id": 1, "amount": "5.00", "total": "11.00", "n": 2},
        {"id": 2, "amount": "6.00", "total": "11.00", "n": 2},
        {"id": 4, "amount": "2.00", "total": "2.00", "n": 1},
    ]
    assert answer("select * from logged order by id") == [{"id": 1, "name": "a"}, {"id": 2, "name": "c"}]

    by_city = pa.Table.from_batches(HudiTableBuilder.from_base_uri(lake.uri("by_city")).build().read())
    assert by_city.num_rows == 2
    rows = duckdb.sql("select city, total, n from by_city order by city").fetchall()
    assert rows == [("Bonn", D("2.00"), 1), ("Ulm", D("11.00"), 2)]
