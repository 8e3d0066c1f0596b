"""`sml diff`: what changed, what it rebuilds, what it touches downstream."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from sqlmesh_like.cli.app import main
from tests.projects import enter_project

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {target: a, outputs: {a: {type: spark, schema: dws, warehouse: lake}, "
    "b: {type: spark, schema: other, warehouse: elsewhere}}}\n",
    "macros/m.sql": "{% macro one() %}1{% endmacro %}",
    "models/s.yml": "sources: [{name: shop, schema: ods, tables: [{name: user}]}]\n",
    "models/users.sql": "select id, {{ one() }} as n from {{ source('shop', 'user') }}",
    "models/seen.sql": "{{ config(materialized='view') }}select id from {{ ref('users') }}",
    "models/agg.sql": "select count(*) as n from {{ ref('seen') }}",
    "models/top.sql": "select max(n) as n from {{ ref('agg') }}",
    "seeds/rates.csv": "rate\n1\n",
    "models/rated.sql": "select rate from {{ ref('rates') }}",
}
Shown = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    enter_project(tmp_path, monkeypatch, FILES)
    assert main(["compile", "--no-check", "-q"]) == 0
    shutil.copytree("target", "prod")
    capsys.readouterr()


def diff(capsys: Shown, *words: str) -> dict[str, Any]:
    assert main(["diff", "--state", "prod", "--output", "json", *words]) == 0
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    return data


def effects(capsys: Shown, *words: str) -> dict[str, str]:
    """Of changed models in capitals, of those downstream in small letters."""
    data = diff(capsys, *words)
    changed = {change["name"].upper(): change["effect"] for change in data["changes"]}
    return changed | {change["unique_id"].rpartition(".")[2]: change["effect"] for change in data["touched"]}


def edit(path: str, old: str, new: str) -> None:
    file = Path(path)
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def test_nothing_changed_whatever_the_target(capsys: Shown) -> None:
    assert diff(capsys) == diff(capsys, "-t", "b") == {"state": "prod", "changes": [], "touched": []}
    assert main(["diff", "--state", "prod"]) == 0
    assert capsys.readouterr().out == "nothing changed\n"


@pytest.mark.parametrize(
    ("path", "old", "new", "expected"),
    [
        ("models/agg.sql", "count(*)", "count(id)", {"AGG": "rebuild", "top": "follow"}),
        ("models/agg.sql", "select count(*)", "-- all\nSELECT COUNT(*)\n ", {"AGG": "follow", "top": "follow"}),
        ("models/seen.sql", "id from", "id + 1 as id from", {"SEEN": "none", "agg": "rebuild", "top": "follow"}),
        ("macros/m.sql", "1", "2", {"USERS": "rebuild", "agg": "follow", "top": "follow"}),
        ("models/top.sql", "select", "{{ config(refresh='full') }}select", {"TOP": "follow"}),
        ("models/top.sql", "select", "{{ config(partition_by='n') }}select", {"TOP": "rebuild"}),
        ("models/top.sql", "select", "{{ config(materialized='view') }}select", {"TOP": "none"}),
        ("models/seen.sql", "view", "table", {"SEEN": "first_build", "agg": "rebuild", "top": "follow"}),
        ("models/agg.sql", "select", "{{ config(alias='a') }}select", {"AGG": "first_build", "top": "rebuild"}),
        ("seeds/rates.csv", "1", "2", {"RATES": "reload", "rated": "follow"}),
        ("models/s.yml", ": ods", ": raw", {"USER": "none", "users": "rebuild", "agg": "follow", "top": "follow"}),
    ],
)
def test_a_change_tells_what_the_next_run_does(
    capsys: Shown, path: str, old: str, new: str, expected: dict[str, str]
) -> None:
    edit(path, old, new)
    # The view below is touched as well, and has no table.
    actual = {name: effect for name, effect in effects(capsys).items() if name != "seen"}
    assert actual == expected


def test_a_variable_that_changes_a_query_is_told(capsys: Shown) -> None:
    edit("models/top.sql", "max(n)", "max(n) + {{ var('more', 1) }}")
    assert main(["compile", "--no-check", "-q"]) == 0
    shutil.copy("target/manifest.json", "prod/manifest.json")
    capsys.readouterr()
    assert effects(capsys) == {}
    (change,) = diff(capsys, "--vars", "{more: 2}")["changes"]
    assert (change["effect"], change["differences"]) == ("rebuild", [])
    assert change["why"] == "a variable, the environment or the target changed its query"


@pytest.mark.parametrize("metadata", [{"adapter_type": "duckdb"}, {}])
def test_without_spark_sql_in_the_manifest_the_templates_are_compared(capsys: Shown, metadata: dict[str, str]) -> None:
    """As of another adapter of dbt, or of `dbt parse`, which compiles nothing."""
    manifest = json.loads(Path("prod/manifest.json").read_text())
    manifest["metadata"] |= metadata
    for node in manifest["nodes"].values():
        node["compiled_code"] = 'select "x" from "memory"."main"."y"' if metadata else None
    Path("prod/manifest.json").write_text(json.dumps(manifest))
    assert effects(capsys) == {}
    edit("macros/m.sql", "1", "2")
    edit("models/seen.sql", "id from", "id + 1 as id from")
    by_name = effects(capsys)
    assert (by_name["USERS"], by_name["SEEN"], by_name["agg"], by_name["top"]) == (
        "rebuild",
        "none",
        "rebuild",
        "follow",
    )


def test_new_and_removed_models_are_told(capsys: Shown) -> None:
    Path("models/top.sql").rename("models/bottom.sql")
    assert effects(capsys) == {"BOTTOM": "first_build", "TOP": "left"}


def test_the_text_is_taken_in_at_a_glance(capsys: Shown) -> None:
    edit("models/agg.sql", "count(*)", "count(id)")
    Path("models/rated.sql").unlink()
    assert main(["diff", "--state", "prod"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "~ model agg (body): rebuild – its query changed  models/agg.sql",
        "- model rated: left behind – its table stays in the lake until someone removes it  models/rated.sql",
        "",
        "downstream, itself unchanged:",
        "  top: no rebuild, reads agg",
        "",
        "2 changes, 1 model downstream, 1 to build whole",
    ]


def test_a_selection_narrows_the_changes(capsys: Shown) -> None:
    edit("models/agg.sql", "count(*)", "count(id)")
    edit("models/top.sql", "max", "min")
    assert effects(capsys, "-s", "agg") == {"AGG": "rebuild"}
    assert effects(capsys, "-s", "state:modified.body") == {"AGG": "rebuild", "TOP": "rebuild"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "diff needs --state PATH"),
        (["--state", "models"], "holds neither manifest.json nor run_results.json"),
        (["--state", "nowhere"], "does not exist"),
    ],
)
def test_without_a_state_there_is_nothing_to_compare(capsys: Shown, words: list[str], message: str) -> None:
    assert main(["diff", *words]) == 2
    assert message in capsys.readouterr().err
