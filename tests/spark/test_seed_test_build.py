"""`sml seed`, `sml test` and `sml build` on real Hudi, as a user calls them; one Spark session serves all calls."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cli.app import main
from sqlmesh_like.hudi.timeline import Timeline
from tests.spark.demo_lake import share

ORDERS = "id,product,amount,ordered_on,note\n1,tea,5.00,2024-01-02,\n2,tea,7.50,2024-01-02,ü 🛒\n3,milk,1.25,,x\n"
FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\nprofile = "lake"\n',
    "profiles.yml": "lake: {target: a, outputs: {a: {type: spark, warehouse: warehouse, schema: dws, threads: 2}}}\n",
    "seeds/orders.csv": ORDERS,
    "models/sales.sql": "select product, sum(amount) total from {{ ref('orders') }} group by product",
    "models/top.sql": "select max(total) as best from {{ ref('sales') }}",
}


@pytest.fixture(autouse=True)
def project(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    put(tmp_path, FILES)
    monkeypatch.chdir(tmp_path)
    share(spark, monkeypatch)
    return tmp_path


def put(root: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def rows(spark: SparkSession, name: str) -> list[tuple[Any, ...]]:
    frame = spark.read.format("hudi").load(str(Path.cwd() / "warehouse" / "dws" / name))
    shown = [column for column in frame.columns if not column.startswith(("_hoodie", "_sml"))]
    return sorted((tuple(row) for row in frame.select(*shown).collect()), key=str)


def commits(project: Path, name: str) -> int:
    return len(Timeline(str(project / "warehouse" / "dws" / name)).data_commits)


def results(project: Path) -> dict[str, dict[str, Any]]:
    run_results = json.loads((project / "target" / "run_results.json").read_text())["results"]
    return {row["unique_id"].split(".")[2]: row for row in run_results}


def statuses(project: Path) -> dict[str, str]:
    return {name: row["status"] for name, row in results(project).items()}


def test_a_seed_becomes_a_table_of_inferred_types(spark: SparkSession, project: Path) -> None:
    assert main(["seed"]) == 0
    stored = rows(spark, "orders")
    assert [str(value) for value in stored[0]] == ["1", "tea", "5.00", "2024-01-02", "None"]
    assert [row[3:] for row in stored] == [(date(2024, 1, 2), None), (date(2024, 1, 2), "ü 🛒"), (None, "x")]


def test_an_unchanged_seed_makes_no_commit(project: Path) -> None:
    assert main(["seed"]) == 0
    assert main(["seed"]) == 0
    assert (commits(project, "orders"), statuses(project)) == (1, {"orders": "no-op"})
    assert main(["seed", "--full-refresh"]) == 0
    assert commits(project, "orders") == 2


def test_a_model_over_a_changed_seed_follows_the_rows_that_differ(spark: SparkSession, project: Path) -> None:
    assert main(["build"]) == 0
    put(project, {"seeds/orders.csv": ORDERS.replace("7.50", "8.50").replace("3,milk,1.25,,x\n", "4,salt,2.00,,\n")})
    assert main(["build"]) == 0
    response = results(project)["sales"]["adapter_response"]
    assert (response["strategy"], response["upserts"], response["deletes"]) == ("aggregate_merge", 2, 1)
    assert [(name, str(total)) for name, total in rows(spark, "sales")] == [("salt", "2.00"), ("tea", "13.50")]
    assert main(["verify"]) == 0
    assert main(["docs", "generate", "-q"]) == 0
    catalog = json.loads((project / "target/catalog.json").read_text())["nodes"]
    for name in ("orders", "sales", "top"):
        message = next(entry for entry in catalog.values() if entry["metadata"]["name"] == name)
        frame = spark.read.format("hudi").load(str(project / "warehouse" / "dws" / name))
        shown = {c: t for c, t in frame.dtypes if not c.startswith(("_hoodie", "_sml"))}
        assert {column["name"]: column["type"] for column in message["columns"].values()} == shown
        assert message["stats"]["row_count"]["value"] == frame.count()


def test_a_seed_may_change_its_columns_and_types(spark: SparkSession, project: Path) -> None:
    assert main(["build"]) == 0
    put(project, {"seeds/orders.csv": "product,amount,extra\ntea,1e3,true\n"})
    assert main(["build"]) == 0
    assert rows(spark, "orders") == [("tea", 1000.0, True)]
    assert rows(spark, "sales") == [("tea", 1000.0)]


@pytest.mark.release
def test_a_seed_without_rows_is_an_empty_table(spark: SparkSession, project: Path) -> None:
    put(project, {"seeds/orders.csv": "product,amount\n", "models/s.yml": SEED_TYPES})
    assert main(["build"]) == 0
    assert (rows(spark, "orders"), rows(spark, "sales")) == ([], [])
    put(project, {"seeds/orders.csv": "product,amount\ntea,1.5\n"})
    assert main(["build"]) == 0
    assert [(name, str(total)) for name, total in rows(spark, "sales")] == [("tea", "1.50")]


SEED_TYPES = "version: 2\nseeds: [{name: orders, config: {column_types: {amount: 'decimal(10,2)'}}}]\n"


@pytest.mark.release
def test_equal_rows_of_a_seed_are_all_kept(spark: SparkSession, project: Path) -> None:
    put(project, {"seeds/orders.csv": "product,amount\ntea,1\ntea,1\n"})
    assert main(["build"]) == 0
    assert rows(spark, "sales") == [("tea", 2)]
    put(project, {"seeds/orders.csv": "product,amount\ntea,1\n"})
    assert main(["build"]) == 0
    assert rows(spark, "sales") == [("tea", 1)]


def test_a_seed_after_an_interrupted_swap_of_its_table_is_not_stored_twice(spark: SparkSession, project: Path) -> None:
    assert main(["seed"]) == 0
    stored = rows(spark, "orders")
    table = project / "warehouse" / "dws" / "orders"
    table.rename(table.with_name("orders__sml_old"))  # a crash between the two renames, before the new one is in place
    assert main(["seed"]) == 0
    assert rows(spark, "orders") == stored and stored
    assert [path.name for path in table.parent.iterdir() if path.name.startswith("orders")] == ["orders"]


def test_a_wrong_seed_leaves_its_table_and_those_of_its_readers_as_they_were(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build"]) == 0
    put(project, {"seeds/orders.csv": ORDERS + "5,tea,1,2024-01-02,,x\n", "seeds/more.csv": "a\n1\n"})
    assert main(["build"]) == 1
    assert "orders: seeds/orders.csv:5:21: this line has 6 fields, the header has 5" in capsys.readouterr().out
    assert [commits(project, name) for name in ("orders", "sales", "top", "more")] == [1, 1, 1, 1]
    assert main(["build", "-s", "orders"]) == 2
    assert "error: seeds/orders.csv:5:21: this line has 6 fields" in capsys.readouterr().err
    assert [commits(project, name) for name in ("orders", "sales", "top")] == [1, 1, 1]


TESTS = """
version: 2
models:
  - name: sales
    columns:
      - name: product
        data_tests: [unique, not_null, {accepted_values: {values: [tea]}}]
  - name: top
    columns: [{name: best, data_tests: [not_null]}]
"""


@pytest.mark.release
def test_failing_rows_are_counted_and_shown(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build"]) == 0
    put(project, {"models/t.yml": TESTS})
    capsys.readouterr()
    assert main(["test"]) == 1
    out = capsys.readouterr().out
    assert "[FAIL 1 in" in out and "milk" in out and "Got 1 result, configured to fail if != 0" in out
    assert out.rstrip().endswith("Done. PASS=3 WARN=0 ERROR=1 SKIP=0 NO-OP=0 TOTAL=4")
    assert results(project)["accepted_values_sales_product__tea"]["failures"] == 1


@pytest.mark.release
def test_a_warning_fails_nothing(project: Path) -> None:
    warning = "{{ config(severity='warn') }} select * from {{ ref('orders') }} where amount > 2"
    threshold = "{{ config(error_if='> 2', warn_if='> 5') }} select * from {{ ref('orders') }} where amount > 2"
    put(project, {"tests/big.sql": warning, "tests/few.sql": threshold})
    assert main(["build"]) == 0
    assert (statuses(project)["big"], statuses(project)["few"]) == ("warn", "pass")
    assert results(project)["big"]["failures"] == 2


@pytest.mark.release
def test_a_failed_test_skips_what_reads_its_model(project: Path) -> None:
    put(project, {"models/t.yml": TESTS, "models/aside.sql": "select id from {{ ref('orders') }}"})
    assert main(["build"]) == 1
    by_node = statuses(project)
    assert by_node["accepted_values_sales_product__tea"] == "fail"
    assert (by_node["top"], by_node["not_null_top_best"], by_node["aside"]) == ("skipped", "skipped", "success")
    assert not (project / "warehouse/dws/top").exists()


def test_a_test_reads_views_and_sources_without_a_table_of_its_own(project: Path) -> None:
    view = "{{ config(materialized='view') }} select product from {{ ref('orders') }} where amount > 6"
    put(project, {"models/big.sql": view, "tests/none_big.sql": "select * from {{ ref('big') }};"})
    assert main(["build", "-s", "orders", "big", "none_big"]) == 1
    assert results(project)["none_big"]["failures"] == 1


def test_a_test_of_a_missing_table_is_an_error_that_says_so(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(project, {"tests/t.sql": "select * from {{ ref('orders') }}"})
    assert main(["test"]) == 1
    assert statuses(project) == {"t": "error"}
    assert "does not exist" in capsys.readouterr().out


def test_a_test_of_an_unknown_column_names_the_nearest(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["seed"]) == 0
    column = "{name: prodct, data_tests: [not_null]}"
    put(project, {"models/t.yml": f"version: 2\nseeds: [{{name: orders, columns: [{column}]}}]\n"})
    assert main(["test"]) == 1
    out = capsys.readouterr().out
    assert re.search(r"models/t\.yml:2:\d+: data test not_null_orders_prodct: unknown column 'prodct'", out)
    assert "did you mean 'product'?" in out


def test_a_run_with_one_wrong_model_builds_the_others(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["seed"]) == 0
    put(project, {"models/zz.sql": "select prodct from {{ ref('orders') }}"})
    assert main(["run"]) == 1
    assert "models/zz.sql:1:8: unknown column 'prodct'" in capsys.readouterr().out
    assert (project / "warehouse/dws/sales").exists() and not (project / "warehouse/dws/zz").exists()
