"""Python models without a JVM: what is read of their text, and what is said where they cannot be run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]
PROFILE = "shop: {target: lake, outputs: {lake: {type: spark, warehouse: lake}, t: {type: duckdb}}}\n"
BY_MODEL = """import nowhere_to_be_found

raise SystemExit("the file was executed")

def model(dbt, session):
    dbt.config(materialized="table", tags=["night"], meta={"floor": 3}, rate=2)
    orders, raw = dbt.ref("orders"), dbt.source("shop", "raw")
    return orders.join(raw, "id").limit(dbt.config.get("rate", 1) + dbt.config.meta_get("floor"))
"""
SOURCES = "sources: [{name: shop, tables: [{name: raw}]}]\n"
FILES = {
    "profiles.yml": PROFILE,
    "dbt_project.yml": "name: shop\n",
    "seeds/orders.csv": "id,v\n1,10\n",
    "models/p.py": BY_MODEL,
    "models/r.sql": "{{ config(materialized='table') }}select id from {{ ref('p') }}",
    "models/other.sql": "{{ config(materialized='table') }}select id, v from {{ ref('orders') }}",
    "models/m.yml": SOURCES + "models: [{name: p, columns: [{name: id, data_type: int, data_tests: [unique]}]}]\n",
}


class Project:
    """A project with one Python model in a temporary folder, and what a call on it prints."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
        self.root, self._monkeypatch, self._capsys = root, monkeypatch, capsys

    def call(self, *words: str, files: dict[str, str] | None = None, code: int = 0) -> str:
        enter_project(self.root, self._monkeypatch, {**FILES, **(files or {})})
        ended = main([*words])
        shown = self._capsys.readouterr()
        assert ended == code, shown
        assert "Traceback" not in shown.err
        return shown.out + shown.err

    def refused(self, text: str) -> str:
        return self.call("compile", "--no-partial-parse", files={"models/p.py": text}, code=2)

    def manifest(self) -> dict[str, dict[str, dict[str, object]]]:
        artifact: dict[str, dict[str, dict[str, object]]] = json.loads((self.root / "target/manifest.json").read_text())
        return artifact


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> Project:
    return Project(tmp_path, monkeypatch, capsys)


def test_a_python_model_is_read_and_never_executed(project: Project) -> None:
    project.call("compile")
    node = project.manifest()["nodes"]["model.shop.p"]
    config = node["config"]
    assert isinstance(config, dict)
    assert (node["language"], node["original_file_path"], node["raw_code"]) == (
        "python", "models/p.py", BY_MODEL.strip(),
    )  # fmt: skip
    assert node["depends_on"] == {"macros": [], "nodes": ["seed.shop.orders", "source.shop.shop.raw"]}
    assert (node["refs"], node["sources"]) == (
        [{"name": "orders", "package": None, "version": None}], [["shop", "raw"]],
    )  # fmt: skip
    assert (config["materialized"], config["tags"], config["rate"]) == ("table", ["night"], 2)
    assert config["config_keys_used"] == ["rate"]
    listed = project.call("ls", "-s", "tag:night", "--resource-type", "model", "--output", "name").splitlines()
    assert listed[0] == "p" and "models/p.py:6:73: unknown config key 'rate' is ignored" in listed[1]


def test_explain_says_why_it_is_rebuilt_and_what_its_readers_miss(project: Project) -> None:
    shown = project.call("explain")
    assert "PYT001" in shown and "models/p.py:5:1" in shown
    assert "the columns of model.shop.p are not known before it is built  models/r.sql:1:50" in shown
    described = "models: [{name: p, config: {contract: {enforced: true}}, columns: [{name: id, data_type: int}]}]\n"
    files = {"models/m.yml": SOURCES + described}
    shown = project.call("explain", files=files)
    assert "the columns of model.shop.p" not in shown and "ROW001" in shown
    shown = project.call("compile", files={**files, "models/r.sql": "select ix from {{ ref('p') }}"}, code=2)
    assert "models/r.sql:1:8: unknown column 'ix'" in shown


def model(body: str) -> str:
    return f"def model(dbt, session):\n    {body}\n"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("def model(dbt, session:\n", "models/p.py:1:10: invalid Python: '(' was never closed"),
        ("x = 1\n", "models/p.py:1:1: there is no function model(dbt, session)"),
        ("def model(session):\n    return 1\n", "models/p.py:1:1: the function takes dbt and a session"),
        (model("df = 1"), "models/p.py:1:1: the function returns nothing"),
        (model("return 1, 2"), "models/p.py:2:5: the function returns more than one value"),
        (model("dbt.config(tags=f()); return 1"), "models/p.py:2:21: this argument of dbt.config() cannot be read"),
        (model("dbt.config(**x); return 1"), "models/p.py:2:16: this argument of dbt.config() cannot be read"),
        (model("return dbt.ref(name)"), "models/p.py:2:20: this argument of dbt.ref() cannot be read"),
        (model("return dbt.ref('order')"), "models/p.py:2:12: no model or seed is named 'order'"),
        (model("é = 'é'; return dbt.source('shop', 'row')"), "models/p.py:2:21: "),
        (model("return dbt.source('shop')"), "models/p.py:2:12: wrong arguments of dbt.source()"),
        (model("dbt.config(materialized='view'); return 1"), "models/p.py:2:16: a Python model is a table or"),
        (model("dbt.config(tags=3, refresh='no'); return 1"), "models/p.py:2:"),
    ],
)
def test_what_cannot_be_read_is_an_error_at_its_place(project: Project, text: str, error: str) -> None:
    assert error in project.refused(text)


def test_a_disabled_one_is_passed_over(project: Project) -> None:
    files = {"models/m.yml": SOURCES + "models: [{name: p, config: {enabled: false}}]\n", "models/p.py": "def ("}
    files["models/r.sql"] = "select 1 as id"
    assert "p.py" not in project.call("compile", files=files)
    by_call = model("dbt.config(enabled=False); return dbt.ref('nowhere')")
    project.call("compile", files={"models/p.py": by_call, "models/r.sql": "select 1 as id"})
    assert "model.shop.p" not in project.manifest()["nodes"]


def test_on_duckdb_it_alone_is_refused(project: Project) -> None:
    shown = project.call("build", "-t", "t", files={"fixtures/shop/raw.csv": "id\n1\n"}, code=1)
    assert "models/p.py: not checkable here: a Python model runs on Spark alone" in shown
    results = json.loads((project.root / "target/run_results.json").read_text())["results"]
    statuses = {result["unique_id"].split(".")[2]: result["status"] for result in results}
    assert statuses == {"orders": "success", "other": "success", "p": "error", "r": "skipped", "unique_p_id": "skipped"}
    shown = project.call("build", "-t", "t", files={"fixtures/ref/p.csv": "id\n7\n"})
    assert "PASS=4 WARN=1 ERROR=0 SKIP=0" in shown  # its readers are checked against these rows


def test_one_of_a_package_runs_by_consent_of_the_root(project: Project) -> None:
    kit = {
        "packages.yml": "packages: [{local: kit}]\n",
        "kit/dbt_project.yml": "name: kit\n",
        "kit/models/k.py": model("return session.range(3)"),
    }
    project.call("deps", "-t", "t", files=kit)
    shown = project.call("compile", code=2)
    assert "k.py:1:1: a Python model of the package 'kit', whose code is not run unless your project says so" in shown
    assert "flags: {python_model_packages: [kit]}" in shown
    project.call("compile", files={"dbt_project.yml": "name: shop\nflags: {python_model_packages: [kit]}\n"})
    assert "model.kit.k" in project.manifest()["nodes"]


def test_a_unit_test_of_one_is_refused(project: Project) -> None:
    unit = "unit_tests: [{name: u, model: p, given: [], expect: {rows: []}}]\n"
    assert "a Python model: as in dbt these have none" in project.call("compile", files={"models/u.yml": unit}, code=2)
