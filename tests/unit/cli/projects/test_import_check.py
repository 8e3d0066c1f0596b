"""`sml import-check`: the page that tells a newcomer what becomes of a dbt project."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]
FILES = {
    "profiles.yml": "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
    "dbt_project.yml": "name: shop\nmodels: {+materialized: table}\n",
    "seeds/facts.csv": "id,kind,amount\n1,a,2\n2,b,3\n",
    "models/stg.sql": "{{ config(materialized='view') }}select id, kind, amount from {{ ref('facts') }}",
    "models/by_kind.sql": "select kind, sum(amount) as total, count(*) as n from {{ ref('stg') }} group by kind",
    "models/big.sql": "select id, amount from {{ ref('stg') }} where amount > 1",
    "models/lucky.sql": "select id, rand() as r from {{ ref('stg') }}",
    "models/reader.sql": "select id from {{ ref('lucky') }}",
    "models/asks.sql": "select {{ run_query('select 1') and 1 or 1 }} as x from {{ ref('stg') }}",
    "models/m.yml": "models: [{name: big, colour: blue}, {name: stg, colour: red}]\n"
    "functions: [{name: f, config: {type: aggregate}}]\n",
    "functions/f.py": "def main(a): return a",
}


def test_it_says_what_is_followed_rebuilt_and_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    enter_project(tmp_path, monkeypatch, FILES)
    assert main(["import-check"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("shop: 6 models, 1 seed\n")
    assert "  followed incrementally              2   (1 row_based, 1 aggregate_merge)\n" in page
    assert "  views, inlined where they are read  1\n" in page and "  broken                              0\n" in page
    assert "Rebuilt by each run that finds a change, and why\n  lucky: " in page and "(read by 1)" in page
    assert "the template asks the lake\n  asks\n" in page
    assert (
        "models/m.yml:1:22: unknown key 'colour' in a model is ignored (did you mean 'columns'?) (and 1 more)\n" in page
    )
    assert "function 'f' is an aggregate" in page and "What to change first\n  1. lucky: " in page
    assert not (tmp_path / "target/manifest.json").exists()


def test_incremental_sql_of_an_author_is_not_counted_as_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    """It loses late rows and deletes; without a strategy of its own the plan is derived, which loses nothing."""
    written = (
        "{{ config(materialized='incremental', unique_key='id', incremental_strategy='merge') }}"
        "select id, amount from {{ ref('facts') }}"
        "{% if is_incremental() %} where id > (select max(id) from {{ this }}){% endif %}"
    )
    files = {
        "models/own.sql": written,
        "models/derived.sql": written.replace(", incremental_strategy='merge'", ""),
        **{name: text for name, text in FILES.items() if not name.startswith("models/")},
    }
    enter_project(tmp_path, monkeypatch, files)
    assert main(["import-check"]) == 0
    page = capsys.readouterr().out
    assert "  followed incrementally              1   (1 row_based)\n" in page
    assert "  run as their incremental SQL says   1\n" in page
    assert "and why that may lose rows\n  own: CFG005 " in page
    assert "What to change first\n  1. own: remove is_incremental(): the plan is derived and loses nothing\n" in page
    assert main(["import-check", "--output", "json"]) == 0
    models = json.loads(capsys.readouterr().out)["models"]
    assert {model["name"]: model["kind"] for model in models} == {"own": "merge", "derived": "row_based"}


def test_what_is_broken_is_counted_and_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    enter_project(tmp_path, monkeypatch, {**FILES, "models/stg.sql": "select idd from {{ ref('facts') }}"})
    assert main(["import-check"]) == 1
    page = capsys.readouterr().out
    assert "Broken\n  models/stg.sql:1:8: unknown column 'idd'\n    did you mean 'id'?\n" in page
    assert "What to change first\n  1. fix models/stg.sql (read by 5)\n" in page
    assert main(["import-check", "-s", "stg", "--output", "json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert [(model["name"], model["kind"]) for model in data["models"]] == [("stg", "broken")]
    assert data["nodes"] == {"model": 1} and any("colour" in warning for warning in data["warnings"])
