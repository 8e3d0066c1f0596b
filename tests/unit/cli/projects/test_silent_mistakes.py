"""What a project has by mistake and would be built without a word: each is shown with its place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.projects import enter_project

Shown = pytest.CaptureFixture[str]
FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n\n[tool.sqlmesh_like.models.shop.dws]\n"+schema" = "dws"\n',
    "profiles.yml": "lake: {target: d, outputs: {d: {type: duckdb, schema: dws}}}\n",
    "models/dws/sales.sql": "select 1 as n, 'tea' as product\n",
}
CONTRACT = """models:
  - name: sales
    config: {contract: {enforced: true}}
    columns:
      - name: n
        data_type: string
      - {name: gone, data_type: int}
"""
INGESTED = """sources:
  - name: ods
    ingest: {format: debezium, files: {path: x}}
    tables: [{name: users, ingest: {primary_key: id}}]
"""
INGESTED_TOO = "models/users.sql:1:1: table ods.users is written by ingestion too: it is source('ods', 'users')"
COLUMNS = "{name: n}, {name: N}"
TEST = "models:\n  - name: sales\n    columns:\n      - {{name: product, data_tests: [{{accepted_values: {}}}]}}\n"
SOURCE = """sources:
  - name: ods
    tables:
      - name: users
      - name: Users
"""


@pytest.mark.parametrize(
    ("files", "shown"),
    [
        (
            {"models/SALES.sql": "select 1 as a"},
            "models/dws/sales.sql:1:1: table dws.sales and dws.SALES of models/SAL",
        ),
        ({"seeds/Sales.csv": "a\n1\n"}, "seeds/Sales.csv:1:1: table dws.Sales and dws.sales of models/dws/sales.sql"),
        ({"models/s.yml": SOURCE}, "models/s.yml:5:9: table 'Users' of source 'ods' differs from 'users' in case only"),
        ({"models/t.yml": TEST.format("{values: tea}")}, "models/t.yml:4:57: values must be a list, not 'tea'"),
        ({"models/t.yml": "version: 3\n"}, "models/t.yml:1:1: version 3 of the format of properties files"),
        ({"models/t.yml": "models: [{name: sales, data_tests: [unique]}]"}, "models/t.yml:1:37: unique needs a column"),
        ({"models/a.sql": "select 1 as a\uff0c 2 as b"}, "models/a.sql:1:14: unexpected `\uff0c` (FULLWIDTH COMMA)"),
        ({"models/a.sql": "select \u2018x\u2019 as a"}, "models/a.sql:1:8: unexpected `\u2018` (LEFT SINGLE QUOT"),
        ({"models/a.sql": "select 1 as a\u200b"}, "models/a.sql:1:14: unexpected ZERO WIDTH SPACE"),
        ({"models/s.yml": INGESTED, "models/users.sql": "{{ config(schema='ods') }}select 1 as id"}, INGESTED_TOO),
        ({"models/c.yml": CONTRACT}, "models/dws/sales.sql:1:16: the query breaks the model's contract: product: miss"),
    ],
)
def test_it_is_refused_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown, files: dict[str, str], shown: str
) -> None:
    enter_project(tmp_path, monkeypatch, {**FILES, **files})
    assert main(["compile"]) == 2
    assert f"error: {shown}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "text", "shown"),
    [
        ("pyproject.toml", '[tool.sqlmesh_like.models.shop.dwss]\n"+schema" = "x"\n', "6:32: the settings of models: "),
        ("pyproject.toml", '[tool.sqlmesh_like.seeds.raw]\n"+schema" = "x"\n', ": the settings of seeds: raw apply to"),
        ("pyproject.toml", '[tool.sqlmesh_like.data_tests.a]\n"+limit" = 1\n', ": the settings of data_tests: a apply"),
        ("dbt_project.yml", "name: shop\n", "pyproject.toml: [tool.sqlmesh_like] is not read beside dbt_project.yml"),
        ("dbt_project.yml", "name: s\nseed-paths: [data]", "dbt_project.yml:2:14: there is no folder 'data' in the "),
        ("models/a.csv", "a\n1\n", "models/a.csv: a CSV file is not read from a folder of models"),
        (
            "models/t.yml",
            f"models: [{{name: sales, columns: [{COLUMNS}]}}]",
            "models/t.yml:1:45: column 'N' is described",
        ),
        ("models/x.sql/readme.md", "", "models/x.sql: this is a folder, though its name is that of a file"),
    ],
)
def test_what_applies_to_nothing_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown, file: str, text: str, shown: str
) -> None:
    enter_project(tmp_path, monkeypatch, {**FILES, file: FILES.get(file, "") + text})
    assert main(["compile"]) == 0
    assert shown in capsys.readouterr().err
    assert main(["compile", "--warn-error"]) == 2


def test_settings_of_what_there_is_are_no_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    used = '[tool.sqlmesh_like.models.dws.sales.meta]\nowner = "a"\n[tool.sqlmesh_like.seeds.shop]\n"+schema" = "x"\n'
    files = {"seeds/a.csv": "a\n1\n", "pyproject.toml": FILES["pyproject.toml"] + used}
    enter_project(tmp_path, monkeypatch, {**FILES, **files})
    assert main(["compile", "--warn-error"]) == 0, capsys.readouterr().err


def test_a_project_without_its_settings_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    enter_project(tmp_path, monkeypatch, {key: text for key, text in FILES.items() if key != "pyproject.toml"})
    assert main(["compile"]) == 0
    assert f"no settings file: {tmp_path.name!r} is the name of the folder" in capsys.readouterr().err


def test_links_that_lead_nowhere_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    enter_project(tmp_path, monkeypatch, {**FILES, "other/a.sql": "select 1 as a"})
    Path("models/gone").symlink_to("nowhere")
    Path("models/other").symlink_to("../other")
    assert main(["compile"]) == 0
    shown = capsys.readouterr().err
    assert "models/gone: this is a link to nowhere, which does not exist" in shown
    assert "models/other: links to folders are not followed" in shown
    Path("models/gone.sql").symlink_to("nowhere.sql")
    assert main(["compile"]) == 2
    assert "models/gone.sql: this is a link to nowhere.sql, which does not exist" in capsys.readouterr().err


def test_a_test_of_an_unknown_column_is_told_at_its_declaration_by_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    tests = "models:\n  - name: sales\n    columns:\n      - {name: m, data_tests: [unique]}\n"
    enter_project(tmp_path, monkeypatch, {**FILES, "models/t.yml": tests})
    assert main(["build"]) == 1
    assert "models/t.yml:4:32: data test unique_sales_m: unknown column 'm'" in capsys.readouterr().out


def test_a_condition_that_compares_nothing_is_no_name_of_the_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    test = TEST.format("{values: [tea], config: {error_if: lots}}")
    enter_project(tmp_path, monkeypatch, {**FILES, "models/t.yml": test})
    assert main(["build"]) == 1
    assert "cannot read 'count(*) AS failures' or" in capsys.readouterr().out


@pytest.mark.parametrize("word", ["tag:", "+config.materialized:", "state:"])
def test_a_selector_without_a_value_is_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown, word: str
) -> None:
    enter_project(tmp_path, monkeypatch, FILES)
    assert main(["ls", "-s", word]) == 2
    assert f"selector '{word}' has no value\n  write {word.strip('+')}x" in capsys.readouterr().err


def test_a_closed_output_is_written_to_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter_project(tmp_path, monkeypatch, FILES)
    call = [sys.executable, "-m", "sqlmesh_like", "ls"]
    ended = subprocess.run(call, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1), check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_view_over_a_broken_ephemeral_model_is_not_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    """On Spark a view is compiled where it is read: nothing else would tell."""
    enter_project(
        tmp_path,
        monkeypatch,
        {
            "dbt_project.yml": "name: shop\n",
            "profiles.yml": "lake: {target: d, outputs: {d: {type: spark, warehouse: lake, schema: dws}}}\n",
            "models/text.sql": "{{ config(materialized='ephemeral') }}{{ adapter.nothing() }}",
            "models/outer.sql": "{{ config(materialized='ephemeral') }}select * from {{ ref('text') }}",
            "models/seen.sql": "select * from {{ ref('outer') }}",
            "models/good.sql": "select 1 as a",
        },
    )
    assert main(["run"]) == 1
    shown = capsys.readouterr().out
    assert "ERROR creating sql view model dws.seen" in shown and "seen: models/text.sql:1:50: adapter.nothing" in shown
    assert "OK created sql view model dws.good" in shown
