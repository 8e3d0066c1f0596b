"""The Python API: what its methods return is what the commands print, on both kinds of target and with no JVM."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sqlmesh_like import Project
from sqlmesh_like.app.shared_spark import SharedSpark
from sqlmesh_like.cli.app import main
from sqlmesh_like.errors import NodeError, ProjectError, SelectionError, UsageError
from tests.local_lake import make_table
from tests.projects import enter_project

REPOSITORY = Path(__file__).parents[3]
Shown = pytest.CaptureFixture[str]

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {target: t, outputs: {t: {type: duckdb, schema: dws},\n"
    "  s: {type: spark, schema: dws, warehouse: w}}}\n",
    "models/s.yml": """
sources:
  - name: ods
    tables:
      - name: orders
        columns:
          - {name: id, data_type: int}
          - {name: at, data_type: timestamp}
          - {name: amount, data_type: "decimal(10,2)"}
models:
  - {name: orders, columns: [{name: id, data_tests: [unique, not_null]}]}
""",
    "models/orders.sql": "select * from {{ source('ods', 'orders') }} where amount > {{ var('least', 0) }}",
    "models/totals.sql": "select date(at) as day, sum(amount) as total from {{ ref('orders') }} group by date(at)",
    "models/recent.sql": "{{ config(materialized='view') }} select id from {{ ref('orders') }} where id > 1",
    "seeds/rates.csv": "id,rate\n1,0.5\n",
    "fixtures/ods/orders.csv": "id,at,amount\n1,2024-01-31 23:59:59,5.00\n2,2024-02-01 00:00:00,7\n3,,0\n",
}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter_project(tmp_path, monkeypatch, FILES)
    return tmp_path


def printed(capsys: Shown, *words: str) -> Any:
    capsys.readouterr()
    assert main([*words]) == 0
    return json.loads(capsys.readouterr().out)


def test_importing_the_package_imports_no_engine_and_no_application() -> None:
    text = (
        "import sys, sqlmesh_like; print([n for n in sys.modules if n.startswith('sqlmesh_like.') or n == 'pyspark'])"
    )
    shown = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert shown.stdout == "[]\n"


def test_a_build_prints_nothing_and_is_that_of_the_command(shop: Path, capsys: Shown) -> None:
    with Project.load(shop) as project:
        result = project.build()
    assert capsys.readouterr() == ("", "")
    mine = json.loads((shop / "target/run_results.json").read_text())["results"]
    assert main(["build"]) == 0
    theirs = json.loads((shop / "target/run_results.json").read_text())["results"]
    assert {row["unique_id"]: row["status"] for row in mine} == {row["unique_id"]: row["status"] for row in theirs}
    assert result.ok and {each.node.unique_id: each.status for each in result.results} == {
        row["unique_id"]: row["status"] for row in theirs
    }


def test_each_method_runs_its_kind_of_nodes(shop: Path) -> None:
    with Project.load(shop) as project:
        assert [each.node.name for each in project.seed().results] == ["rates"]
        assert {each.node.name for each in project.run(["orders", "totals"]).results} == {"orders", "totals"}
        assert {each.status for each in project.test("orders").results} == {"pass"}
        assert [node.name for node in project.ls("orders+", resource_type="model")] == ["orders", "recent", "totals"]
        assert {node.resource_type for node in project.ls()} == {"model", "seed", "source", "test"}


def test_failures_are_in_the_result_and_wrong_calls_are_raised(shop: Path) -> None:
    with Project.load(shop) as project:
        (shop / "fixtures/ods/orders.csv").write_text("id,at,amount\n1,,5\n1,,6\n")
        result = project.build("orders")
        assert not result.ok
        assert {each.node.name.split("_")[0]: each.status for each in result.results} == {
            "orders": "success", "unique": "fail", "not": "pass",
        }  # fmt: skip
        with pytest.raises(SelectionError, match="nothing"):
            project.run("nothing")
        with pytest.raises(ProjectError, match="did you mean 'totals'"):
            project.table("total").to_arrow()
        (shop / "models/orders.sql").write_text("selec 1")
        with pytest.raises(ProjectError, match=r"models/orders.sql:1"):
            project.run("orders")
        broken, *skipped = project.run().results
        assert (broken.node.name, broken.status) == ("orders", "error") and "models/orders.sql:1:1" in broken.message
        assert {each.status for each in skipped} == {"skipped"}


def test_a_wrong_project_is_found_when_it_is_loaded(shop: Path) -> None:
    with pytest.raises(UsageError, match="no target 'x'"):
        Project.load(shop, target="x")
    (shop / "models/s.yml").write_text("models: [{name: [1, 2]}]\n")
    with pytest.raises(ProjectError, match=r"models/s.yml:1"):
        Project.load(shop)


def test_variables_and_the_folder_of_profiles_are_given(shop: Path, tmp_path: Path) -> None:
    (shop / "elsewhere").mkdir()
    shutil.move(shop / "profiles.yml", shop / "elsewhere/profiles.yml")
    with Project.load(shop / "models", profiles_dir=shop / "elsewhere", vars={"least": 6}) as p:
        assert p.sql("select id from dws.orders").to_pylist() == [{"id": 2}]
    with pytest.raises(UsageError, match="vars"):
        Project.load(shop, profiles_dir=shop / "elsewhere", vars={"least": object()})


def test_tables_come_as_arrow_in_the_types_of_spark(shop: Path, capsys: Shown) -> None:
    with Project.load(shop) as project:
        orders = project.table("dws.orders").to_arrow()
        assert orders.schema == pa.schema(
            [("id", pa.int32()), ("at", pa.timestamp("us", tz="UTC")), ("amount", pa.decimal128(10, 2))]
        )
        assert orders.to_pylist()[0] == {
            "id": 1, "at": datetime(2024, 1, 31, 23, 59, 59, tzinfo=UTC), "amount": Decimal("5.00"),
        }  # fmt: skip
        assert project.table("totals").to_arrow(limit=1).num_rows == 1
        assert project.table("recent").to_arrow().to_pylist() == [{"id": 2}]
        assert [(c.name, c.type) for c in project.table("totals").schema] == [
            ("day", "date"),
            ("total", "decimal(20,2)"),
        ]
        assert [c.name for c in project.table("recent").schema] == ["id"]
        total = project.sql("select sum(total) as total from totals").to_pylist()
    assert [{"total": str(total[0]["total"])}] == printed(
        capsys, "sql", "select sum(total) as total from totals", "--output", "json"
    )


def test_a_plan_in_memory_is_that_of_a_first_build(shop: Path) -> None:
    with Project.load(shop) as project:
        plan = project.plan()
        assert {str(model.table): model.strategy for model in plan.models} == {
            "dws.orders": "row_based", "dws.totals": "aggregate_merge",
        }  # fmt: skip
        assert {model.next_run for model in plan.models} == {"full_refresh"}
        assert {reason.rule for model in plan.models for reason in model.next_run_reasons} == {"HIS001"}
        assert not (shop / "target/run_results.json").exists()


def test_a_plan_of_a_lake_is_what_explain_prints(shop: Path, capsys: Shown) -> None:
    make_table(shop / "w/ods/orders", _orders())
    with Project.load(shop, target="s") as project:
        plan = project.plan("totals")
        assert plan.to_dict() == printed(capsys, "explain", "totals", "-t", "s", "--output", "json")
        (model,) = plan.models
        assert (model.unique_id, model.strategy, model.next_run) == (
            "model.shop.totals",
            "aggregate_merge",
            "full_refresh",
        )
        assert [(str(each.ref.table), each.end) for each in model.inputs] == [("dws.orders", None)]
        assert "-- full build" in model.program


def test_a_table_of_a_lake_is_read_without_a_jvm(shop: Path) -> None:
    make_table(shop / "w/ods/orders", _orders())
    with Project.load(shop, target="s") as project:
        table = project.table("ods.orders")
        assert (table.state.kind, [c.name for c in table.schema]) == ("cow", ["id", "at", "amount"])
        assert table.to_arrow().equals(_orders())
        assert table.to_arrow(limit=1).num_rows == 1
        assert [(c.name, c.type) for c in project.table("recent").schema] == [("id", "int")]
        with pytest.raises(NodeError, match="does not exist yet"):
            project.table("orders").to_arrow()
        with pytest.raises(SelectionError, match="no ingested source"):
            project.ingest()


def test_freshness_is_what_the_command_says(shop: Path, capsys: Shown) -> None:
    make_table(shop / "w/ods/orders", _orders())
    with Project.load(shop, target="s") as project:
        assert project.freshness() == ()
        declared = (shop / "models/s.yml").read_text()
        asked = "      - name: orders\n        freshness: {error_after: {count: 1, period: hour}}\n"
        (shop / "models/s.yml").write_text(declared.replace("      - name: orders\n", asked))
        (mine,) = project.freshness()
        assert (mine.unique_id, mine.status, mine.error) == ("source.shop.ods.orders", "error", None)
    assert capsys.readouterr().out == ""
    (shop / "target/sources.json").unlink()
    assert main(["freshness", "-t", "s"]) == 1
    (theirs,) = json.loads((shop / "target/sources.json").read_text())["results"]
    assert (theirs["status"], theirs["max_loaded_at"][:19]) == ("error", mine.newest.isoformat()[:19])


def test_maintenance_looks_at_the_tables_that_only_we_write(shop: Path) -> None:
    make_table(shop / "w/ods/orders", _orders())
    make_table(shop / "w/dws/orders", _orders())
    with Project.load(shop, target="s") as project:
        (result,) = project.maintain()
        assert (str(result.place.table), result.status, result.done) == ("dws.orders", "no-op", ())
        assert project.maintain("totals") == ()


def test_publishing_sends_the_rows_of_a_table_and_then_nothing(shop: Path) -> None:
    make_table(shop / "w/dws/orders", _orders())
    profiles = (shop / "profiles.yml").read_text()
    published = profiles.replace("warehouse: w}", "warehouse: w, publish: {bi: {duckdb: bi.duckdb}}}")
    (shop / "profiles.yml").write_text(published)
    with Project.load(shop, target="s") as project:
        with pytest.raises(SelectionError, match="no selected model is published"):
            project.publish()
        model = (shop / "models/orders.sql").read_text()
        (shop / "models/orders.sql").write_text("{{ config(publish=true, unique_key='id') }}" + model)
        assert [(each.error, [(s.destination, s.rows) for s in each.sent]) for each in project.publish()] == [
            (None, [("bi", 2)])
        ]
        assert [[s.rows for s in each.sent] for each in project.publish("orders")] == [[None]]


def test_what_needs_a_lake_says_so(shop: Path) -> None:
    with Project.load(shop) as project:
        for call in (project.ingest, project.verify, project.maintain, project.publish, project.freshness):
            with pytest.raises(UsageError, match="has no lake"):
                call()


def test_a_closed_project_is_not_used(shop: Path) -> None:
    project = Project.load(shop)
    project.close()
    with pytest.raises(UsageError, match="closed"):
        project.ls()


def test_progress_and_warnings_are_logged(shop: Path, caplog: pytest.LogCaptureFixture) -> None:
    (shop / "fixtures/ods/other.csv").write_text("id\n")
    with Project.load(shop) as project, caplog.at_level(logging.INFO, "sqlmesh_like"):
        project.run("orders")
        project.run("orders")
    messages = [record.getMessage() for record in caplog.records]
    assert sum("other.csv is not the fixture" in line for line in messages) == 1
    assert messages.count("1 nodes, all well") == 2


class _Spark:
    def __init__(self) -> None:
        self.is_stopped = False

    def stop(self) -> None:
        self.is_stopped = True


def test_one_spark_serves_all_calls_until_the_end() -> None:
    started: list[bool] = []

    def start(*, with_kafka: bool) -> Any:
        started.append(with_kafka)
        return _Spark()

    shared = SharedSpark()
    first: Any = shared.session(start)
    assert shared.session(start) is first
    kafka: Any = shared.session(start, with_kafka=True)
    assert first.is_stopped and shared.session(start) is kafka
    shared.close()
    assert kafka.is_stopped and started == [False, True]


def test_a_session_of_the_caller_is_never_stopped() -> None:
    given: Any = _Spark()
    shared = SharedSpark(given)
    assert shared.session(lambda with_kafka: pytest.fail("started"), with_kafka=True) is given
    shared.close()
    assert not given.is_stopped


def test_the_example_runs(tmp_path: Path) -> None:
    for name in ("models", "macros", "seeds", "tests/data", "fixtures"):
        shutil.copytree(REPOSITORY / name, tmp_path / name)
    for name in ("pyproject.toml", "profiles.yml"):
        shutil.copy(REPOSITORY / name, tmp_path)
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(REPOSITORY)]))
    shown = subprocess.run(
        [sys.executable, REPOSITORY / "examples/python_api.py"],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, check=False,
    )  # fmt: skip
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = shown.stdout.splitlines()
    assert lines[0] == "shop_lake on test: 11 models"
    assert any(line.startswith("dws.revenue_by_month: ") for line in lines)
    assert "all well" in shown.stdout and "did you mean 'revenue_by_month'?" in lines[-1]


def _orders() -> pa.Table:
    moment = datetime(2024, 1, 31, 23, 59, 59, tzinfo=UTC)
    return pa.table({
        "id": pa.array([1, 2], pa.int32()),
        "at": pa.array([moment, None], pa.timestamp("us", tz="UTC")),
        "amount": pa.array([Decimal("5.00"), None], pa.decimal128(10, 2)),
    })  # fmt: skip
