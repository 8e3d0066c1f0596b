"""Exposures, groups with access, and analyses: declared, resolved, selected and written to the manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.dbt_artifacts import read_manifest

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {target: a, outputs: {a: {type: spark, schema: dws, warehouse: w}}}\n",
    "models/base.sql": "select 1 as id",
    "models/sales.sql": "select id from {{ ref('base') }}",
    "models/marts/s.yml": """
groups:
  - name: finance
    description: Money
    owner: {name: Fay, email: fay@example.com, slack: "#money"}
models:
  - name: base
    access: private
    group: finance
    columns: [{name: id, data_tests: [not_null]}]
  - {name: sales, config: {group: finance, access: public}}
exposures:
  - name: board
    label: The board
    type: dashboard
    maturity: high
    url: https://example.com/board
    description: What the board looks at.
    owner: {name: Bo}
    tags: [weekly]
    depends_on: [ref('sales'), "source('ext', 't')"]
  - {name: gone, type: ml, owner: {email: a@b.c}, enabled: false}
sources: [{name: ext, tables: [{name: t}]}]
analyses: [{name: check, description: A look}]
""",
    "analyses/check.sql": "select count(*) as n from {{ ref('sales') }}",
}


def make(root: Path, changed: Mapping[str, str] | None = None) -> None:
    for path, text in {**FILES, **(changed or {})}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


@pytest.fixture(autouse=True)
def _in_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["ls", *words]) == 0
    return sorted(capsys.readouterr().out.split())


def test_they_are_nodes_that_selectors_find(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path)
    assert listed(capsys, "-s", "exposure:board") == ["exposure:shop.board"]
    ancestors = listed(capsys, "-s", "+exposure:*", "--resource-type", "model")
    assert ancestors == ["shop.base", "shop.sales"]
    assert listed(capsys, "-s", "group:finance", "--resource-type", "model") == ["shop.base", "shop.sales"]
    assert listed(capsys, "-s", "access:public") == ["shop.sales"]
    assert listed(capsys, "--resource-type", "analysis") == ["shop.analysis.check"]
    assert listed(capsys, "-s", "tag:weekly") == ["exposure:shop.board"]
    assert listed(capsys, "-s", "board") == ["exposure:shop.board"]  # as in dbt


def test_the_manifest_tells_them_as_dbt_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path)
    assert main(["compile", "--no-check"]) == 0
    assert (tmp_path / "target/compiled/shop/analyses/check.sql").read_text().endswith("from `dws`.`sales`")
    manifest = read_manifest(json.loads((tmp_path / "target/manifest.json").read_text()))
    board = manifest.exposures["exposure.shop.board"]
    assert board.depends_on is not None and board.depends_on.nodes == ["model.shop.sales", "source.shop.ext.t"]
    assert (board.type.value, board.owner.name, board.label) == ("dashboard", "Bo", "The board")
    assert list(manifest.exposures) == ["exposure.shop.board"]
    assert manifest.groups["group.shop.finance"].owner.name == "Fay"
    assert manifest.group_map == {"finance": ["model.shop.base", "model.shop.sales"]}
    assert manifest.nodes["model.shop.base"].access.value == "private"
    assert manifest.nodes["analysis.shop.check"].description == "A look"


def test_what_changed_of_an_exposure_is_a_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path)
    assert main(["parse"]) == 0
    (tmp_path / "target").rename(tmp_path / "before")
    make(tmp_path, {"models/marts/s.yml": FILES["models/marts/s.yml"].replace("The board", "A board")})
    capsys.readouterr()
    assert listed(capsys, "-s", "state:modified", "--state", "before") == ["exposure:shop.board"]


def yaml(old: str, new: str) -> dict[str, str]:
    assert old in FILES["models/marts/s.yml"]
    return {"models/marts/s.yml": FILES["models/marts/s.yml"].replace(old, new)}


WRONG = {
    "private to another group": (
        {"models/other.sql": "select 1 as a,\n 2 as b from {{ ref('base') }}"},
        "models/other.sql:2:17: 'other' reads 'base', which is private to the group 'finance'",
    ),
    "private to an exposure": (yaml("[ref('sales'),", "[ref('base'),"), "'board' reads 'base', which is private"),
    "no such group": (yaml("group: finance\n", "group: finanze\n"), "did you mean 'finance'?"),
    "no such access": (yaml("access: public", "access: pubic"), "did you mean 'public'?"),
    "no owner": (yaml("    owner: {name: Bo}\n", ""), "models/marts/s.yml:13:5: an exposure needs 'owner'"),
    "nobody": (yaml("{name: Bo}", "{tel: 1}"), "models/marts/s.yml:19:5: the owner of an exposure needs a name or"),
    "type": (yaml("type: dashboard", "type: dashbord"), "did you mean 'dashboard'?"),
    "key": (yaml("maturity: high", "maturty: high"), "did you mean 'maturity'?"),
    "depends on nothing known": (yaml("ref('sales'),", "ref('sale'),"), "models/marts/s.yml:21:18: no model or seed"),
    "depends on a text": (yaml("ref('sales'),", "sales,"), "models/marts/s.yml:21:18: exposure 'board' depends on"),
    "twice": (
        yaml(
            "{name: gone, type: ml, owner: {email: a@b.c}, enabled: false}",
            "{name: board, type: ml, owner: {email: a@b.c}}",
        ),
        "exposure 'board' is described twice",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str) -> None:
    files, message = WRONG[case]
    make(tmp_path, files)
    assert main(["parse"]) == 2
    assert message in capsys.readouterr().err


def test_a_generic_test_reads_the_private_model_that_it_tests(tmp_path: Path) -> None:
    make(tmp_path)
    assert main(["parse"]) == 0
    make(tmp_path, {"tests/t.sql": "select * from {{ ref('base') }}"})
    assert main(["parse"]) == 2
    make(tmp_path, {"tests/t.sql": "{{ config(group='finance') }} select * from {{ ref('base') }}"})
    assert main(["parse"]) == 0
