"""`sml ingest` where it must not start: what is refused, and the line of a finished table. No JVM."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmesh_like.cdc.report import TableReport
from sqlmesh_like.cli.app import main
from sqlmesh_like.cli.ingest_log import _line
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


@pytest.mark.checklist(14)
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--trigger", "30 seconds"], "--trigger is for --continuous"),
        (["--continuous", "--trigger", "soon"], "--trigger is 'soon'"),
        (["--replay-dead-letters", "--continuous"], "--replay-dead-letters goes with neither --continuous nor --from"),
        (["--resnapshot", "user", "--from", "earliest"], "--resnapshot goes with none of --continuous, --from"),
        (["--resnapshot", "usr"], "no selected source declares the table usr of --resnapshot"),
        (["--resnapshot", "shop.user"], "source shop has no database whose rows --resnapshot could read"),
        (["--from", "latest"], "--from latest: the files of source 'shop' have no such position"),
    ],
)
def test_when_and_from_where_must_make_sense(
    project: Path, capsys: pytest.CaptureFixture[str], words: list[str], problem: str
) -> None:
    (project / "in").mkdir()
    assert main(["ingest", *words, "--project-dir", str(project)]) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.checklist(13)
@pytest.mark.parametrize("place", ["noon", "[1]", '{"topic": 42}'])
def test_a_place_in_a_topic_is_earliest_latest_or_offsets(
    project: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    kafka = "kafka: {bootstrap_servers: 'localhost:1', topics: [a]}"
    text = SOURCE.replace("FORMAT", "canal").replace("files: {path: in/*.jsonl}", kafka)
    (project / "models" / "sources.yml").write_text(text)
    assert main(["ingest", "--from", place, "--project-dir", str(project)]) == 2
    assert f"--from {place!r} is not a position in a topic" in capsys.readouterr().err


def test_lines_say_what_became_of_a_table() -> None:
    name = TableName("ods", "user")
    assert _line(1, 2, TableReport(name, 2, 1, 3, 0.5), False).endswith(". [2 upserts, 1 deletes, 3 late in 0.50s]")
    assert _line(2, 2, TableReport(name, error="x"), False).startswith("2 of 2 ERROR ingesting ods.user ..")
    assert "NO-OP ods.user" in _line(1, 1, TableReport(name, replayed=4), False)
