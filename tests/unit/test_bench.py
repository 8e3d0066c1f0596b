"""The benchmarks' own parts: what their sources change, what a ratio is, and what the page says of it. No JVM."""

from __future__ import annotations

import doctest
import importlib
import random
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import duckdb
import psutil
import pytest

from bench import duckdb_peer, shop_data, tpch_data
from bench.dms import Change, SourceDatabase
from bench.program import resident_bytes
from bench.report import ORDER, plot, write_result
from bench.result import Figure, SuiteResult, Timings, from_json, to_json
from tests.faults.shop import ORDERS as ORDERS_TABLE
from tests.faults.shop import Shop
from tests.tpc.tables import TABLES

ORDERS = 3_000
_VALUES = {"bigint": "range", "int": "range % 50", "decimal(12,2)": "range % 1000", "string": "'x' || range % 7"}
_VALUES |= {"date": "date '1995-01-01' + cast(range * 1500 // {rows} as int)"}


def tpch(root: Path) -> SourceDatabase:
    """Tables of TPC-H without its generator: three lines to an order, dates that grow with the key."""
    database = tpch_data.database(root)
    own = {"l_orderkey": "range // 3", "l_linenumber": "range % 3"}
    queries = {}
    for name, table in TABLES["h"].items():
        rows = {"orders": ORDERS, "lineitem": 3 * ORDERS}.get(name, 300)
        columns = (
            f"cast({own.get(column, _VALUES[type_]).format(rows=rows)} as {type_}) as {column}"
            for column, type_ in table.columns.items()
        )
        queries[name] = f"select {', '.join(columns)} from range({rows})"
    database.load(queries)
    return database


def shop(root: Path) -> SourceDatabase:
    database = shop_data.database(root)
    database.load(shop_data.queries(ORDERS))
    return database


def replayed(database: SourceDatabase, table: str) -> list[tuple[object, ...]]:
    """Rows that who follows the files of DMS has in the end."""
    rows: dict[tuple[object, ...], tuple[object, ...]] = {}
    keys = database.primary_keys[table]
    for path in sorted((database.landing / database.name / table).glob("*.parquet"), key=_age):
        read = duckdb.sql(f"select columns(*)::varchar from '{path}'")
        names = [name for name in read.columns if name != "Op"]
        places = [names.index(key) for key in keys]
        for row in read.fetchall():
            op, values = (row[0], row[1:]) if read.columns[0] == "Op" else ("I", row)
            key = tuple(values[place] for place in places)
            if op == "D":
                del rows[key]
            else:
                assert (key in rows) == (op == "U"), (op, key)
                rows[key] = values
    return sorted(rows.values(), key=repr)


def _age(path: Path) -> tuple[bool, str]:
    return not path.stem.startswith("LOAD"), path.stem


def stored(database: SourceDatabase, table: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(database.file)) as db:
        return sorted(db.execute(f"select columns(*)::varchar from {table}").fetchall(), key=repr)


def test_files_of_dms_tell_each_change_of_tpch(tmp_path: Path) -> None:
    database = tpch(tmp_path)
    changes = [Change(share, spread) for share in (0.0001, 0.05, 0.2) for spread in ("newest", "scattered")]
    for number, change in enumerate(changes, 1):
        counts = database.change(tpch_data.statements(change, number), number)
        assert counts["orders"] == pytest.approx(change.share * ORDERS, rel=0.1, abs=3)
        assert counts["lineitem"] == pytest.approx(3 * counts["orders"], rel=0.1, abs=6)
        assert counts["customer"] >= 1
    assert database.rows("orders") == pytest.approx(ORDERS, abs=10)
    for table in ("orders", "lineitem", "customer", "part"):
        assert replayed(database, table) == stored(database, table)


def test_a_newest_change_falls_on_the_newest_orders_but_for_late_ones_and_moves_some_to_another_month(
    tmp_path: Path,
) -> None:
    database = tpch(tmp_path)
    database.change(tpch_data.statements(Change(0.1, "newest"), 1), 1)
    rows = f"'{database.landing}/tpch/orders/00000001.parquet'"
    newest = duckdb.sql(f"select max(o_orderdate) - 305 from '{database.landing}/tpch/orders/LOAD*.parquet'").fetchall()
    (late,) = duckdb.execute(f"select count_if(o_orderdate < ?) / count(*) from {rows}", newest[0]).fetchall()[0]
    assert 0.01 <= late <= 0.1
    before = f"(select * from '{database.landing}/tpch/orders/LOAD*.parquet')"
    moved = duckdb.sql(
        f"select count(*) from {rows} n join {before} o using (o_orderkey) where n.o_orderdate < o.o_orderdate"
    )
    assert moved.fetchall()[0][0] > 0


@pytest.mark.parametrize("moves", [True, False])
def test_files_of_dms_tell_each_change_of_the_shop(tmp_path: Path, moves: bool) -> None:
    database = shop(tmp_path)
    for number, spread in enumerate(("newest", "scattered", "newest"), 1):
        counts = database.change(shop_data.statements(Change(0.02, spread), number, moves=moves), number)
        assert counts == {"orders": 60}
    assert database.rows("orders") == ORDERS
    assert replayed(database, "orders") == stored(database, "orders")
    before, after = (f"'{database.landing}/shop/orders/{name}*.parquet'" for name in ("LOAD", "0"))
    moved = duckdb.sql(f"select count(*) from {before} o join {after} n using (id) where o.ordered_on <> n.ordered_on")
    assert (moved.fetchall()[0][0] > 0) == moves


def result(figures: int) -> SuiteResult:
    timings = Timings()
    for number in range(figures):
        for other in (1.0, 3.0, 2.0):
            timings.add(f"change {number % 3}", f"q{number}", other=other, ours=2.0, strategy="row_based", rows=5)
    facts = {"by change": {"change 0": {"worst": {"q0": 1.0}}}}
    return SuiteResult("tpch", "TPC-H", "rebuild ÷ run", timings.figures(), facts)


def test_duckdb_alone_computes_each_query_over_the_files_that_a_table_has_now(tmp_path: Path) -> None:
    database = tpch(tmp_path)
    texts = duckdb_peer.statements()
    with duckdb.connect(str(database.file)) as db:
        answered = {name: db.execute(text).fetchall() for name, text in texts.items()}
    assert len(answered) == 22 and len(answered["q01"]) > 0
    lake = Shop.of_inputs(tmp_path / "lake")
    lake.commit(ORDERS_TABLE, random.Random(1))
    lake.replace_all(ORDERS_TABLE)
    assert [Path(path).is_file() for path in duckdb_peer.live_files(lake.timeline(ORDERS_TABLE).uri)] == [True]


def test_a_ratio_is_the_median_of_its_repetitions_and_its_spread_their_least_and_largest() -> None:
    assert result(1).figures == (
        Figure("change 0", "q0", (1.0, 3.0, 2.0), (2.0, 2.0, 2.0), {"strategy": "row_based", "rows": 5}),
    )
    assert result(1).figures[0].ratio == 1.0
    assert result(1).figures[0].spread == (0.5, 1.5)


class Process:
    """A process with so many resident bytes; None: it has ended."""

    def __init__(self, rss: int | None, *children: Process) -> None:
        self.rss = rss
        self.below = children

    def children(self, *, recursive: bool) -> list[Process]:
        assert recursive
        return list(self.below)

    def memory_info(self) -> SimpleNamespace:
        if self.rss is None:
            raise psutil.NoSuchProcess(1)
        return SimpleNamespace(rss=self.rss)


def test_the_memory_of_all_children_that_still_run_is_summed() -> None:
    assert resident_bytes(cast(psutil.Process, Process(5, Process(None), Process(7)))) == 12


def test_a_result_comes_back_from_its_json() -> None:
    assert from_json(to_json(result(7), {"scale": 0.1})) == result(7)


@pytest.mark.parametrize("figures", [3, 90])
def test_the_page_is_made_of_all_results_in_the_folder(tmp_path: Path, figures: int) -> None:
    run = {"cores": 2, "scale": 0.1}
    write_result(tmp_path, SuiteResult("kafka", "Kafka", "", (), skipped=("no broker here",)), run)
    write_result(tmp_path, result(figures), run)
    write_result(tmp_path, result(figures), {**run, "scale": 10})
    text = (tmp_path / "README.md").read_text()
    assert "| q0 | **1.00** | 0.50–1.50 | 2.00 ÷ 2.00 | row_based; rows 5 |" in text
    assert text.index("## TPC-H") < text.index("## Kafka")
    assert "Skipped: no broker here" in text
    assert (tmp_path / "tpch.svg").read_text().startswith("<svg")
    assert not (tmp_path / "kafka.svg").exists()
    assert "(tpch.svg)" in text and "(tpch-10.svg)" in text


def test_a_plot_of_many_figures_names_their_groups_and_shows_means() -> None:
    assert "mean" in str(plot(result(90)))
    assert "mean" not in str(plot(result(3)))


def test_each_suite_is_a_module_that_runs() -> None:
    for name in ORDER:
        text = (Path(__file__).parents[2] / "bench" / f"{name}.py").read_text()
        assert "def run(options: Options) -> SuiteResult:" in text


@pytest.mark.parametrize("name", ["dms", "lake", "report", "result", "shop_data", "tpch_data"])
def test_examples_in_docstrings_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"bench.{name}")).failed == 0
