"""Variables whose value is a template: rendered where `var()` is called, with what is known there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]
SETTINGS = """
name: shop
vars:
  depth: "{{ 9 if target.type == 'duckdb' else 4 }}"
  charge: "{{ ref('stg_charge') }}"
  twice: "{{ var('depth') }}{{ var('depth') }}"
  listed: ["{{ 1 }}"]
  itself: "{{ var('itself') }}"
  there: "{{ var('back') }}"
  back: "{{ var('there') }}"
  wrong: "{{ 1 + }}"
  unknown: "{{ nothing_of_that_name() }}"
"""
FILES = {
    "profiles.yml": "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
    "dbt_project.yml": SETTINGS,
    "models/stg_charge.sql": "select 1 as id",
}


def compiled(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown, **files: str) -> str:
    enter_project(tmp_path, monkeypatch, {**FILES, "models/m.sql": model, **files})
    assert main(["compile"]) == 0, capsys.readouterr()
    return (tmp_path / "target/compiled/shop/models/m.sql").read_text().strip()


def test_a_value_is_rendered_for_the_target_and_its_reference_is_an_edge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    model = "select {{ var('depth') | int + 1 }} as n, {{ var('twice') }} as t from {{ var('charge') }}"
    assert compiled(model, tmp_path, monkeypatch, capsys) == "select 10 as n, 99 as t from `dws`.`stg_charge`"
    manifest = json.loads((tmp_path / "target/manifest.json").read_text())
    assert manifest["nodes"]["model.shop.m"]["depends_on"]["nodes"] == ["model.shop.stg_charge"]


def test_a_plain_template_and_a_macro_see_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    macro = {"macros/deep.sql": "{% macro deep() %}{{ var('depth') }}{% endmacro %}"}
    sql = compiled("select {{ var('depth') }} as n, {{ deep() }} as d", tmp_path, monkeypatch, capsys, **macro)
    assert sql == "select 9 as n, 9 as d"


def test_yaml_sees_the_value_and_texts_in_lists_are_left_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    properties = {"models/m.yml": "models: [{name: m, description: \"{{ var('depth') }} deep\"}]\n"}
    sql = compiled("select '{{ var('listed')[0] }}' as x", tmp_path, monkeypatch, capsys, **properties)
    assert sql == "select '{{ 1 }}' as x"
    manifest = json.loads((tmp_path / "target/manifest.json").read_text())
    assert manifest["nodes"]["model.shop.m"]["description"] == "9 deep"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("itself", "var 'itself' asks for itself"),
        ("there", "var 'there' asks for itself"),
        ("wrong", "invalid Jinja: unexpected 'end of print statement'"),
        ("unknown", "var 'unknown': 'nothing_of_that_name' is not defined"),
    ],
)
def test_an_error_in_a_value_stands_where_it_is_asked_for(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    enter_project(tmp_path, monkeypatch, {**FILES, "models/m.sql": f"select 1 as a,\n  {{{{ var('{name}') }}}} as b"})
    assert main(["compile"]) == 2
    shown = capsys.readouterr().err
    assert message in shown and "models/m.sql:2:6" in shown and "Traceback" not in shown
