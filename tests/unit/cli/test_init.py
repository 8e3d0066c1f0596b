"""`sml init`: projects that build as they are, on DuckDB, with no question asked."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from sqlmesh_like.app.setup import database_project
from sqlmesh_like.app.setup.new_project import EXAMPLE_PROJECTS
from sqlmesh_like.cdc.sources.database.server import Table, TableColumn
from sqlmesh_like.cli.app import main

Shown = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)
    return tmp_path


def start(monkeypatch: pytest.MonkeyPatch, example: str) -> None:
    """Stand in a new project; what reads standard input would fail."""
    monkeypatch.setattr("sys.stdin", None)
    assert main(["init", "shop", "--example", example]) == 0
    monkeypatch.chdir("shop")


@pytest.mark.parametrize("example", EXAMPLE_PROJECTS)
def test_a_new_project_passes_its_checks_and_tests_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: Shown, example: str
) -> None:
    start(monkeypatch, example)
    assert main(["build", "-t", "test", "--warn-error"]) == 0
    assert "WARN=0 ERROR=0 SKIP=0" in capsys.readouterr().out
    assert main(["lint"]) == 0
    assert ": 0 findings" in capsys.readouterr().out


def test_cdc_is_a_source_two_models_and_a_unit_test(monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    start(monkeypatch, "cdc")
    capsys.readouterr()
    assert main(["ls", "--output", "json", "--output-keys", "resource_type,name"]) == 0
    nodes = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [node["name"] for node in nodes if node["resource_type"] == "model"] == [
        "order_detail",
        "revenue_by_country",
    ]
    assert [node["resource_type"] for node in nodes].count("unit_test") == 1
    assert main(["show", "revenue_by_country", "-t", "test", "--output", "csv"]) == 0
    assert capsys.readouterr().out.splitlines() == ["country,orders,revenue", "NZ,3,35.75", "PT,1,8.00"]


def test_before_the_first_ingestion_a_model_of_cdc_has_its_plan(monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    start(monkeypatch, "cdc")
    capsys.readouterr()
    assert main(["explain"]) == 0
    shown = capsys.readouterr().out
    assert "dwd.order_detail  row_based" in shown
    assert "dws.revenue_by_country  aggregate_merge" in shown, "a declared `decimal(10, 2)` is an exact type"


def test_what_a_build_writes_is_ignored_by_git(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    start(monkeypatch, "cdc")
    before = {path.name for path in (folder / "shop").iterdir()}
    assert main(["build", "-t", "test", "-q"]) == 0
    written = {path.name for path in (folder / "shop").iterdir()} - before
    ignored = set((folder / "shop/.gitignore").read_text().split())
    assert written and {f"{name}/" for name in written} <= ignored
    assert "landing/" not in ignored, "the events belong to the example"


def test_an_example_that_is_not_there_makes_nothing(folder: Path, capsys: Shown) -> None:
    assert main(["init", "shop", "--example", "cdd"]) == 2
    assert "'cdd' is not one of 'minimal', 'cdc'" in capsys.readouterr().err
    assert not list(folder.iterdir())


def test_a_project_for_a_database_declares_its_tables(
    monkeypatch: pytest.MonkeyPatch, capsys: Shown, folder: Path
) -> None:
    tables = (
        Table("sales", "order", ("id",), "Who {{ buys }}", (TableColumn("id", "INTEGER"), TableColumn("größe", "BIT"))),
        Table("old", "order", (), "", (TableColumn("select", "NUMERIC(10, 2)", 'a "b": c'),)),
    )
    monkeypatch.setattr(database_project, "connect", lambda _: nullcontext())
    monkeypatch.setattr(database_project, "tables_of", lambda *_, **__: tables)
    monkeypatch.setattr("sys.stdin", None)
    assert main(["init", "shop", "--from", "postgresql://me:secret99@db.example/Shop"]) == 0
    monkeypatch.chdir("shop")
    assert main(["parse", "--warn-error"]) == 0
    assert main(["ls", "--output", "name"]) == 0
    assert {"stg_old_order", "stg_sales_order"} <= set(capsys.readouterr().out.split())
    assert not any("secret99" in path.read_text() for path in folder.rglob("*") if path.is_file())
    assert main(["init", "other", "--from", "oracle://me@db.example/x"]) == 2
