"""Keys in published tables on this machine, compared by value."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqlmesh_like.hudi.erasure.byte_search import Needles
from sqlmesh_like.hudi.erasure.row_match import RowMatch
from sqlmesh_like.project.publishing import Destination
from sqlmesh_like.publish.freed_space import local_files
from sqlmesh_like.publish.published_rows import published_rows, texts_in_database


def in_duckdb(root: Path) -> Destination:
    with duckdb.connect(str(root / "bi.duckdb")) as db:
        db.execute("create table shown (ID int, price decimal(9,2), note varchar)")
        db.execute("insert into shown values (7, 1.50, 'a'), (17, 2, '7')")
    return Destination("bi", "duckdb", str(root / "bi.duckdb"))


def in_sqlite(root: Path) -> Destination:
    with closing(sqlite3.connect(root / "bi.sqlite")) as db:
        db.execute("create table shown (ID integer, price decimal(9,2), note text)")
        db.execute("insert into shown values (7, 1.50, 'a'), (17, 2, '7')")
        db.commit()
    return Destination("bi", "url", f"sqlite:///{root / 'bi.sqlite'}")


def in_parquet(root: Path) -> Destination:
    price = pa.array([Decimal("1.50"), Decimal("2.00")], pa.decimal128(9, 2))
    pq.write_table(pa.table({"ID": [7, 17], "price": price, "note": ["a", "7"]}), root / "shown.parquet")
    return Destination("bi", "parquet", root.as_uri())


@pytest.mark.parametrize("make", [in_duckdb, in_sqlite, in_parquet])
def test_a_key_is_found_by_its_value_in_its_column(make: Callable[[Path], Destination], tmp_path: Path) -> None:
    destination = make(tmp_path)

    def texts(table: str, columns: tuple[str, ...], *values: tuple[str, ...]) -> list[str]:
        return [finding.text.lower() for finding in published_rows(destination, table, RowMatch(columns, values))]

    assert texts("shown", ("id",), ("7",)) == ["id=7"]
    assert texts("shown", ("id",), ("1",), ("70",), ("x",)) == []
    assert texts("shown", ("note",), ("7",)) == ["note=7"]
    assert len(texts("shown", ("id", "price"), ("7", "1.5"))) == 1
    assert texts("shown", ("id", "price"), ("7", "2")) == []
    # A column or a table that is not published has nothing.
    assert texts("shown", ("other",), ("7",)) == texts("gone", ("id",), ("7",)) == []


def test_what_is_not_there_or_elsewhere_has_nothing(tmp_path: Path) -> None:
    match = RowMatch(("id",), [("7",)])
    for kind, place in (("duckdb", str(tmp_path / "no.duckdb")), ("url", "postgresql://x/y"), ("parquet", "s3://b/c")):
        assert list(published_rows(Destination("bi", kind, place), "shown", match)) == []  # type: ignore[arg-type]
    assert not (tmp_path / "no.duckdb").exists()


@pytest.mark.parametrize("make", [in_duckdb, in_sqlite])
def test_a_text_of_a_row_is_found_but_not_in_a_longer_key(make: Callable[[Path], Destination], tmp_path: Path) -> None:
    destination = make(tmp_path)

    def texts_of(*texts: str, longer: tuple[str, ...] = ()) -> list[str]:
        needles = Needles(texts, dict.fromkeys(texts, longer))
        return [finding.text for finding in texts_in_database(destination, needles)]

    assert texts_of("1.5", "17", "none") == ["1.5", "17"]
    assert texts_of("7", longer=("17",)) == ["7"] and texts_of("1", longer=("17", "1.5", "1.50")) == []


def test_a_database_is_its_file_and_the_logs_beside_it(tmp_path: Path) -> None:
    logs = {path.name for path in local_files(in_sqlite(tmp_path))}
    assert {"bi.sqlite", "bi.sqlite-wal", "bi.sqlite-journal"} <= logs
    assert "bi.duckdb.wal" in {path.name for path in local_files(in_duckdb(tmp_path))}
    assert local_files(Destination("far", "url", "postgresql://x/y")) == []
