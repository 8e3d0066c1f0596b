"""`sml retry`: what is taken from the last call, and what is refused. The tables are missing: no Spark is started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sqlmesh_like.app.loading.own_calls import note_own_call
from sqlmesh_like.cli.app import main
from sqlmesh_like.cli.commands import retry
from sqlmesh_like.cli.options import Flags
from tests.projects import enter_project

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {target: a, outputs: {a: {type: spark, schema: dws, warehouse: lake}, "
    "b: {type: spark, schema: other, warehouse: lake}}}\n",
    "models/s.yml": "sources: [{name: shop, schema: ods, tables: [{name: user}]}]\n",
    "models/users.sql": "select id from {{ source('shop', 'user') }}",
    "models/agg.sql": "select count(*) as n from {{ ref('users') }}",
    "models/seen.sql": "{{ config(materialized='view') }}select 1 as a",
}
RESULTS = Path("target/run_results.json")
Shown = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    """A project whose last call left one model failed, one skipped and one done."""
    enter_project(tmp_path, monkeypatch, FILES)
    assert main(["run", "--now", "2024-05-01T00:00:00Z", "--threads", "3"]) == 1
    capsys.readouterr()


def outcome() -> dict[str, str]:
    rows = json.loads(RESULTS.read_text())["results"]
    return {row["unique_id"].rpartition(".")[2]: row["status"] for row in rows}


def rewrite(**args: object) -> None:
    data = json.loads(RESULTS.read_text())
    data["args"] |= args
    RESULTS.write_text(json.dumps(data))
    note_own_call(RESULTS.resolve())


@pytest.fixture
def repeated(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(retry, "run_selected", lambda *given, **named: calls.append((*given, named)) or 0)
    return calls


def test_only_what_failed_or_was_skipped_is_run_again(capsys: Shown) -> None:
    assert outcome() == {"users": "error", "agg": "skipped", "seen": "success"}
    assert main(["retry"]) == 1
    assert outcome() == {"users": "error", "agg": "skipped"}
    assert "1 of 2 START sql incremental model dws.users" in capsys.readouterr().out


def test_the_last_call_is_repeated_with_its_clock_and_flags(repeated: list[tuple[Any, ...]]) -> None:
    rewrite(full_refresh=True, target="b", fail_fast=True, slices=7)
    assert main(["retry"]) == 0
    ((flags, which, now, only, named),) = repeated
    assert flags == Flags(target="b", threads=3, full_refresh=True, fail_fast=True)
    assert (which, now) == ("run", "2024-05-01T00:00:00Z")
    assert only == ["model.shop.agg", "model.shop.users"]
    assert named == {"store_failures": False, "units_on": "duckdb", "slices": 7, "backfill": None}


def test_the_options_of_a_test_are_repeated(repeated: list[tuple[Any, ...]]) -> None:
    recorded = json.loads(RESULTS.read_text())["args"]
    assert (recorded["store_failures"], recorded["engine"]) == (False, "duckdb")
    rewrite(which="test", store_failures=True, engine="spark")
    assert main(["retry"]) == 0
    named = repeated[0][4]
    assert repeated[0][1] == "test" and (named["store_failures"], named["units_on"]) == (True, "spark")


def test_flags_given_now_win(repeated: list[tuple[Any, ...]]) -> None:
    assert main(["retry", "--threads", "1", "-t", "b"]) == 0
    assert (repeated[0][0].threads, repeated[0][0].target) == (1, "b")


def test_the_results_may_be_those_of_another_folder(repeated: list[tuple[Any, ...]]) -> None:
    RESULTS.parent.rename("kept")
    assert main(["retry", "--state", "kept"]) == 0
    assert repeated[0][0].state is None


def test_variables_are_not_kept_and_must_be_given_again(repeated: list[tuple[Any, ...]], capsys: Shown) -> None:
    assert main(["run", "--vars", "{a: hunter2}"]) == 1
    assert "hunter2" not in RESULTS.read_text()
    assert main(["retry"]) == 2
    assert "the last call had --vars" in capsys.readouterr().err
    assert main(["retry", "--vars", "{a: hunter2}"]) == 0
    assert repeated[0][0].vars == "{a: hunter2}"


def test_nothing_is_done_where_nothing_failed(capsys: Shown) -> None:
    assert main(["run", "-s", "seen"]) == 0
    before = RESULTS.read_text()
    assert main(["retry"]) == 0
    assert "Nothing to retry" in capsys.readouterr().out
    assert RESULTS.read_text() == before


def test_what_the_project_no_longer_has_is_left_out(repeated: list[tuple[Any, ...]], capsys: Shown) -> None:
    Path("models/agg.sql").unlink()
    assert main(["retry"]) == 0
    assert repeated[0][3] == ["model.shop.users"]
    assert "model.shop.agg failed in the last call and is no longer there" in capsys.readouterr().out
    Path("models/users.sql").unlink()
    assert main(["retry"]) == 2
    assert "the project no longer has what failed" in capsys.readouterr().err


def test_a_call_that_cannot_be_repeated_exits_2(capsys: Shown) -> None:
    assert main(["retry", "-s", "users"]) == 2
    assert "--select has no meaning here" in capsys.readouterr().err
    rewrite(which="docs")
    assert main(["retry"]) == 2
    assert "is not of a call that can be repeated" in capsys.readouterr().err
    RESULTS.unlink()
    assert main(["retry"]) == 2
    assert "there is no run_results.json" in capsys.readouterr().err


BAD_TEST = "models: [{name: one, columns: [{name: id, data_tests: [{accepted_values: {arguments: {values: [2]}}}]}]}]"


@pytest.fixture
def tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project on DuckDB whose one data test fails, and whose model is built all the same."""
    (tmp_path / "tested").mkdir()
    files = {
        "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
        "profiles.yml": "lake: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
        "models/one.sql": "select 1 as id",
        "models/one.yml": BAD_TEST,
        "models/broken.sql": "select cast('1-2' as int) as id",
    }
    enter_project(tmp_path / "tested", monkeypatch, files)
    return tmp_path / "tested"


@pytest.mark.parametrize("command", ["build", "test"])
def test_a_test_that_was_repaired_is_run_as_it_is_now(tested: Path, capsys: Shown, command: str) -> None:
    (tested / "models/broken.sql").unlink()
    assert main([command]) == 1
    (tested / "models/one.yml").write_text(BAD_TEST.replace("[2]", "[1]"))
    assert main(["retry"]) == 0
    assert set(outcome().values()) == {"pass"}, "the test that failed has another id now"
    assert "failed in the last call and is no longer there" in capsys.readouterr().out


def test_what_is_built_again_is_tested_by_what_tests_it_now(tested: Path) -> None:
    assert main(["build", "-s", "broken"]) == 1
    (tested / "models/broken.sql").write_text("select 3 as id")
    (tested / "models/broken.yml").write_text("models: [{name: broken, columns: [{name: id, data_tests: [unique]}]}]")
    assert main(["retry"]) == 0
    rows = json.loads(RESULTS.read_text())["results"]
    assert [(row["unique_id"].split(".")[0], row["status"]) for row in rows] == [("model", "success"), ("test", "pass")]
