"""Calls that ask for what is not there, or makes no sense: each says why in its first line, and changes nothing."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.projects import enter_project

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {target: local, outputs: {local: {type: spark, warehouse: warehouse, schema: dws}, "
    "memory: {type: duckdb, schema: dws}}}\n",
    "models/s.yml": "sources: [{name: shop, schema: ods, tables: [{name: orders, columns: "
    "[{name: id, data_type: int}]}]}]\n",
    "seeds/rates.csv": "rate\n3\n",
    "models/doubled.sql": "select rate * 2 as rate from {{ ref('rates') }}",
    "models/seen.sql": "{{ config(materialized='view') }}select rate from {{ ref('doubled') }}",
    "models/later.sql": "select id from {{ source('shop', 'orders') }}",
}
REFUSED = {
    "run --now soon": (2, "--now 'soon' is not an ISO 8601 time"),
    "show": (2, "name one model, or give --inline SQL"),
    "show seen --as-of 2024-01-01": (2, "--as-of is for one table of a lake"),
    "show --inline 'select 1 as a' --as-of 2024-01-01": (2, "--as-of is for one table of a lake"),
    "show nothing": (2, "no table 'nothing' in this project"),
    "show later": (1, "the table dws.later does not exist yet"),
    "history later": (1, "the table dws.later has no commits"),
    "history nothing": (2, "no table 'nothing' in this project"),
    "ddl later": (1, "dws.later is not a Hudi table yet"),
    "ddl seen": (2, "no table 'seen' in this project"),
    "diff doubled": (2, "doubled: a model is compared in an environment"),
    "diff": (2, "diff needs --state PATH to compare with"),
    "run -e feature --defer --state target":
        (2, "an environment reads production's tables: --defer has no meaning there"),
    "verify --keys 3": (2, "--keys and --seed describe a sample"),
    "verify --share 3": (2, "--share and --max-rows-per-second are for sources"),
    "savepoint create later": (1, "the table dws.later does not exist yet"),
    "repair later": (1, "the table dws.later does not exist yet"),
    "repair seen": (2, "no table 'seen' in this project"),
    "promote nothing": (2, "there is no environment 'nothing'"),
    "env drop nothing": (2, "there is no environment 'nothing'"),
    "plan -e 'a b'": (2, "an environment cannot be named 'a b'"),
    "release show": (2, "the project makes no releases"),
    "publish -s doubled": (2, "no selected model is published"),
    "freshness -s source:nothing": (2, "selector 'source:nothing' matches nothing"),
    "ingest --resnapshot orders": (2, "no ingested source is selected"),
    "ingest -s source:shop": (2, "no ingested source is selected"),
    "maintain -s nothing": (2, "selector 'nothing' matches nothing"),
    "lineage doubled.nothing": (2, "the model 'doubled' has no column 'nothing'"),
    "sql 'select'": (2, "<inline>:1:1: invalid SQL: something is missing after SELECT"),
    "sql 'delete from dws.doubled'": (2, "<inline>:1:1: a model is one SELECT; this is DELETE"),
    "explain -s nothing": (2, "selector 'nothing' matches nothing"),
    "init 'a b'": (2, "'a b' cannot be a project's name"),
    "test --select state:modified": (2, "state: needs something to compare with"),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A lake with the tables of a seed and of a model, and without those of another model and of a source."""
    root = tmp_path_factory.mktemp("shop")
    with pytest.MonkeyPatch.context() as patch:
        enter_project(root, patch, FILES)
        assert main(["build", "-s", "rates+", "-q"]) == 0
        yield root


def files(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted((root / "warehouse").rglob("*")) if path.is_file()}


@pytest.mark.parametrize("call", REFUSED)
def test_a_call_without_sense_says_why_and_changes_nothing(
    call: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(project)
    code, message = REFUSED[call]
    assert main(shlex.split(call)) == code
    assert capsys.readouterr().err.splitlines()[0] == f"error: {message}"
    assert files(project) == before


def test_nobodys_lock_is_ended(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["unlock", "doubled"]) == 2
    shown = capsys.readouterr().err
    assert f"locks of {project}/warehouse end with their process" in shown and "nobody holds it" in shown


def test_a_table_is_not_read_before_it_was_there(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for call in ("show doubled --as-of", "changes doubled --since", "rollback doubled --to"):
        assert main([*call.split(), "2024-01-01"]) == 1
        assert f"{project}/warehouse/dws/doubled had nothing as of 2024-01-01" in capsys.readouterr().err
