"""Environment variables of dbt, as Dagster and Airflow's Cosmos set them: they stand for flags, and flags win."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]
FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
    "models/a.sql": "select 1 as id",
    "models/schema.yml": "sources: [{name: raw, tables: [{name: b}]}]\n",
}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter_project(tmp_path, monkeypatch, FILES)
    return tmp_path


def test_artifacts_and_the_form_of_logs_follow_the_environment(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    monkeypatch.setenv("DBT_TARGET_PATH", str(project / "elsewhere"))
    monkeypatch.setenv("DBT_LOG_FORMAT", "json")
    assert main(["run"]) == 0
    assert all(json.loads(line)["info"] for line in capsys.readouterr().out.splitlines())
    assert (project / "elsewhere/run_results.json").is_file() and not (project / "target").exists()
    assert main(["run", "-s", "nix:x"]) == 2
    assert json.loads(capsys.readouterr().err.splitlines()[-1])["info"]["level"] == "error"


def test_a_project_is_looked_for_where_the_environment_says(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    monkeypatch.chdir("/")
    monkeypatch.setenv("DBT_PROJECT_DIR", str(project))
    assert main(["ls", "--resource-type", "model"]) == 0
    assert capsys.readouterr().out == "shop.a\n"


@pytest.mark.parametrize("words", [["ls", "-t", "t"], ["-t", "t", "ls"]])
def test_a_flag_of_the_call_wins(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBT_TARGET", "unknown")
    assert main(["ls"]) == 2
    assert main(words) == 0


def test_the_newer_name_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBT_TARGET", "unknown")
    monkeypatch.setenv("DBT_ENGINE_TARGET", "t")
    assert main(["ls"]) == 0


@pytest.mark.parametrize(
    ("variables", "words", "is_asked"),
    [
        ({"DBT_PARTIAL_PARSE": "false"}, [], False),
        ({"DBT_PARTIAL_PARSE": "false"}, ["--partial-parse"], True),
        ({"DBT_PARTIAL_PARSE": "true"}, ["--no-partial-parse"], False),
        ({"DBT_PARTIAL_PARSE": "false", "DBT_ENGINE_PARTIAL_PARSE": "true"}, [], True),
        ({"DBT_PARTIAL_PARSE": "true", "DBT_ENGINE_PARTIAL_PARSE": "false"}, [], False),
    ],
)
def test_the_cache_is_asked_as_the_flag_and_else_the_newer_name_says(
    variables: dict[str, str], words: list[str], is_asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []
    monkeypatch.setattr("sqlmesh_like.app.loading.project_cache._load_entry", asked.append)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert main(["parse", "-q", *words]) == 0
    assert bool(asked) == is_asked


def test_types_of_nodes_come_from_the_environment_too(monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    monkeypatch.setenv("DBT_RESOURCE_TYPES", "source seed")
    assert main(["ls"]) == 0
    assert capsys.readouterr().out == "source:shop.raw.b\n"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("DBT_EMPTY", "1", "DBT_EMPTY is dbt's alone: "),
        ("DBT_ENGINE_SAMPLE", "1", "DBT_ENGINE_SAMPLE is dbt's alone: "),
        ("DBT_INDIRECT_SELECTION", "silly", "Invalid value for 'DBT_INDIRECT_SELECTION': "),
    ],
)
def test_a_wrong_variable_is_named(
    name: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    monkeypatch.setenv(name, value)
    assert main(["ls"]) == 2
    assert message in capsys.readouterr().err


def test_a_variable_that_is_off_or_empty_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBT_EMPTY", "0")
    monkeypatch.setenv("DBT_TARGET", "")
    assert main(["ls"]) == 0


@pytest.mark.parametrize("form", ["default", "debug"])
def test_dbt_s_other_forms_of_text_are_text(form: str, capsys: Shown) -> None:
    assert main(["run", "--log-format", form]) == 0
    assert "Done. PASS=1" in capsys.readouterr().out.splitlines()[-1]


def test_a_key_that_a_node_does_not_have_is_left_out(capsys: Shown) -> None:
    assert main(["ls", "-s", "source:raw", "--output", "json", "--output-keys", "name depends_on nothing"]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "b"}
