"""Change logs as DuckDB's programs read them, of commits without a JVM: where one is in doubt, slices are compared."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path

import fastavro
import pytest

from sqlmesh_like.duckdb.exact_sql import Unproven
from sqlmesh_like.duckdb.merge_on_read_files import local_table
from sqlmesh_like.duckdb.merged_slices import MergedSlices
from sqlmesh_like.hudi import timeline as timelines
from sqlmesh_like.hudi.change_log import logs_between
from sqlmesh_like.hudi.history import LakeHistory
from tests.spoilt_logs import SPOILT, Spoil
from tests.written_table import Row, WrittenTable, fetched

ROWS: list[Row] = [("a", "x", 1), ("b", "y", 2), ("c", "x", 3)]
CHANGE = {("a", "x", 1): -1, ("a", "x", 7): 1, ("b", "y", 2): -1, ("d", "y", 4): 1}


def made(root: Path) -> WrittenTable:
    """Three commits after the empty one; the second changes and deletes, the third inserts."""
    table = WrittenTable(root / "t", {"p": "string", "v": "long"}, "p", buckets=2).create()
    table.upsert(ROWS)
    table.upsert([("a", "x", 7)], [("b", "y", None)])
    table.upsert([("d", "y", 4)])
    return table


def frontiers(table: WrittenTable) -> list[str]:
    return [commit.instant.frontier for commit in table.timeline.data_commits][1:]


def spoil(table: WrittenTable, frontier: str, change: Spoil) -> None:
    path = table.root / ".hoodie" / "timeline" / f"{frontier}.commit"
    reader = fastavro.reader(io.BytesIO(path.read_bytes()))
    schema, (commit,) = reader.writer_schema, list(reader)
    log = json.loads(commit["extraMetadata"]["sml.change_log"])
    change(table.root / log["files"][0]["path"], log)
    commit["extraMetadata"]["sml.change_log"] = json.dumps(log)
    target = io.BytesIO()
    fastavro.writer(target, schema, [commit])
    path.write_bytes(target.getvalue())
    timelines._table_commits.cache_clear()


@pytest.mark.parametrize("name", SPOILT)
def test_a_log_in_doubt_is_not_read_and_it_is_said(tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    table, (change, why) = made(tmp_path), SPOILT[name]
    start, middle, end = frontiers(table)
    assert table.change(start, end) == CHANGE
    spoil(table, middle, change)
    with caplog.at_level(logging.INFO, "sqlmesh_like.duckdb"):
        assert table.change(start, end) == CHANGE
    assert "file slices are compared" in caplog.text and why in caplog.text
    assert table.change(middle, end) == {("d", "y", 4): 1}, "the commit after it chains all the same"


def test_tables_of_before_get_logs_from_their_next_commit_on(tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t", {"p": "string", "v": "long"}).create()
    table.upsert(ROWS, logged=False)
    table.upsert([("a", "x", 6)], logged=False)
    table.upsert([("a", "x", 7)], [("b", "y", None)])
    table.upsert([("d", "y", 4)])
    first, old, new, newest = frontiers(table)
    assert len(logs_between(table.timeline, old, newest)) == 2
    change = LakeHistory().change(str(table.root), first, newest)
    assert change.compared == f"commit {old[:17]} has no change log"
    assert LakeHistory().change(str(table.root), old, newest).compared is None
    assert table.change(first, newest) == CHANGE
    assert table.change(old, new) == {("a", "x", 6): -1, ("a", "x", 7): 1, ("b", "y", 2): -1}


def test_a_change_is_read_from_its_logs_alone(tmp_path: Path) -> None:
    """Data files are unreadable here, so that to compare one would fail."""
    table = made(tmp_path)
    start, _, end = frontiers(table)
    reader = table.reader()
    for path in table.timeline.data_files:
        (table.root / path).write_bytes(b"!" * 100)
    query = reader.change(start, end)
    assert not any(path in query for path in table.timeline.data_files)
    assert table.change(start, end) == CHANGE
    with pytest.raises(Exception, match=r"(?i)parquet"):
        table.change(start, end, compared=True)


def test_a_comparison_reads_no_file_that_no_commit_touched(tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t", {"p": "string", "v": "long"}, "p").create()
    table.upsert([*ROWS, ("e", "z", 5)])
    start = table.frontier
    table.upsert([("a", "x", 7), ("d", "y", 4)], [("b", "y", None)])
    (untouched,) = [path for path in table.timeline.data_files if path.startswith("p=z/")]
    (table.root / untouched).write_bytes(b"!" * 100)
    assert table.change(start, table.frontier, compared=True) == CHANGE
    with pytest.raises(Exception, match=r"(?i)parquet"):
        table.rows()


def test_a_commit_that_was_undone_is_not_read_as_no_change(tmp_path: Path) -> None:
    """No commit follows it, so that its change would seem to be in no log."""
    table = made(tmp_path)
    _, middle, end = frontiers(table)
    (table.root / ".hoodie" / "timeline" / f"{end}.commit").unlink()
    with pytest.raises(Unproven, match="no longer on its timeline"):
        table.change(end, middle)


def test_hidden_columns_are_not_taken_from_logs_that_lack_them(tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t", {"_sml_rows": "long", "v": "long"}).create()
    table.upsert([("a", 1, 1)])
    start = table.frontier
    table.upsert([("a", 2, 3)])
    reader = local_table(LakeHistory().state(str(table.root)), MergedSlices(), hidden=True)
    assert reader is not None
    change = fetched(f"SELECT _sml_rows, v, _sml_weight FROM ({reader.change(start, table.frontier)}) ORDER BY 3")
    assert change == [(1, 1, -1), (2, 3, 1)]
