"""A project that was checked is not checked again until something that a check looks at is other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sqlmesh_like.app.loading import check_cache
from sqlmesh_like.cli.app import main
from sqlmesh_like.plan.checks import check as model_check

Text = Callable[[str, str], object]
SOURCE = "sources: [{name: shop, tables: [{name: t, columns: [{name: id, data_type: int}%s]}]}]\n"


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Text:
    def written(path: str, text: str) -> object:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        return (tmp_path / path).write_text(text)

    written("pyproject.toml", '[tool.sqlmesh_like]\nname = "p"\n')
    written("profiles.yml", "lake: {target: a, outputs: {a: {type: spark, schema: dws, warehouse: w}}}\n")
    written("models/m.sql", "select id from {{ source('shop', 't') }}")
    written("models/n.sql", "select id, {{ var('n', 1) }} as n from {{ ref('m') }}")
    written("models/s.yml", SOURCE % "")
    monkeypatch.chdir(tmp_path)
    return written


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many models each check that really took place had."""
    counts: list[int] = []
    check = model_check.check_models

    def counted(models: list[object], *rest: object, **named: object) -> object:
        counts.append(len(models))
        return check(models, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(model_check, "check_models", counted)
    return counts


def test_nothing_new_is_checked_once(put: Text, checks: list[int]) -> None:
    assert [main(["compile", "-q"]) for _ in range(3)] == [0, 0, 0]
    assert main(["compile", "-q"]) == 0
    assert checks == [2]


def test_a_change_of_anything_looked_at_is_checked(
    put: Text, checks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["compile", "-q"]) == 0
    assert main(["compile", "-q", "--vars", "{n: 2}"]) == 0
    put("models/s.yml", SOURCE % ", {name: v, data_type: int}")
    assert main(["compile", "-q"]) == 0
    put("models/m.sql", "select id, id + 1 as v from {{ source('shop', 't') }}")
    assert main(["compile", "-q"]) == 0
    assert main(["compile", "-q", "-s", "m"]) == 0
    monkeypatch.setattr(check_cache, "program_version", lambda: "another version")
    assert main(["compile", "-q"]) == 0
    assert checks == [2, 2, 2, 2, 1, 2]


def test_columns_that_no_text_of_a_model_shows_are_looked_at(put: Text, checks: list[int]) -> None:
    put("seeds/kinds.csv", "id,kind\n1,a\n")
    put("models/k.sql", "select kind from {{ ref('kinds') }}")
    assert [main(["compile", "-q"]) for _ in range(2)] == [0, 0]
    put("seeds/kinds.csv", "id,sort\n1,a\n")
    assert main(["compile", "-q"]) == 2, "the column is gone from the file, the model is as it was"
    assert checks == [3, 3]


def test_an_error_is_never_remembered(put: Text, checks: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    put("models/m.sql", "select idd from {{ source('shop', 't') }}")
    assert [main(["compile"]) for _ in range(2)] == [2, 2]
    assert checks == [2, 2] and capsys.readouterr().err.count("models/m.sql:1:8") == 2


@pytest.mark.parametrize("text", ["", "{", "7", '[1, {"a": 2}]'])
def test_a_file_that_is_none_of_ours_costs_time_only(put: Text, checks: list[int], text: str) -> None:
    put("target/checked.json", text)
    assert main(["compile", "-q"]) == 0
    assert checks == [2]


def test_a_malformed_entry_is_replaced(put: Text, checks: list[int]) -> None:
    assert main(["compile", "-q"]) == 0
    cached = Path("target/checked.json")
    cached.write_text(json.dumps({**{key: [1] for key in json.loads(cached.read_text())}, "another check": []}))
    assert [main(["compile", "-q"]) for _ in range(2)] == [0, 0]
    assert checks == [2, 2]
    assert [*json.loads(cached.read_text()).values()] == [[], []]
