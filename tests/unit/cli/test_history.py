"""`sml history` over a timeline made by hand: the work of each commit, with no JVM."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.app.loading.source_discovery import discovered_tables, with_discovered_tables
from sqlmesh_like.cdc.sources.discover import discover
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.cli.app import main
from sqlmesh_like.hudi.time_travel import frontier_at
from tests.unit.hudi.test_history import record
from tests.unit.hudi.test_timeline import Lake, at


class _Sized(Lake):
    def file(self, file_id: str, instant: int, merged_from: int | None = None) -> Mapping[str, object]:
        return {**super().file(file_id, instant, merged_from), "fileSizeInBytes": 1500, "numInserts": 1}


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    (tmp_path / "models").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "shop"\n')
    (tmp_path / "profiles.yml").write_text(
        "lake: {target: a, outputs: {a: {type: spark, schema: dws, warehouse: w}}}\n"
    )
    (tmp_path / "models/m.sql").write_text("select 1 as id")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)
    return _Sized(tmp_path / "w/dws/m")


@pytest.mark.checklist(51)
def test_each_commit_tells_strategy_rows_files_and_bytes(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.commit(1, ["a", "b"], extra=record("full_refresh"))
    lake.commit(3, ["a"], merged_from={"a": 1}, extra=record("row_based"))
    assert main(["history", "m", "--output", "json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert (first["strategy"], first["rows"], first["files"], first["bytes"]) == ("full_refresh", 4, 2, 3000)
    assert (second["strategy"], second["rows"], second["files"], second["bytes"]) == ("row_based", 2, 1, 1500)
    assert (second["inserts"], second["deletes"], second["time"]) == (1, 1, "2024-01-01T00:00:04.000Z")
    assert second["instant"].startswith(at(3))
    assert main(["history", "m"]) == 0
    text = capsys.readouterr().out
    assert "full_refresh" in text and "3.0 kB" in text


@pytest.mark.parametrize(("limit", "shown"), [(-1, [1, 3, 5]), (0, []), (2, [3, 5]), (9, [1, 3, 5])])
def test_the_limit_is_the_number_of_newest_commits(
    lake: Lake, limit: int, shown: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (1, 3, 5):
        lake.commit(number, ["a"], merged_from={"a": number - 2} if number > 1 else {})
    assert main(["history", "m", "--limit", str(limit), "--output", "json"]) == 0
    commits = json.loads(capsys.readouterr().out)
    assert [commit["instant"].partition("_")[0] for commit in commits] == [at(number) for number in shown]


def test_what_history_prints_means_that_commit(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tests.unit.hudi.test_timeline.at", lambda second: f"20240101000{second:03d}567")
    for number in (1, 3, 5):
        lake.commit(number, ["a"], merged_from={"a": number - 2} if number > 1 else {})
    assert main(["history", "m", "--output", "json"]) == 0
    commits = json.loads(capsys.readouterr().out)
    assert [commit["time"][-7:] for commit in commits] == ["02.567Z", "04.567Z", "06.567Z"]
    for commit in commits:
        assert frontier_at(lake.timeline, commit["time"]) == commit["instant"]
    assert main(["history", "m"]) == 0
    shown = [word for word in capsys.readouterr().out.split() if word.endswith("567") and word.isdigit()]
    assert [frontier_at(lake.timeline, word) for word in shown] == [commit["instant"] for commit in commits]


def test_a_table_that_nobody_declared_has_a_history_and_services(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    block = "{format: canal, files: {path: landing/*.jsonl}, discover: true}"
    sources = f"version: 2\nsources: [{{name: shop, schema: ods, ingest: {block}}}]\n"
    (tmp_path / "models/sources.yml").write_text(sources)
    loaded = load(Invocation())
    discover(SourcePaths(loaded.target, loaded.project.sources[0]), {("db", None, "orders"): ["id"]})
    lake.commit(1, ["a"], extra=record("full_refresh"))
    other = _Sized(tmp_path / "w/ods/orders")
    other.commit(1, ["a"])
    assert main(["history", "shop.orders", "--output", "json"]) == 0
    assert [entry["rows"] for entry in json.loads(capsys.readouterr().out)] == [2]
    known = with_discovered_tables(loaded)
    assert discovered_tables(known) == {"shop.orders"}
    # Who reads it declares it: then its history is theirs.
    (tmp_path / "models/sources.yml").write_text(sources.replace("ingest:", "tables: [{name: orders}], ingest:"))
    assert discovered_tables(with_discovered_tables(load(Invocation()))) == frozenset()
