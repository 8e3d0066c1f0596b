"""`--defer`: what is not in this warehouse is read where the state has it. Timelines are made by hand: no JVM."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.lakes.lake import open_lake
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.cli.app import main
from sqlmesh_like.plan.catalog import Catalog
from sqlmesh_like.run.retention import AT_LEAST, SLACK, due
from tests.projects import enter_project
from tests.unit.hudi.test_timeline import Lake

SCHEMA = json.dumps({"type": "record", "name": "t", "fields": [{"name": "id", "type": ["null", "int"]}]})
EXTRA = {"schema": SCHEMA, "sml.batch": "1"}
FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {target: prod, outputs: {prod: {type: spark, schema: dws, warehouse: prod}, "
    "dev: {type: spark, schema: mine, warehouse: dev}, same: {type: spark, schema: mine, warehouse: prod}}}\n",
    "models/s.yml": "sources: [{name: shop, schema: ods, tables: [{name: user}]}]\n",
    "models/users.sql": "select id from {{ source('shop', 'user') }}",
    "models/seen.sql": "{{ config(materialized='view') }}select id from {{ ref('users') }}",
    "models/agg.sql": "select count(*) as n from {{ ref('seen') }}",
}
USER, USERS, AGG = "source.shop.shop.user", "model.shop.users", "model.shop.agg"
Shown = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> Lake:
    """Production has the source and `users`; its manifest lies in `state`."""
    enter_project(tmp_path, monkeypatch, FILES)
    assert main(["compile", "-q"]) == 0
    shutil.copytree("target", "state")
    Lake(tmp_path / "prod/ods/user").commit(1, ["a"], extra=EXTRA)
    users = Lake(tmp_path / "prod/dws/users")
    users.commit(2, ["b"], extra=EXTRA)
    capsys.readouterr()
    return users


@pytest.fixture
def production(tmp_path: Path) -> Path:
    return tmp_path


def catalog(*writes: str, target: str = "dev") -> Catalog:
    flags = Invocation(target=target, state=Path("state"), defer=True)
    return open_lake(load(flags), writes).catalog


def test_tables_are_read_from_the_state_for_that_and_compared_with_the_other(production: Path) -> None:
    shutil.copytree("state", "compared")
    manifest = json.loads(Path("compared/manifest.json").read_text())
    del manifest["nodes"][AGG]
    Path("compared/manifest.json").write_text(json.dumps(manifest))
    flags = Invocation(
        target="dev", select=("state:new",), state=Path("compared"), defer=True, defer_state=Path("state")
    )
    loaded = load(flags)
    assert [node.unique_id for node in loaded.select_nodes()] == [AGG]
    shutil.rmtree("compared")  # not needed for tables
    assert open_lake(load(replace(flags, select=(), state=None)), (AGG,)).catalog.places[USERS].uri == str(
        production / "prod/dws/users"
    )


def test_a_missing_parent_is_read_where_the_state_has_it(production: Path) -> None:
    seen = catalog(AGG)
    assert seen.places[USERS].uri == str(production / "prod/dws/users")
    assert str(seen.places[USERS].table) == "mine.users"
    assert seen.places[AGG].uri == str(production / "dev/mine/agg")
    assert seen.borrowed == {USER, USERS}


def test_what_the_run_writes_or_has_is_its_own(production: Path) -> None:
    assert catalog(USERS, AGG).borrowed == {USER}
    Lake(production / "dev/mine/users").commit(1, ["c"], extra=EXTRA)
    assert catalog(AGG).places[USERS].uri == str(production / "dev/mine/users")


def test_a_schema_of_ones_own_in_the_same_warehouse_works_too(production: Path) -> None:
    seen = catalog(AGG, target="same")
    assert seen.places[USERS].uri == str(production / "prod/dws/users")
    assert seen.borrowed == {USERS}


def test_a_manifest_of_dbt_means_the_same_warehouse(production: Path) -> None:
    manifest = json.loads(Path("state/manifest.json").read_text())
    for node in [*manifest["nodes"].values(), *manifest["sources"].values()]:
        node["meta"] = {}
    Path("state/manifest.json").write_text(json.dumps(manifest))
    assert catalog(AGG, target="same").places[USERS].uri == str(production / "prod/dws/users")


def test_explain_follows_what_is_borrowed(capsys: Shown) -> None:
    words = ["explain", "agg", "-t", "dev", "--output", "json"]
    for flag in ("--state", "--defer-state"):
        assert main([*words, flag, "state", "--defer"]) == 0
        (model,) = json.loads(capsys.readouterr().out)["models"]
        assert model["inputs"][0]["to"] is not None
    assert main(words) == 0
    (model,) = json.loads(capsys.readouterr().out)["models"]
    assert model["inputs"][0]["to"] is None


def test_history_that_is_borrowed_is_never_cleaned(users: Lake) -> None:
    for instant in range(3, 3 + 2 * (AT_LEAST + SLACK), 2):
        users.commit(instant, ["b"], extra=EXTRA)
    assert [cleaning.uri for cleaning in due(catalog(USERS, target="prod"), [USERS], since="")] == [str(users.root)]
    assert due(catalog(AGG), [USERS], since="") == ()


def test_the_run_says_what_it_borrows(capsys: Shown, production: Path) -> None:
    shutil.rmtree(production / "prod/ods")
    assert main(["run", "-s", "users", "-t", "dev", "--state", "state", "--defer"]) == 1
    shown = capsys.readouterr().out
    assert "read from state: ods.user" in shown
    assert f"the table ods.user does not exist yet ({production}/prod/ods/user)" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--defer"], "--defer needs --state PATH"), (["--defer", "--state", "models"], "holds neither manifest.json")],
)
def test_deferring_to_nothing_exits_2(capsys: Shown, words: list[str], message: str) -> None:
    assert main(["run", "-s", "agg", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_secret_in_a_warehouse_reaches_no_manifest(production: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBT_ENV_SECRET_PLACE", "hunter2")
    profiles = production / "profiles.yml"
    profiles.write_text(
        profiles.read_text().replace("warehouse: dev", "warehouse: \"{{ env_var('DBT_ENV_SECRET_PLACE') }}\"")
    )
    assert main(["compile", "-q", "-t", "dev"]) == 0
    assert "hunter2" not in Path("target/manifest.json").read_text()
