"""A node's lines in JSON logs: what programs that drive dbt read of them, and the figures that dbt does not have."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from sqlmesh_like.cli.node_events import result_data
from sqlmesh_like.cli.printing.output import Output
from sqlmesh_like.cli.run_log import RunLog
from sqlmesh_like.names import NodeId, TableName
from sqlmesh_like.plan.history import CommitSummary
from sqlmesh_like.render.rendered import RenderedSeed
from sqlmesh_like.run.result import SeedResult
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]
FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
    "seeds/rates.csv": "id\n1\n2\n",
    "models/doubled.sql": "select id * 2 as id from {{ ref('rates') }}",
    "models/broken.sql": "select cast('x' as int) / id as id from {{ ref('rates') }} where assert_true(id > 1) is null",
    "models/after.sql": "select id from {{ ref('broken') }}",
    "snapshots/kept.sql": "{% snapshot kept %}{{ config(unique_key='id', strategy='check', check_cols='all') }}"
    "select id from {{ ref('rates') }}{% endsnapshot %}",
    "tests/too_large.sql": "{{ config(severity='warn') }} select id from {{ ref('doubled') }} where id > 3",
    "models/schema.yml": """
models: [{name: doubled, columns: [{name: id, data_tests: [not_null]}]}]
unit_tests:
  - name: doubles
    model: doubled
    given: [{input: ref('rates'), rows: [{id: 3}]}]
    expect: {rows: [{id: 6}]}
exposures: [{name: page, type: dashboard, owner: {name: ada}, depends_on: [ref('doubled')]}]
""",
}
SEED = RenderedSeed(NodeId("seed", "p", "s"), "s", "seeds/s.csv", TableName("dws", "s"), {}, {})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter_project(tmp_path, monkeypatch, FILES)
    return tmp_path


def test_each_kind_of_node_ends_with_dbts_event(project: Path, capsys: Shown) -> None:
    assert main(["build", "--log-format", "json"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    nodes = [line for line in lines if "node_info" in line["data"]]
    ended = {
        line["data"]["node_info"]["unique_id"]: (line["info"]["name"], line["data"]["node_info"]["node_status"])
        for line in nodes
        if line["info"]["name"] != "LogStartLine"
    }
    (not_null,) = (unique_id for unique_id in ended if "not_null" in unique_id)
    assert ended == {
        "seed.shop.rates": ("LogSeedResult", "success"),
        "model.shop.doubled": ("LogModelResult", "success"),
        "model.shop.broken": ("LogModelResult", "error"),
        "model.shop.after": ("SkippingDetails", "skipped"),
        "snapshot.shop.kept": ("LogSnapshotResult", "success"),
        "test.shop.too_large": ("LogTestResult", "warn"),
        "unit_test.shop.doubled.doubles": ("LogTestResult", "pass"),
        "exposure.shop.page": ("LogNodeNoOpResult", "no-op"),
        not_null: ("LogTestResult", "pass"),
    }
    started = {line["data"]["unique_id"]: line["data"] for line in nodes if line["info"]["name"] == "LogStartLine"}
    assert started.keys() == ended.keys() - {"model.shop.after", "exposure.shop.page"}
    assert {data["node_info"]["node_status"] for data in started.values()} == {"started"}


def test_a_log_and_run_results_tell_of_the_same_call(project: Path, capsys: Shown) -> None:
    assert main(["build", "-s", "+too_large", "--log-format", "json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    results = json.loads((project / "target/run_results.json").read_text())
    assert {line["info"]["invocation_id"] for line in lines} == {results["metadata"]["invocation_id"]}
    ended = {line["data"]["unique_id"]: line["data"] for line in lines if "execution_time" in line["data"]}
    row = next(row for row in results["results"] if row["unique_id"] == "test.shop.too_large")
    data = ended["test.shop.too_large"]
    assert (
        (data["num_failures"], data["execution_time"])
        == (row["failures"], row["execution_time"])
        == (1, data["execution_time"])
    )
    materialized = {unique_id.split(".")[0]: data["node_info"]["materialized"] for unique_id, data in ended.items()}
    assert materialized == {"seed": "seed", "model": "incremental", "test": "test", "unit_test": "unit"}


def test_a_table_for_which_nothing_had_changed_ends_as_any_other() -> None:
    result = SeedResult(SEED, "no-op", "nothing changed", datetime(2024, 1, 1, tzinfo=UTC), 0.0)
    stream = io.StringIO()
    RunLog(Output(log_format="json", stream=stream), Path()).ended(1, 1, result)
    line = json.loads(stream.getvalue())
    assert line["info"]["name"] == "LogSeedResult"  # without it Dagster would miss the asset
    assert line["data"]["node_info"]["node_status"] == "no-op"


def test_an_outcome_has_rows_bytes_and_times() -> None:
    written = CommitSummary("20240101000000000", rows=10, files=2, bytes=4096, changed=3)
    started = datetime(2024, 1, 1, tzinfo=UTC)
    assert result_data(SeedResult(SEED, "success", "", started, 1.23456, rows=3, written=written)) == {
        "unique_id": "seed.p.s",
        "resource_type": "seed",
        "name": "s",
        "status": "success",
        "strategy": None,
        "rows": 3,
        "bytes": 4096,
        "failures": None,
        "num_failures": None,
        "elapsed": 1.235,
        "execution_time": 1.23456,
        "message": "",
        "node_info": {
            "unique_id": "seed.p.s",
            "node_name": "s",
            "resource_type": "seed",
            "materialized": "seed",
            "node_status": "success",
            "node_started_at": "2024-01-01T00:00:00.000000Z",
            "node_finished_at": "2024-01-01T00:00:01.234560Z",
        },
    }
    assert result_data(SeedResult(SEED, "error", "no int", started, 0.0))["bytes"] == 0
