"""Dagster builds the root project: `sml`'s log lines become materializations and checks, on DuckDB and on Spark."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from demo.shop.log import land
from tests.environments import python_of
from tests.orchestrators.root_project import EXAMPLES, copy_root_project, environment

pytestmark = pytest.mark.release  # an environment of its own, which takes longer to make than all of its tests
HERE = Path(__file__).parent


@cache
def python_of_dagster() -> Path:
    return python_of("dagster", HERE / "dagster.txt")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    copy_root_project(tmp_path / "project")
    return tmp_path / "project"


def materialize(project: Path, *selection: str, target: str = "test") -> dict[str, Any]:
    """Return what Dagster recorded of a run."""
    words = [str(python_of_dagster()), str(HERE / "materialize.py"), str(EXAMPLES / "dagster_definitions.py")]
    variables = environment(project.parent / "bin", SML_PROJECT=str(project), DBT_TARGET=target)
    done = subprocess.run(
        [*words, *selection], capture_output=True, text=True, timeout=600, env=variables, cwd=project.parent
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    recorded: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return recorded


def test_every_table_is_an_asset_and_every_data_test_its_check(project: Path) -> None:
    recorded = materialize(project)
    assert recorded["success"], recorded["errors"]
    models = {f"{path.parent.name}/{path.stem}" for path in (project / "models").rglob("*.sql")}
    assert recorded["tables"].keys() == {*models, "device"}
    (results,) = (project / "target").glob("*/run_results.json")
    run_results = json.loads(results.read_text())
    seconds = {row["unique_id"]: row["execution_time"] for row in run_results["results"]}
    for recorded_table in recorded["tables"].values():
        assert recorded_table["status"] == "success"
        assert recorded_table["invocation_id"] == run_results["metadata"]["invocation_id"]
        assert recorded_table["Execution Duration"] == pytest.approx(seconds[recorded_table["unique_id"]], abs=1e-5)
    checks = recorded["checks"]
    assert len(checks) == sum(unique_id.startswith("test.") for unique_id in seconds) - 1  # one reads several models
    assert all(check["passed"] and check["dagster_dbt/failed_row_count"] == 0 for check in checks.values())


def test_a_selection_of_assets_is_what_sml_builds(project: Path) -> None:
    recorded = materialize(project, "dws/user_agg")
    assert recorded["success"], recorded["errors"]
    assert recorded["tables"].keys() == {"dws/user_agg"}
    assert recorded["checks"].keys() == {"unique_user_agg_device_model", "not_null_user_agg_num"}


def test_what_fails_warns_and_is_skipped_is_seen_by_dagster(project: Path) -> None:
    (project / "models/dwd/dwd_product.sql").write_text("select nothing from {{ source('shop', 'product') }}")
    test = "{{ config(severity='warn') }} select user_id from {{ ref('dwd_user') }} where user_id <> 1"
    (project / "tests/data/one_user.sql").write_text(test)
    recorded = materialize(project)
    assert not recorded["success"]
    unaffected = {"dwd/dwd_order", "dwd/dwd_user", "dws/user_agg", "dws/product_month", "dws/buyers_month"}
    assert recorded["tables"].keys() == {"device", *unaffected}
    assert "models/dwd/dwd_product.sql:1:8" in "".join(recorded["errors"])
    warned = recorded["checks"]["one_user"]
    users = len((project / "fixtures/shop/user.csv").read_text().splitlines()) - 1
    assert (warned["passed"], warned["severity"], warned["dagster_dbt/failed_row_count"]) == (False, "WARN", users - 1)
    assert "not_null_dwd_product_product_id" not in recorded["checks"]


def test_on_spark_a_table_for_which_nothing_changed_is_materialized_too(project: Path) -> None:
    profile = (project / "profiles.yml").read_text()
    warehouse = project.parent / "warehouse"
    (project / "profiles.yml").write_text(profile.replace("warehouse: warehouse", f"warehouse: {warehouse}"))
    land(project, "1-snapshot", "2-new-orders")
    variables = environment(project.parent / "bin")
    subprocess.run(["sml", "ingest"], cwd=project, env=variables, timeout=600, check=True)
    tables = ("device", "dwd/dwd_user", "dwd/dwd_order", "dws/user_agg")
    for status in ("success", "no-op"):
        recorded = materialize(project, *tables, target="local")
        assert recorded["success"], recorded["errors"]
        statuses = {name: table["status"] for name, table in recorded["tables"].items()}
        assert statuses == dict.fromkeys(tables, status)
    assert [path.name for path in warehouse.glob("*/user_agg")] == ["user_agg"]
