"""Hooks and operations where no Spark is: what is refused, and what is said to be left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.cli.app import main

Shown = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)
    outputs = "{s: {type: spark, warehouse: w}, d: {type: duckdb}}"
    Path("profiles.yml").write_text(f"lake: {{target: s, outputs: {outputs}}}\n")
    Path("dbt_project.yml").write_text("name: shop\non-run-start: analyze table x compute statistics\n")
    for folder in ("models", "macros"):
        Path(folder).mkdir()
    Path("models/m.sql").write_text("{{ config(post_hook='drop table y') }} select 1 as a")
    Path("macros/m.sql").write_text("{% macro greet(name) %}{{ return('hello ' ~ name) }}{% endmacro %}")


def test_an_operation_needs_no_spark_where_it_asks_nothing(capsys: Shown) -> None:
    assert main(["run-operation", "greet", "--args", "{name: you}", "-q"]) == 0
    assert capsys.readouterr().out == "hello you\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("great",), "there is no macro 'great'\n  did you mean 'greet'?"),
        (("greet", "--args", "[1]"), "must be a mapping"),
        (("greet", "-t", "d"), "has no lake that an operation could change"),
        (("greet", "--args", "{nome: x}"), "nome"),
    ],
)
def test_a_wrong_operation_is_refused(capsys: Shown, words: tuple[str, ...], message: str) -> None:
    assert main(["run-operation", *words]) == 2
    shown = capsys.readouterr()
    assert message in shown.err and "Traceback" not in shown.err


def test_on_duckdb_hooks_are_left_out_with_a_warning(capsys: Shown) -> None:
    assert main(["run", "-t", "d"]) == 0
    shown = capsys.readouterr().out
    assert "on-run-start and on-run-end are statements for Spark: they are not run on DuckDB" in shown


def test_tests_with_hooks_keep_others_out_too(capsys: Shown) -> None:
    Path("tests").mkdir()
    Path("tests/none.sql").write_text("select * from {{ ref('m') }} where a > 1")
    holder = load(Invocation(project_dir=Path()))
    with lake_lock(holder, "maintain", {"~runs": "read", "s.t": "replace"}):
        assert main(["test"]) == 1
    assert "another `sml maintain` is writing" in capsys.readouterr().err
