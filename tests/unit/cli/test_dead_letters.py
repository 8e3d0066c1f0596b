"""Dead letters that nobody declared: read by the name that the warning prints, listed, and told with their reason."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pytest

from sqlmesh_like.cdc.report import IngestReport
from sqlmesh_like.cli.app import main
from sqlmesh_like.cli.ingest_log import report_batch
from sqlmesh_like.cli.printing.output import Output
from sqlmesh_like.names import TableName
from tests.local_lake import make_table
from tests.projects import enter_project

SOURCE = """
version: 2
sources:
  - name: shop
    schema: ods
    ingest: {format: debezium, files: {path: landing/*.jsonl}}
    tables:
      - {name: orders, ingest: {primary_key: [id]}, columns: [{name: id, data_type: int}]}
"""
DECLARED = SOURCE + "      - {name: dead_letters, identifier: shop__dead_letters}\n"
FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": "lake: {target: a, outputs: {a: {type: spark, schema: dws, warehouse: w}}}\n",
    "models/s.yml": SOURCE,
}
LETTERS = pa.table({"file": ["landing/1.jsonl"], "reason": ["no key"]})
Shown = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter_project(tmp_path, monkeypatch, FILES)
    return tmp_path


def listed(capsys: Shown) -> list[str]:
    assert main(["ls", "--resource-type", "source"]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("words", [["show", "ods.shop__dead_letters"], ["sql", "select * from ods.shop__dead_letters"]])
def test_they_are_read_by_the_name_that_the_warning_prints(project: Path, capsys: Shown, words: list[str]) -> None:
    make_table(project / "w/ods/shop__dead_letters", LETTERS)
    assert main([*words, "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"file": "landing/1.jsonl", "reason": "no key"}]


def test_they_are_listed_where_there_are_any(project: Path, capsys: Shown) -> None:
    assert listed(capsys) == ["source:shop.shop.orders"]
    make_table(project / "w/ods/shop__dead_letters", LETTERS)
    assert sorted(listed(capsys)) == ["source:shop.shop.orders", "source:shop.shop.shop__dead_letters"]
    (project / "models/s.yml").write_text(DECLARED)
    assert sorted(listed(capsys)) == ["source:shop.shop.dead_letters", "source:shop.shop.orders"], "once, as declared"


def test_the_warning_has_the_first_reason_and_how_to_read_them() -> None:
    shown = io.StringIO()
    report = IngestReport(
        "shop",
        dead_letters=2,
        dead_letter_table=TableName("ods", "shop__dead_letters"),
        first_dead_letter="landing/1.jsonl:3: no key",
    )
    report_batch(report, Output(stream=shown))
    lines = [line.partition("  ")[2] for line in shown.getvalue().splitlines()]
    assert lines == [
        "warning: 2 bad lines in ods.shop__dead_letters, the first: landing/1.jsonl:3: no key",
        "  `sml show ods.shop__dead_letters` prints them",
    ]
