"""`sml sql` over tables on disk with no JVM: which table a name means, types, and what is left to Spark."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from sqlmesh_like.app.lakes import lake as cli_lake
from sqlmesh_like.cli.app import main
from sqlmesh_like.names import Column
from sqlmesh_like.run.ports import Rows
from tests.local_lake import make_table

DAYS = [date(2024, 1, 1), date(2024, 1, 1), date(1, 1, 1), None]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "shop"\n')
    (tmp_path / "profiles.yml").write_text("lake: {target: a, outputs: {a: {type: spark, schema: dws, warehouse: w}}}")
    tables = "[{name: orders}, {name: odd}, {name: empty}]"
    (tmp_path / "models/s.yml").write_text(f"sources: [{{name: shop, schema: ods, tables: {tables}}}]")
    (tmp_path / "models/paid.sql").write_text(
        "{{ config(materialized='view') }} select id, amount, day from {{ source('shop', 'orders') }} where amount > 1"
    )
    (tmp_path / "models/orders.sql").write_text("select id from {{ ref('paid') }}")
    rows = pa.table({
        "id": pa.array([1, 2, 3, 4], pa.int32()),
        "amount": pa.array([Decimal("1.50"), Decimal("2.50"), None, Decimal("0.10")], pa.decimal128(10, 2)),
        "day": pa.array(DAYS, pa.date32()),
        "at": pa.array([datetime(2024, 1, 1, 12, 30, 1, 5, tzinfo=UTC), None, None, None], pa.timestamp("us", "UTC")),
    })  # fmt: skip
    make_table(tmp_path / "w/ods/orders", rows)
    make_table(tmp_path / "w/ods/odd", pa.table({"id": pa.array([1], pa.int32()), "tags": pa.array([["a"]])}))
    make_table(tmp_path / "w/ods/empty", rows.slice(0, 0))
    return tmp_path


def rows_of(root: Path, capsys: pytest.CaptureFixture[str], query: str, *words: str) -> list[dict[str, object]]:
    assert main(["sql", query, "--output", "json", *words, "--project-dir", str(root)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert isinstance(document, list)
    return document


def error_of(root: Path, capsys: pytest.CaptureFixture[str], query: str, code: int = 2) -> str:
    assert main(["sql", query, "--project-dir", str(root)]) == code
    return capsys.readouterr().err


def test_a_query_sees_whole_tables_with_their_types(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = rows_of(root, capsys, "select * from ods.orders order by id limit 2")
    assert rows == [
        {"id": 1, "amount": "1.50", "day": "2024-01-01", "at": "2024-01-01T12:30:01.000005Z"},
        {"id": 2, "amount": "2.50", "day": "2024-01-01", "at": None},
    ]
    grouped = "select day, sum(amount) as total, count(*) from ods.orders group by day order by day"
    assert rows_of(root, capsys, grouped) == [
        {"day": None, "total": "0.10", "COUNT(*)": 1},
        {"day": "0001-01-01", "total": None, "COUNT(*)": 1},
        {"day": "2024-01-01", "total": "4.00", "COUNT(*)": 2},
    ]
    assert rows_of(root, capsys, "select count(1) as n from ods.empty") == [{"n": 0}]


def test_views_and_references_are_read_by_name(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = [{"id": 1}, {"id": 2}]
    for name in ("paid", "dws.PAID", "{{ ref('paid') }}"):
        assert rows_of(root, capsys, f"select id from {name} order by id") == wanted
    shadowed = "with paid as (select id from {{ source('shop', 'orders') }} where id = 3) select * from paid"
    assert rows_of(root, capsys, shadowed) == [{"id": 3}]


def test_limit_and_standard_input(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(rows_of(root, capsys, "select * from ods.orders", "--limit", "3")) == 3
    assert len(rows_of(root, capsys, "select * from ods.orders", "--limit", "-1")) == 4
    monkeypatch.setattr("sys.stdin", io.StringIO("select id from ods.orders\nwhere id = 4"))
    assert rows_of(root, capsys, "-") == [{"id": 4}]
    assert "there is no query" in error_of(root, capsys, " ")


def test_what_is_wrong_is_told_at_its_place(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = error_of(root, capsys, "select id\nfrom ods.ordres")
    assert "<inline>:2:6: no table ods.ordres in this project\n  did you mean 'ods.orders'?" in said
    assert "<inline>:1:8: unknown column 'idd'\n  did you mean 'id'?" in error_of(root, capsys, "select idd from paid")
    assert "orders may be ods.orders or dws.orders" in error_of(root, capsys, "select * from orders")
    assert "the table dws.orders does not exist yet" in error_of(root, capsys, "select * from dws.orders", 1)
    assert "this is delete" in error_of(root, capsys, "delete from ods.orders").lower()


@pytest.mark.parametrize(
    "query",
    [
        "select soundex('x') as s from ods.orders",
        "select amount / 3 as third from ods.orders",
        "select * from ods.odd",
        "select cast('1.9' as int) as one from ods.orders",
    ],
)
def test_spark_is_asked_where_duckdb_might_say_otherwise(
    query: str, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Spark:
        def query(self, tree: object, tables: object, limit: int) -> Rows:
            return Rows((Column("by", "string"),), (("spark",),))

        def stop(self) -> None: ...

    monkeypatch.setattr(cli_lake, "spark_engine", lambda *_: Spark())
    assert rows_of(root, capsys, query) == [{"by": "spark"}]


def test_a_target_without_a_lake_computes_what_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "seeds").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "shop"\n')
    (tmp_path / "profiles.yml").write_text("lake: {target: t, outputs: {t: {type: duckdb}}}")
    (tmp_path / "seeds/s.csv").write_text("id\n1\n2\n")
    (tmp_path / "models/m.sql").write_text("select id + 1 as id from {{ ref('s') }}")
    assert rows_of(tmp_path, capsys, "select sum(id) as n from m") == [{"n": 5}]
