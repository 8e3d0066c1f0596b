"""`state:`, `result:`, selectors.yml and the tests that come along, through the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.projects import enter_project

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {target: a, outputs: {a: {type: spark, schema: dws, warehouse: lake}, "
    "b: {type: spark, schema: other, warehouse: elsewhere}}}\n",
    "macros/m.sql": "{% macro one() %}1{% endmacro %}\n{% macro two() %}{{ one() }} + 1{% endmacro %}\n"
    "{% macro idle() %}9{% endmacro %}",
    "models/s.yml": """
sources: [{name: shop, schema: ods, tables: [{name: user}]}]
models:
  - name: users
    description: all
    columns: [{name: id, data_type: bigint, tests: [not_null]}]
  - {name: top, config: {contract: {enforced: true}}, columns: [{name: n, data_type: bigint}]}
""",
    "models/users.sql": "select id from {{ source('shop', 'user') }}",
    "models/agg.sql": "select count(*) as n, {{ two() }} as m from {{ ref('users') }}",
    "models/top.sql": "select n from {{ ref('agg') }} join {{ ref('rates') }}",
    "seeds/rates.csv": "rate\n1\n",
    "tests/agree.sql": "select 1 from {{ ref('users') }} join {{ ref('agg') }}",
}
Shown = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> Path:
    enter_project(tmp_path, monkeypatch, FILES)
    assert main(["compile", "--no-check", "-q"]) == 0
    shutil.copytree(tmp_path / "target", tmp_path / "prod")
    capsys.readouterr()
    return tmp_path


def names(capsys: Shown, *words: str) -> str:
    assert main(["ls", "--output", "name", *words]) == 0
    return " ".join(capsys.readouterr().out.split())


def refused(capsys: Shown, *words: str) -> str:
    assert main([*words]) == 2
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    assert shown.out == ""
    return shown.err


def unfound(capsys: Shown, *words: str) -> str:
    """A comparison that finds nothing is an answer: a check of a change that touches no model passes."""
    assert main([*words]) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    return shown.err


def modified(capsys: Shown, word: str = "state:modified", *more: str) -> str:
    return names(capsys, "--state", "prod", "--indirect-selection", "empty", "-s", word, *more)


def edit(path: str, old: str, new: str) -> None:
    file = Path(path)
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def test_nothing_is_modified_in_the_same_project_even_for_another_target(capsys: Shown) -> None:
    assert (
        modified(capsys, "state:unmodified").split() == modified(capsys, "state:old").split() == names(capsys).split()
    )
    assert "state:modified matches nothing" in unfound(capsys, "ls", "--state", "prod", "-s", "state:modified")
    assert "matches nothing" in unfound(capsys, "ls", "--state", "prod", "-s", "state:modified", "-t", "b")


@pytest.mark.parametrize(
    ("path", "old", "new", "kind", "expected"),
    [
        ("models/users.sql", "select id", "select id + 1 as id", "body", "users"),
        ("models/users.sql", "select", "{{ config(refresh='full') }}select", "configs", "users"),
        ("models/users.sql", "select", "{{ config(alias='u') }}select", "relation", "users"),
        ("macros/m.sql", "1{% endmacro %}\n", "2{% endmacro %}\n", "macros", "agg"),
        ("models/s.yml", "name: n, data_type: bigint", "name: n, data_type: int", "contract", "top"),
        ("seeds/rates.csv", "1", "2", "body", "rates"),
        ("models/s.yml", "schema: ods", "schema: raw", "relation", "user"),
        ("models/s.yml", "tests: [not_null]", "tests: [{not_null: {severity: warn}}]", "configs", "not_null_users_id"),
        ("tests/agree.sql", "select 1", "select 2", "body", "agree"),
    ],
)
def test_a_change_is_found_with_its_kind(
    capsys: Shown, path: str, old: str, new: str, kind: str, expected: str
) -> None:
    edit(path, old, new)
    assert expected in modified(capsys).split()
    assert expected in modified(capsys, f"state:modified.{kind}").split()
    others = {"body", "configs", "relation", "macros", "contract"} - {kind}
    # What a config() says is part of the text, as dbt writes a generic test too.
    is_in_text = kind in ("configs", "relation") and (path.endswith(".sql") or "not_null" in expected)
    for other in others - ({"body"} if is_in_text else set()):
        assert "matches nothing" in unfound(capsys, "ls", "--state", "prod", "-s", f"state:modified.{other}")


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("models/s.yml", "description: all", "description: every user"),
        ("models/s.yml", "description: all", "tags: [daily]\n    meta: {owner: me}"),
        ("macros/m.sql", "9", "10"),
        ("models/s.yml", "name: id, data_type: bigint", "name: id, data_type: int"),
    ],
)
def test_descriptions_tags_and_macros_that_nobody_calls_are_no_change(
    capsys: Shown, path: str, old: str, new: str
) -> None:
    edit(path, old, new)
    assert "matches nothing" in unfound(capsys, "ls", "--state", "prod", "-s", "state:modified")


def test_a_new_model_is_new_and_modified_and_a_moved_one_modified(capsys: Shown, project: Path) -> None:
    (project / "models/fresh.sql").write_text("select 1 as a")
    (project / "models/deep").mkdir()
    (project / "models/top.sql").rename(project / "models/deep/top.sql")
    assert modified(capsys, "state:new") == "fresh"
    assert modified(capsys) == "fresh top"
    assert modified(capsys, "state:modified.body") == "fresh"
    assert "fresh" not in modified(capsys, "state:old")
    assert "matches nothing" in unfound(capsys, "ls", "--state", "prod", "-s", "state:modified.macros")


def test_operators_and_exclusion_work_on_states(capsys: Shown) -> None:
    edit("models/users.sql", "select id", "select id, 2 as b")
    models = ("--resource-type", "model")
    assert modified(capsys, "state:modified+", *models) == "users agg top"
    assert modified(capsys, "1+state:modified") == "user users"
    assert modified(capsys, "state:modified+,agg+", *models) == "agg top"
    assert modified(capsys, "users+", "--exclude", "state:modified", *models) == "agg top"


def test_a_manifest_of_dbt_is_understood(capsys: Shown) -> None:
    """It knows none of our settings, and spells a test's severity and call in its own way."""
    manifest = json.loads(Path("prod/manifest.json").read_text())
    for unique_id, node in manifest["nodes"].items():
        if node["resource_type"] == "model":
            for ours in ("hudi", "table_type", "refresh", "partition_by", "publish"):
                del node["config"][ours]
        if unique_id.startswith("test.") and "test_metadata" in node:
            node["raw_code"] = "{{ test_not_null(**_dbt_generic_test_kwargs) }}"
            node["config"]["severity"] = "ERROR"
    Path("prod/manifest.json").write_text(json.dumps(manifest))
    assert "matches nothing" in unfound(capsys, "ls", "--state", "prod", "-s", "state:modified")
    edit("models/users.sql", "select id", "select id, 2 as b")
    assert modified(capsys) == "users"


def test_a_large_seed_of_dbt_is_known_by_its_path_alone(capsys: Shown) -> None:
    manifest = json.loads(Path("prod/manifest.json").read_text())
    manifest["nodes"]["seed.shop.rates"]["checksum"] = {"name": "path", "checksum": "seeds/rates.csv"}
    Path("prod/manifest.json").write_text(json.dumps(manifest))
    edit("seeds/rates.csv", "1", "2")
    assert "rates" in modified(capsys, "state:unmodified").split()


def test_a_seed_is_hashed_as_dbt_does(capsys: Shown) -> None:
    """The value is that of dbt-core 1.11.16."""
    Path("seeds/rates.csv").write_text("a,b\n1,x\n")
    assert main(["parse", "-q"]) == 0
    seed = json.loads(Path("target/manifest.json").read_text())["nodes"]["seed.shop.rates"]
    assert seed["checksum"]["checksum"] == "b6e86d268edfa322912723fd03f73f797db71d4b065843564954405b76ac1a8b"


def test_results_choose_nodes(capsys: Shown, project: Path) -> None:
    rows = [("model.shop.users", "error"), ("model.shop.agg", "skipped"), ("test.shop.agree", "fail")]
    results = [{"unique_id": unique_id, "status": status} for unique_id, status in rows]
    (project / "prod/run_results.json").write_text(json.dumps({"metadata": {}, "results": results}))
    assert modified(capsys, "result:error") == "users"
    assert modified(capsys, "result:error+", "--resource-type", "model") == "users agg top"
    assert modified(capsys, "result:skipped", "result:fail") == "agg agree"
    assert "matches nothing" in unfound(capsys, "ls", "--state", "prod", "-s", "result:warn")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-s", "state:modified"], "state: needs something to compare with\n  give --state PATH"),
        (["-s", "result:error", "--state", "prod"], "result: needs run_results.json, which is not in prod"),
        (["-s", "state:modifed", "--state", "prod"], "did you mean 'modified'?"),
        (["-s", "state:modified.bdy", "--state", "prod"], "did you mean 'modified.body'?"),
        (["-s", "result:eror", "--state", "prod"], "did you mean 'error'?"),
        (["-s", "stat:modified"], "unknown method 'stat'\n  did you mean 'state'?"),
        (["-s", "state:modified", "--state", "nowhere"], "does not exist"),
        (["-s", "state:modified", "--state", "models"], "holds neither manifest.json nor run_results.json"),
        (["--indirect-selection", "egaer"], "'egaer' is not one of"),
    ],
)
def test_a_wrong_state_exits_2(capsys: Shown, words: list[str], message: str) -> None:
    assert message in refused(capsys, "ls", *words)


@pytest.mark.parametrize("text", ["{", "[]", '{"nodes": {}}'])
def test_a_broken_artifact_exits_2(capsys: Shown, text: str) -> None:
    Path("prod/manifest.json").write_text(text)
    assert "manifest.json" in refused(capsys, "ls", "--state", "prod", "-s", "state:modified")


@pytest.mark.parametrize(
    ("mode", "words", "expected"),
    [
        ("eager", ["agg"], "agg agree"),
        ("cautious", ["agg"], "agg"),
        ("cautious", ["agg", "users"], "users agg not_null_users_id agree"),
        ("cautious", ["agg", "test_type:singular"], "agg agree"),
        ("buildable", ["agg"], "agg agree"),
        ("buildable", ["users"], "users not_null_users_id"),
        ("empty", ["agg", "users"], "users agg"),
    ],
)
def test_tests_come_along_as_asked_for(capsys: Shown, mode: str, words: list[str], expected: str) -> None:
    listed = names(capsys, "--indirect-selection", mode, "-s", *words)
    assert sorted(listed.split()) == sorted(expected.split())


@pytest.mark.parametrize(
    "words",
    [
        ("-s", "state:modified"),
        ("-s", "state:modified+,users"),
        ("--selector", "changed"),
        ("--exclude", "state:unmodified"),
    ],
)
def test_a_run_of_what_changed_has_nothing_to_do_where_nothing_did(capsys: Shown, words: tuple[str, ...]) -> None:
    Path("selectors.yml").write_text("selectors: [{name: changed, definition: {method: state, value: modified}}]")
    for command in ("run", "build", "test", "compile", "explain"):
        assert main([command, "--state", "prod", *words]) == 0
        assert "there is nothing to do" in capsys.readouterr().err


def test_only_a_comparison_may_find_nothing(capsys: Shown) -> None:
    assert "matches nothing" in refused(capsys, "ls", "--state", "prod", "-s", "state:modified,tag:dialy")
    assert "matches nothing" in refused(capsys, "ls", "--state", "prod", "-s", "state:modified", "nowhere")


def test_a_change_of_another_kind_leaves_a_command_nothing_to_do(capsys: Shown) -> None:
    edit("seeds/rates.csv", "1", "2")
    assert main(["run", "--state", "prod", "-s", "state:modified"]) == 0
    assert "TOTAL=0" in capsys.readouterr().out
