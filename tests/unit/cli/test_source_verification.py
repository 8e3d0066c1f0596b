"""`sml verify -s source:…`: what is refused, and how differences of a database are printed. No database, no JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sqlmesh_like.app.operations.verification import source_verification
from sqlmesh_like.cdc.sources.database.comparison.columns import UncomparedColumn
from sqlmesh_like.cdc.sources.database.comparison.differences import DifferentColumn, DifferentRow, TableComparison
from sqlmesh_like.cdc.sources.database.comparison.repair import Repair
from sqlmesh_like.cdc.sources.database.comparison.table_comparison import ComparisonRequest
from sqlmesh_like.cli.app import main
from sqlmesh_like.project.nodes import SourceTable
from tests.services.process import free_port

SOURCES = """
version: 2
sources:
  - name: shop
    ingest: {database: {url: "mysql://sml@127.0.0.1:PORT/shop"}}
    tables: [{name: item, ingest: {primary_key: [id]}}]
  - name: files
    ingest: {format: debezium, files: {path: in/*.jsonl}}
    tables: [{name: user, ingest: {primary_key: [id]}}]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "p"\nprofile = "lake"\n')
    (tmp_path / "profiles.yml").write_text("lake: {target: t, outputs: {t: {type: spark, warehouse: w}}}")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "sources.yml").write_text(SOURCES.replace("PORT", str(free_port())))
    return tmp_path


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["-s", "source:shop"], "does not answer"),
        (["-s", "source:files"], "source 'files' does not read a database"),
        (["--repair"], "--repair is for sources"),
        (["--share", "1"], "--share and --max-rows-per-second are for sources"),
    ],
)
def test_what_cannot_be_compared_ends_with_what_to_do(
    project: Path, capsys: pytest.CaptureFixture[str], words: list[str], problem: str
) -> None:
    assert main(["verify", *words, "--project-dir", str(project)]) == 2
    shown = capsys.readouterr().err
    assert problem in shown and "Traceback" not in shown


@pytest.mark.parametrize(
    ("result", "code", "lines"),
    [
        ({"rows": 5}, 0, ["PASS source shop.item (5 rows)"]),
        ({"rows": 5, "unread": 2}, 0, ["2 rows have changes in the log", "sml ingest -s source:shop"]),
        (
            {"rows": 5, "uncompared": (UncomparedColumn("doc", "json there", by_nature=True),)}, 0,
            ["PASS source shop.item (5 rows, without 1 column) ", "not compared: doc (json there)", "PASS=1 WARN=0"],
        ),
        (
            {"rows": 5, "uncompared": (UncomparedColumn("n", "int there"), UncomparedColumn("m", "not in the lake"))},
            0,
            ["WARN 2 source shop.item (5 rows, without 2 columns) ", "not compared: n (int there), m", "PASS=0 WARN=1"],
        ),
        ({"error": "no key\n  name one"}, 2, ["no key", "name one"]),
        (
            {
                "rows": 5, "different": 3, "left": 7, "uncompared": (UncomparedColumn("doc", "json there"),),
                "examples": (
                    DifferentRow("id=1", None, (DifferentColumn("name", "'a '", "'a'"),)), DifferentRow("id=2", "lake"),
                ),
            },
            1,
            ["id=1: name is 'a ' in the database, 'a' in the lake", "id=2: only in the lake", "… and 1 more rows",
             "in 7 rows that differ in sum", "not compared: doc (json there)"],
        ),
    ],
)  # fmt: skip
def test_differences_are_printed_by_key_and_column(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    result: dict[str, object],
    code: int,
    lines: list[str],
) -> None:
    requests: list[ComparisonRequest] = []

    def compare(
        _place: object, tables: tuple[SourceTable, ...], request: ComparisonRequest, *_rest: object
    ) -> Iterator[TableComparison]:
        requests.append(request)
        for table in tables:
            yield TableComparison(table, 0.1, **result)  # type: ignore[arg-type]

    monkeypatch.setattr(source_verification, "compare_tables", compare)
    limits = ["--share", "1", "--max-rows-per-second", "1000", "--seed", "7"]
    assert main(["verify", "-s", "source:shop", *limits, "--project-dir", str(project)]) == code
    shown = capsys.readouterr().out
    for line in lines:
        assert line in shown
    assert requests == [ComparisonRequest(20, 1000, 0.01, 7)]
    strict = main(["verify", "-s", "source:shop", "--warn-error", "--project-dir", str(project)])
    assert strict == (1 if "WARN" in lines[0] or "unread" in result else code)


def test_what_differs_is_read_again_and_compared_again(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log is read under its lock, and what was added to it is ingested before the tables are compared again."""
    results = [{"rows": 5, "different": 2, "examples": (DifferentRow("id=2", "lake"),)}, {"rows": 6}]
    steps: list[str] = []

    def compare(
        _place: object, tables: tuple[SourceTable, ...], _request: object, read_log: Callable[[], None], _phase: object
    ) -> Iterator[TableComparison]:
        read_log()
        given = results.pop(0)
        for table in tables:
            yield TableComparison(table, 0.1, **given)  # type: ignore[arg-type]

    def repair(_place: object, wanted: list[TableComparison], read_log: Callable[[], None]) -> Repair:
        read_log()
        steps.append(f"repair of {[each.different for each in wanted]}")
        return Repair(rows=1, deletes=1, changed=3, left=4)

    monkeypatch.setattr(source_verification, "compare_tables", compare)
    monkeypatch.setattr(source_verification, "add_repair", repair)
    monkeypatch.setattr(source_verification, "ensure_jars", lambda *_, **__: None)
    monkeypatch.setattr(source_verification, "spool_log", lambda place: steps.append(f"log of {place.source.name}"))
    monkeypatch.setattr(
        source_verification, "ingest", lambda _loaded, request, _listener: steps.append(f"ingest of {request.source}")
    )
    assert main(["verify", "-s", "source:shop", "--repair", "--project-dir", str(project)]) == 0
    shown = capsys.readouterr().out
    for line in (
        "Read again: 1 rows; deleted, because the database does not have them: 1",
        "3 rows have changed meanwhile",
        "4 rows are left: they have only a key",
        "PASS source shop.item (6 rows)",
    ):
        assert line in shown
    assert steps == ["log of shop", "log of shop", "repair of [2]", "ingest of shop", "log of shop"]
