"""A table that lacks what its source wrote is seen before anything is called nothing new."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.cdc.tables.last_commits import forget_last_commits, note_last_commits, tables_that_went_back
from sqlmesh_like.errors import Location
from sqlmesh_like.names import TableName
from sqlmesh_like.project.nodes import IngestSource, IngestTable, Source, SourceTable, Target
from tests.unit.hudi.test_timeline import Lake, at

NAME = TableName("ods", "t")


@pytest.fixture
def place(tmp_path: Path) -> SourcePaths:
    declared = IngestTable(database="db", table="t", primary_key=("id",))
    where = Location("models/sources.yml", 7, 5)
    table = SourceTable("source.p.shop.t", "shop", "t", NAME, None, "hudi", declared, (), "", (), {}, where)
    source = Source("shop", "ods", IngestSource("debezium", files="landing/*"), (table,), "", where)
    return SourcePaths(Target("dev", "dev", "spark", warehouse=str(tmp_path)), source)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    (tmp_path / "ods").mkdir()
    return Lake(tmp_path / "ods" / "t")


def refused(place: SourcePaths) -> str:
    [lost] = tables_that_went_back(place)
    error = lost.error()
    assert error.location == place.source.tables[0].declared_at
    assert "sml ingest -s source:shop --from earliest" in (error.hint or "")
    return str(error)


def undo(lake: Lake, frontier: str) -> None:
    (lake.folder / f"{frontier}.commit").unlink()


def test_a_table_as_it_was_left_is_fine_and_so_is_one_that_went_on(place: SourcePaths, lake: Lake) -> None:
    assert not tables_that_went_back(place)
    lake.commit(1, ["a"])
    note_last_commits(place, [NAME])
    assert not tables_that_went_back(place)
    lake.commit(3, ["b"])
    lake.commit(5, ["a", "b"], operation="CLUSTER", action="replacecommit")
    assert not tables_that_went_back(place)


def test_a_commit_that_was_undone_is_missed_even_behind_a_later_one(place: SourcePaths, lake: Lake) -> None:
    marker = json.dumps({"query": "q", "batch": 0, "offsets": {"topic": {"0": [0, 7]}}})
    kept, undone = lake.commit(1, ["a"], extra={"sml.ingest": marker}), lake.commit(3, ["b"])
    note_last_commits(place, [NAME])
    undo(lake, undone)
    lake.mark(f"{at(5)}_{at(6)}.restore")
    said = refused(place)
    assert f"commit {undone} is gone, its newest one is {kept}" in said and "'topic': {'0': [0, 7]}" in said
    lake.commit(7, ["c"])
    assert undone in refused(place)


def test_a_table_that_is_gone_is_missed(place: SourcePaths, lake: Lake) -> None:
    frontier = lake.commit(1, ["a"])
    note_last_commits(place, [NAME])
    shutil.rmtree(lake.root)
    assert f"it has no commit, and had {frontier}" in refused(place)


@pytest.mark.fault("a file of the newest commit of a table of a source is missing", ends="refuses")
def test_a_file_of_the_newest_commit_is_missed(place: SourcePaths, lake: Lake) -> None:
    lake.commit(1, ["a", "b"])
    note_last_commits(place, [NAME])
    path = f"p=1/b_0-1-2_{at(1)}.parquet"
    (lake.root / path).unlink()
    assert f"1 files of its newest commit are gone, e.g. {path}" in refused(place)
    lake.commit(3, ["a", "b"], operation="CLUSTER", action="replacecommit")
    assert not tables_that_went_back(place)  # clustered files may be cleaned


def test_an_archived_commit_counts_as_there(place: SourcePaths, lake: Lake) -> None:
    archived = lake.commit(1, ["a"])
    note_last_commits(place, [NAME])
    lake.commit(3, ["a"])
    undo(lake, archived)
    assert archived in refused(place)
    (lake.folder / "history").mkdir()
    (lake.folder / "history" / "1_2_0.parquet").touch()
    assert not tables_that_went_back(place)


def test_what_is_read_again_from_the_start_expects_nothing(place: SourcePaths, lake: Lake) -> None:
    lake.commit(1, ["a"])
    note_last_commits(place, [NAME, TableName("ods", "not_declared")])
    shutil.rmtree(lake.root)
    forget_last_commits(place)
    assert not tables_that_went_back(place)
    forget_last_commits(place)
