"""`sml ingest` where it must not start: what is refused, and the line of a finished table. No JVM."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from sqlmesh_like.cli.commands.ingest import _line
from sqlmesh_like.ingest.report import TableReport
from sqlmesh_like.names import TableName

PROFILES = "lake: {target: t, outputs: {t: {type: spark, warehouse: w}, d: {type: duckdb}}}"
SOURCE = """
version: 2
sources:
  - name: shop
    ingest: {format: FORMAT, files: {path: in/*.jsonl}}
    tables: [{name: user, ingest: {primary_key: [id]}}]
  - {name: other, tables: [{name: x}]}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "p"\nprofile = "lake"\n')
    (tmp_path / "profiles.yml").write_text(PROFILES)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "sources.yml").write_text(SOURCE.replace("FORMAT", "debezium"))
    return tmp_path


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--continuous"], "--continuous is not supported yet"),
        (["--trigger", "30 seconds"], "--trigger is not supported yet"),
        (["--from", "latest"], "--from is not supported yet"),
        (["-t", "d"], "the target 'd' has no lake"),
        (["-s", "source:other"], "no ingested source is selected"),
        (["-s", "source:shopp"], "shop"),
        ([], "source 'shop' reads in/*.jsonl, but there is no folder in"),
    ],
)
def test_what_cannot_be_ingested_is_said_without_starting_anything(
    project: Path, capsys: pytest.CaptureFixture[str], words: list[str], problem: str
) -> None:
    assert main(["ingest", *words, "--project-dir", str(project)]) == 2
    shown = capsys.readouterr().err
    assert problem in shown
    assert "Traceback" not in shown


def test_a_format_that_is_not_supported_is_said_with_its_place(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "models" / "sources.yml").write_text(SOURCE.replace("FORMAT", "canal"))
    assert main(["ingest", "--project-dir", str(project)]) == 2
    assert "models/sources.yml:4:5: format canal of source 'shop' is not supported yet" in capsys.readouterr().err


def test_lines_say_what_became_of_a_table() -> None:
    name = TableName("ods", "user")
    assert _line(1, 2, TableReport(name, 2, 1, 3, 0.5), False).endswith(". [2 upserts, 1 deletes, 3 late in 0.50s]")
    assert _line(2, 2, TableReport(name, error="x"), False).startswith("2 of 2 ERROR ingesting ods.user ..")
    assert "NO-OP ods.user" in _line(1, 1, TableReport(name, replayed=4), False)
