"""A query, its settings or its inputs change shape: the table follows, readers see the old one or the new."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from sqlmesh_like.hudi.recovery import table_swap
from sqlmesh_like.hudi.storage import Folder
from tests.levels import IS_RELEASE, parametrize
from tests.spark.lake import ORDERS, Lake, Table

D = Decimal
FLAT = "select id, amount, city from @orders"


@pytest.fixture
def orders(lake: Lake) -> Table:
    table = lake.source("orders", ORDERS, partition="ym")
    table.upsert((1, 1, D("5.00"), "x", "m1"), (2, 2, D("6.00"), None, "m2"))
    return table


CHANGES = {
    "column dropped": ("select id, city {f}", "id int, city string", [(1, "x"), (2, None)]),
    "types changed": ("select cast(id as string) as id, cast(amount as int) as amount, city {f}",
                      "id string, amount int, city string", [("1", 5, "x"), ("2", 6, None)]),
    "column renamed and added": ("select id, amount as money, city, buyer {f}",
                                 "id int, money decimal(12,2), city string, buyer int",
                                 [(1, D("5.00"), "x", 1), (2, D("6.00"), None, 2)]),
    "partition changed": ("{{ config(partition_by='city') }} select id, amount, city {f}",
                          "id int, amount decimal(12,2), city string", [(1, D("5.00"), "x"), (2, D("6.00"), None)]),
    "case changed": ("select ID, Amount as AMOUNT, city {f}", "ID int, AMOUNT decimal(12,2), city string",
                     [(1, D("5.00"), "x"), (2, D("6.00"), None)]),
    "another strategy": ("select city, count(*) as n {f} group by city", "city string, n bigint",
                         [("x", 1), (None, 1)]),
}  # fmt: skip
FEW = ("types changed", "another strategy")


@parametrize(
    ("changed", "columns", "rows"),
    suite=[pytest.param(*CHANGES[name], id=name) for name in FEW],
    release=[pytest.param(*CHANGES[name], id=name) for name in CHANGES if name not in FEW],
)
def test_a_changed_query_is_rebuilt_with_its_new_schema(
    lake: Lake, orders: Table, changed: str, columns: str, rows: list[tuple[object, ...]]
) -> None:
    lake.model("m", FLAT)
    lake.run_well()
    lake.model("m", changed.replace("{f}", "from @orders"))
    assert lake.run_well() == {"m": "full_refresh"}
    assert "HIS002" in lake.rules("m")
    stored = lake.hudi("m")
    assert ", ".join(f"{name} {type_}" for name, type_ in stored.dtypes) == columns
    assert lake.rows("m") == rows
    assert sorted(path.name for path in Path(lake.uri("m")).parent.iterdir()) == ["m"]
    orders.upsert((3, 3, D("7.00"), "y", "m1"), delete=[(2, 2, D("6.00"), None, "m2")])
    assert lake.run_well()["m"] in ("row_based", "aggregate_merge")
    lake.assert_maintained()
    assert len(lake.rows("m")) == 2
    assert lake.run_well() == {"m": "no_op"}


@pytest.mark.release
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_an_edit_on_spark_writes_the_rows_that_differ(lake: Lake, orders: Table, kind: str) -> None:
    """Only Spark shows that its writer compares and derives as this process does (`tests/unit/app`)."""
    lake.use_engine("spark")
    orders.upsert(*[(n, n, D(n), "x", "m1") for n in range(3, 12)])
    head = f"{{{{ config(table_type='{kind}') }}}} "
    lake.model("m", head + FLAT)
    lake.model("child", "select city, count(*) as n, sum(amount) as total from {{ ref('m') }} group by city")
    lake.run_well()
    edits = [
        (f"{FLAT} where amount > 3", "recompute_merge", "EDT002"),
        (f"{FLAT} where amount > 2", "row_based", "EDT003"),
        (f"{FLAT} where amount > 2 and id > 9", "full_refresh", "EDT002"),  # most rows leave: all are replaced
        ("select city, id as key, amount from @orders where amount > 2 and id > 9", "full_refresh", "EDT002"),
        (f"{FLAT} where id > 9 and amount > 2", "full_refresh", "EDT002"),
    ]
    for sql, strategy, rule in edits if IS_RELEASE else edits[:2]:
        lake.model("m", head + sql)
        assert lake.run_well()["m"] == strategy, sql
        assert rule in lake.rules("m"), sql
        lake.assert_maintained()
    orders.upsert((20, 1, D("20.00"), "y", "m1"), delete=[(11, 11, D("11.00"), "x", "m1")])
    assert lake.run_well() == {"m": "row_based", "child": "aggregate_merge"}
    lake.assert_maintained()


@pytest.mark.release
def test_children_of_a_swapped_table_are_rebuilt_from_it(lake: Lake, orders: Table) -> None:
    lake.model("m", FLAT)
    lake.model("child", "select count(*) as n, sum(amount) as total from {{ ref('m') }}")
    lake.run_well()
    lake.model("m", FLAT.replace("amount", "cast(amount as decimal(20,4)) as amount") + " where id > 1")
    assert lake.run_well() == {"m": "full_refresh", "child": "full_refresh"}
    lake.assert_maintained()
    assert lake.rows("child") == [(1, D("6.0000"))]


class Crash(BaseException):
    """Stands for the end of the process: no handler of errors may catch it."""


@parametrize("moment", suite=["between"], release=["first", "last"])
def test_a_swap_cut_short_is_recovered_by_the_next_run(
    lake: Lake, orders: Table, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    lake.model("m", FLAT)
    lake.run_well()
    lake.model("m", FLAT.replace("amount", "cast(amount as string) as amount"))
    real_move, real_remove, moves = table_swap._move, table_swap.remove, []

    def move(source: str, target: str) -> None:
        if (moment == "first" and not moves) or (moment == "between" and moves):
            raise Crash
        moves.append(source)
        real_move(source, target)

    def remove(uri: str) -> None:
        if moment == "last" and moves:
            raise Crash
        real_remove(uri)

    with monkeypatch.context() as patched:
        patched.setattr(table_swap, "_move", move)
        patched.setattr(table_swap, "remove", remove)
        with pytest.raises(Crash):
            lake.run()
    orders.upsert((3, 3, D("7.00"), "y", "m1"))
    lake.run_well()
    lake.assert_maintained()
    assert lake.rows("m") == [(1, "5.00", "x"), (2, "6.00", None), (3, "7.00", "y")]
    lake.model("m", FLAT)
    lake.run_well()
    assert sorted(path.name for path in Path(lake.uri("m")).parent.iterdir()) == ["m"]
    assert lake.rows("m") == [(1, D("5.00"), "x"), (2, D("6.00"), None), (3, D("7.00"), "y")]


def test_a_swap_on_an_object_store_is_refused_and_changes_nothing(
    lake: Lake, orders: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.model("m", FLAT)
    lake.run_well()
    before = lake.rows("m")
    lake.model("m", FLAT.replace("amount", "cast(amount as string) as amount"))
    monkeypatch.setattr(Folder, "is_local", property(lambda self: False))
    failed = lake.run()["m"]
    assert failed.status == "error"
    assert "cannot be done in place" in failed.message
    assert lake.rows("m") == before


@pytest.mark.checklist(28)
def test_a_new_upstream_column_rebuilds_only_what_reads_it(lake: Lake) -> None:
    narrow = lake.source("wide", "id int, n int")
    narrow.upsert((1, 1), (2, 2))
    lake.model("named", "select id, n from @wide")
    lake.model("counted", "select n, count(*) as c from @wide group by n")
    lake.model("starred", "select * from @wide")
    lake.run_well()
    wide = lake.source("wide", "id int, n int, extra string")
    wide.upsert((2, 2, "e"), (3, 3, "f"))
    strategies = lake.run_well()
    assert strategies == {"named": "row_based", "counted": "aggregate_merge", "starred": "full_refresh"}
    lake.assert_maintained()
    assert lake.rows("starred") == [(1, 1, None), (2, 2, "e"), (3, 3, "f")]
    wide.upsert((1, 1, "g"))
    assert lake.run_well()["starred"] == "row_based"
    assert sum(lake.results[name].rows for name in ("named", "counted")) == 0
    lake.assert_maintained()


def test_an_input_that_widens_keeps_its_consumers_right(lake: Lake) -> None:
    narrow = lake.source("wide", "id int, n int, d decimal(10,2), p string", partition="p")
    narrow.upsert((1, 1, D("1.50"), "x"), (2, 2**31 - 1, None, "y"))
    lake.model("flat", "select id, n, d from @wide")
    lake.model("sums", "select p, sum(n) as n, max(d) as d, min(n) as lo from @wide group by p")
    lake.run_well()
    wide = lake.source("wide", "id int, n bigint, d decimal(14,2), p string", partition="p")
    wide.upsert((3, 2**40, D("999999999999.99"), "x"))
    lake.run_well()
    lake.assert_maintained()
    assert dict(lake.hudi("flat").dtypes) == {"id": "int", "n": "bigint", "d": "decimal(14,2)"}
    assert lake.rows("flat")[1] == (2, 2**31 - 1, None)
    wide.upsert((1, 7, D("2.00"), "x"), delete=[(2, 2, None, "y")])
    assert lake.run_well() == {"flat": "row_based", "sums": "aggregate_merge"}
    lake.assert_maintained()
