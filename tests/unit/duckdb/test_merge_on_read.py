"""Merge-on-read tables as base files and change logs: which rows of base files count no more, told by where they stand.

The table is made of the commits of a copy-on-write one: their change logs, and empty log files that nobody reads.
"""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from sqlmesh_like.duckdb import merge_on_read_files
from sqlmesh_like.duckdb.local_files import FILE, FILE_ROW, same
from tests.written_table import Row, Signed, WrittenTable, connection, fetched

COLUMNS = {"p": "string", "v": "long"}


def written(root: Path) -> WrittenTable:
    """Rows of two partitions and buckets; batches that change, delete and insert rows of them."""
    table, dice = WrittenTable(root / "cow", COLUMNS, "p", buckets=2).create(), random.Random(1)
    table.upsert([(f"k{n}", p, n) for n in range(12) for p in "xy"])
    for version in range(3):
        places = dice.sample([(n, p) for n in range(15) for p in "xy"], 9)
        table.upsert(
            [(f"k{n}", p, 100 * version + n) for n, p in places[:5]], [(f"k{n}", p, None) for n, p in places[5:]]
        )
    return table


def appended(table: WrittenTable) -> WrittenTable:
    """The same commits to a merge-on-read table, all but the first two as log files."""
    copy = WrittenTable(table.root.with_name("mor"), COLUMNS, "p", buckets=2)
    shutil.copytree(table.root, copy.root)
    properties = copy.root / ".hoodie" / "hoodie.properties"
    properties.write_text(f"{properties.read_text()}hoodie.table.type=MERGE_ON_READ\n")
    base = table.timeline.data_commits[1].instant.requested
    for commit in table.timeline.data_commits[2:]:
        instant, stats = commit.instant, dict[str, list[dict[str, object]]]()
        for write in commit.writes:
            path = f"{write.partition}/.{write.file_id}_{instant.requested}.log.1_0-1-2"
            (copy.root / write.path).unlink()
            (copy.root / path).touch()
            stat = {"fileId": write.file_id, "path": path, "prevCommit": base, "numDeletes": write.deletes}
            stats.setdefault(write.partition, []).append(stat)
        record = {"partitionToWriteStats": stats, "operationType": "UPSERT", "extraMetadata": dict(commit.extra)}
        timeline = copy.root / ".hoodie" / "timeline"
        (timeline / f"{instant.frontier}.commit").unlink()
        (timeline / f"{instant.frontier}.deltacommit").write_text(json.dumps(record))
    return copy


def shared_rows(table: WrittenTable, frontier: str) -> Signed:
    """Rows as several models of a run read them."""
    with connection().cursor() as db:
        tables: list[str] = []

        def keep(query: str) -> str:
            tables.append(f"kept_{len(tables)}")
            db.execute(f"CREATE TEMP TABLE {tables[-1]} AS {query}")
            return tables[-1]

        query = table.reader().shared_rows(frontier, keep)
        rows = Counter(db.execute(f"SELECT _sml_key, p, v FROM ({query})").fetchall())
        for name in tables:
            db.execute(f"DROP TABLE {name}")
        return rows


def test_rows_and_changes_are_those_of_the_merged_files(tmp_path: Path) -> None:
    table = written(tmp_path)
    copy = appended(table)
    frontiers = [commit.instant.frontier for commit in table.timeline.data_commits][1:]
    assert copy.frontier == table.frontier and not copy.timeline.is_cow
    for frontier in frontiers:
        assert copy.rows(frontier) == shared_rows(copy, frontier) == table.rows(frontier)
        assert copy.change(frontier, frontiers[-1]) == table.change(frontier, frontiers[-1], compared=True)


def test_base_files_that_no_commit_touched_are_not_looked_for_keys_in(tmp_path: Path) -> None:
    """Their rows are read, and no log names a key of them."""
    table = WrittenTable(tmp_path / "cow", COLUMNS, "p").create()
    rows: Sequence[Row] = [("a", "x", 1), ("b", "x", 2), ("a", "y", 3)]
    table.upsert(rows)
    table.upsert([("a", "x", 5)], [("b", "x", None)])
    copy = appended(table)
    assert shared_rows(copy, copy.frontier) == {("a", "x", 5): 1, ("a", "y", 3): 1}
    assert sorted(fetched(f"SELECT _sml_key, p, v FROM ({copy.reader().rows(copy.frontier)})"), key=repr) == [
        ("a", "x", 5),
        ("a", "y", 3),
    ]


def by_number_alone(*names: str) -> str:
    return same(*(name for name in names if name != FILE))


def by_file_alone(*names: str) -> str:
    return same(*(name for name in names if name != FILE_ROW))


def key_without_partition(_: object) -> str:
    return "o._sml_key = n._sml_key"


NAIVE: dict[str, tuple[str, Callable[..., str]]] = {
    "row numbers of any file": ("same", by_number_alone),
    "files whole": ("same", by_file_alone),
    "keys of any partition": ("_identical", key_without_partition),
    "rows that were deleted": (
        "_entering_rows",
        lambda newest: f"SELECT * EXCLUDE (_sml_weight, _sml_number) FROM {newest}",
    ),
}


@pytest.mark.parametrize("rule", NAIVE)
def test_a_naive_rule_is_caught(tmp_path: Path, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = written(tmp_path)
    copy, expected = appended(table), table.rows()
    assert shared_rows(copy, copy.frontier) == expected
    name, naive = NAIVE[rule]
    monkeypatch.setattr(merge_on_read_files, name, naive)
    assert shared_rows(copy, copy.frontier) != expected
