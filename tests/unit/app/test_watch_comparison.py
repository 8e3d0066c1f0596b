"""Comparisons of a lake with its database during a watch: what is due, what is known, and that none ends the watch."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from sqlmesh_like.app.operations.verification.comparison_texts import difference_text
from sqlmesh_like.app.operations.verification.watch_comparison import WatchComparison, due_tables, requests_of
from sqlmesh_like.cdc.sources.database.comparison.differences import TableComparison
from sqlmesh_like.cdc.sources.database.comparison.record import ComparisonRecord, comparison_record, note_comparison
from sqlmesh_like.cdc.sources.database.comparison.table_comparison import ComparisonRequest
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.cdc.stream.ingest_run import IngestRun
from sqlmesh_like.errors import Location
from sqlmesh_like.project.nodes import ComparisonSchedule, DatabaseSettings, IngestSource, Source, SourceTable, Target
from tests.local_lake import make_table
from tests.services.process import free_port
from tests.unit.cdc.test_database_source import table

ITEM, LATER = table("item"), table("later")


def other(name: str, **ingest: Any) -> SourceTable:
    made = table(name)
    assert made.ingest is not None
    return replace(made, ingest=replace(made.ingest, **ingest))


@pytest.fixture
def place(tmp_path: Path) -> SourcePaths:
    """A source of which one table is in the lake; nothing listens where its database should."""
    settings = DatabaseSettings(
        "mysql", "127.0.0.1", free_port(), "root", "shop", verify=ComparisonSchedule(3600.0, share=0.01)
    )
    tables = (ITEM, LATER, other("entry", primary_key=()), other("log", deletes="retention"))
    source = Source("shop", "ods", IngestSource("debezium", database=settings), tables, "", Location("s.yml", 1, 1))
    made = SourcePaths(Target("p", "t", "spark", warehouse=str(tmp_path)), source)
    for name in ("item", "entry", "log"):
        make_table(tmp_path / "ods" / name, pa.table({"id": pa.array([1], pa.int32())}))
    return made


def note(place: SourcePaths, result: TableComparison, at: float, share: float = 1.0, seed: int = 0) -> ComparisonRecord:
    return note_comparison(place, result, ComparisonRequest(share=share, seed=seed), at)


def test_tables_are_due_once_in_a_while_and_those_that_cannot_be_compared_never(place: SourcePaths) -> None:
    assert due_tables(place, 0.0) == (ITEM,)
    note(place, TableComparison(ITEM, 0.1, rows=5), at=1000.0)
    assert due_tables(place, 4599.0) == () and due_tables(place, 4600.0) == (ITEM,)
    note(place, TableComparison(ITEM, 0.1, error="the database is away"), at=5000.0)
    assert due_tables(place, 5599.0) == () and due_tables(place, 5600.0) == (ITEM,)


def test_a_table_that_differs_is_compared_by_the_same_part_until_it_does_not(place: SourcePaths) -> None:
    sampled = TableComparison(ITEM, 0.1, rows=5, sampled=True)
    different = TableComparison(ITEM, 0.1, rows=5, different=2, left=1, unread=3, sampled=True)
    record = note(place, different, 1.0, share=0.01, seed=7)
    assert record.finding is not None and (record.finding.different, record.finding.undecided) == (3, 3)
    text = difference_text(ITEM, record) or ""
    assert "3 rows differ" in text and "sml verify -s source:shop.item --share 1 --seed 7 --repair" in text
    ((request, tables),) = requests_of(place, (ITEM,))
    assert (request.share, request.seed, tables) == (0.01, 7, [ITEM])
    assert note(place, sampled, 2.0, share=0.01, seed=8).differs, "of another part of the table"
    assert note(place, TableComparison(ITEM, 0.1, error="away"), 3.0).differs, "it is known to differ"
    assert not note(place, sampled, 4.0, share=0.01, seed=7).differs
    assert note(place, different, 5.0, share=0.01, seed=7).differs
    assert not note(place, TableComparison(ITEM, 0.1, rows=500), 6.0).differs


def test_a_database_that_is_away_ends_neither_the_watch_nor_what_was_known(place: SourcePaths) -> None:
    note(place, TableComparison(ITEM, 0.1, rows=5, different=2), at=1.0)
    run = SimpleNamespace(place=place, capture=object(), gate=threading.Lock())
    lines: list[str] = []
    published: list[ComparisonRecord] = []
    comparison = WatchComparison(
        [cast(IngestRun, run)], lambda text, _="": lines.append(text), lambda _, record: published.append(record)
    )
    comparison()
    assert comparison._thread is not None
    comparison._thread.join(120)
    assert not comparison._thread.is_alive()
    comparison.close()
    record = comparison_record(place, ITEM)
    assert published[-1] == record and record.differs and "127.0.0.1" in (record.error or "")
    assert any("could not be compared with the database" in line for line in lines)
    assert due_tables(place, time.time()) == ()


def test_a_record_that_cannot_be_read_is_said_once(place: SourcePaths) -> None:
    note(place, TableComparison(ITEM, 0.1, rows=5), at=1.0)
    (Path(place.compared(ITEM)) / "comparison.json").write_text("{")
    run = SimpleNamespace(place=place, capture=object(), gate=threading.Lock())
    lines: list[str] = []
    comparison = WatchComparison([cast(IngestRun, run)], lambda text, _="": lines.append(text), lambda *_: None)
    for _ in range(2):
        comparison._next_look = 0.0
        comparison()
    assert len(lines) == 1 and "not compared" in lines[0]


def test_a_source_without_a_schedule_is_not_compared(place: SourcePaths) -> None:
    assert place.source.ingest is not None and place.source.ingest.database is not None
    plain = DatabaseSettings("mysql", "127.0.0.1", 3306, "root", "shop")
    tables: tuple[SourceTable, ...] = (ITEM,)
    source = Source("shop", "ods", IngestSource("debezium", database=plain), tables, "", Location("s.yml", 1, 1))
    assert due_tables(SourcePaths(place.target, source), 0.0) == ()
