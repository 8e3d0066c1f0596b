"""Each strategy on real tables: after every run the table equals its query, and the work was that of the strategy."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from tests.spark.lake import ORDERS, Lake, Table

D = Decimal


@pytest.fixture
def orders(lake: Lake) -> Table:
    return lake.source("orders", ORDERS, partition="ym")


def order(id: int, buyer: int | None, amount: str | None, city: str | None, ym: str) -> tuple[object, ...]:
    return (id, buyer, D(amount) if amount is not None else None, city, ym)


@pytest.mark.checklist(60)
def test_row_based_follows_inserts_updates_deletes_and_moves_without_leaving_a_row_behind(
    lake: Lake, orders: Table
) -> None:
    lake.model("flat", "select id, upper(city) as city, amount from @orders where amount > 1")
    lake.model(
        "by_city",
        "{{ config(partition_by='city', unique_key='id') }} select id, city, amount * 2 as twice from @orders",
    )
    lake.model("rekeyed", "select id + 100 as other, buyer from @orders")
    orders.upsert(order(1, 7, "5", "x", "m1"), order(2, 7, "0.5", "y", "m1"), order(3, 8, "9", None, "m2"))
    assert lake.run_well() == dict.fromkeys(("flat", "by_city", "rekeyed"), "full_refresh")
    orders.upsert(
        order(1, 7, "5", "y", "m1"), order(2, 9, "2", "y", "m1"), order(3, 8, "9", "", "m3"),
        order(4, None, "3", "ü %", "m1"),
        delete=[order(3, 8, "9", None, "m2")],
    )  # fmt: skip
    assert lake.run_well() == dict.fromkeys(("flat", "by_city", "rekeyed"), "row_based")
    lake.assert_maintained()
    twice = [(1, "y", D("10.00")), (2, "y", D("4.00")), (3, "", D("18.00")), (4, "ü %", D("6.00"))]
    assert [(row[0], row[1], row[2]) for row in lake.rows("by_city")] == twice
    assert len(lake.keys("by_city")) == len(set(lake.keys("by_city"))) == 4
    orders.upsert(order(1, 7, "5", None, "m1"), delete=[order(4, None, "3", "ü %", "m1"), order(2, 9, "2", "y", "m1")])
    lake.run_well()
    lake.assert_maintained()
    assert lake.rows("flat") == [(1, None, D("5.00")), (3, "", D("9.00"))]


@pytest.mark.release
def test_union_all_of_two_changed_inputs(lake: Lake, orders: Table) -> None:
    refunds = lake.source("refunds", "id int, amount decimal(12,2)")
    lake.model(
        "flows",
        "select id, amount from @orders union all select id, -amount as amount from @refunds",
    )
    lake.model("balance", "select id, sum(amount) as total, count(*) as n from {{ ref('flows') }} group by id")
    orders.upsert(order(1, 1, "5", "x", "m1"), order(2, 1, "6", "x", "m1"))
    refunds.upsert((1, D("5.00")))
    lake.run_well()
    orders.upsert(order(2, 1, "7", "x", "m1"))
    refunds.upsert((1, D("1.00")), (2, D("7.00")))
    assert lake.run_well() == {"flows": "row_based", "balance": "aggregate_merge"}
    lake.assert_maintained()
    refunds.upsert(delete=[(1, D("1.00"))])
    lake.run_well()
    lake.assert_maintained()
    assert lake.rows("flows") == [(1, D("5.00")), (2, D("-7.00")), (2, D("7.00"))]
    assert lake.rows("balance") == [(1, D("5.00"), 1), (2, D("0.00"), 2)]


@pytest.mark.checklist(62, 67)
def test_aggregates_follow_retractions_nulls_and_groups_that_die_and_come_back(lake: Lake, orders: Table) -> None:
    lake.model(
        "agg",
        "select city, count(*) as n, count(amount) as c, sum(amount) as total, avg(amount) as mean, min(amount) as lo, "
        "max(amount) as hi, min(ym) as first, avg(buyer) as b from @orders group by city",
    )
    lake.model("all_of_it", "select count(*) as n, sum(amount) as total, max(amount) as hi from @orders")
    lake.model(
        "parted",
        "{{ config(partition_by=['ym', 'city']) }} "
        "select ym, city, min(amount) as lo, max(buyer) as top, count(*) as n from @orders group by ym, city",
    )
    orders.upsert(
        order(1, 1, "5", "x", "m1"), order(2, 2, "9", "x", "m1"), order(3, 3, None, None, "m1"),
        order(4, 4, "-5", "x", "m2"), order(5, None, "1", "dies", "m2"), order(6, 1, "0", None, "m2"),
    )  # fmt: skip
    lake.run_well()
    lake.assert_maintained()
    # x loses its maximum, gains a lower minimum; "dies" dies; the NULL group keeps only NULL amounts.
    orders.upsert(
        order(1, 1, "-9", "x", "m1"), order(7, 1, None, "new", "m3"),
        delete=[order(2, 2, "9", "x", "m1"), order(5, None, "1", "dies", "m2"), order(6, 1, "0", None, "m2")],
    )  # fmt: skip
    assert lake.run_well() == dict.fromkeys(("agg", "all_of_it", "parted"), "aggregate_merge")
    lake.assert_maintained()
    by_city = {row[0]: row for row in lake.rows("agg")}
    assert set(by_city) == {None, "x", "new"}
    assert by_city[None][1:7] == (1, 0, None, None, None, None)
    assert by_city["x"][1:4] == (2, 2, D("-14.00"))
    assert by_city["x"][5:7] == (D("-9.00"), D("-5.00"))
    # "dies" comes back; everything of "x" goes.
    orders.upsert(
        order(5, 5, "2.25", "dies", "m2"), order(3, 3, "4", None, "m1"),
        delete=[order(1, 1, "-9", "x", "m1"), order(4, 4, "-5", "x", "m2")],
    )  # fmt: skip
    lake.run_well()
    lake.assert_maintained()
    assert {row[0]: row[1] for row in lake.rows("agg")} == {None: 1, "dies": 1, "new": 1}
    everything = [order(3, 3, "4", None, "m1"), order(5, 5, "2.25", "dies", "m2"), order(7, 1, None, "new", "m3")]
    orders.upsert(delete=everything)
    lake.run_well()
    lake.assert_maintained()
    assert lake.rows("agg") == lake.rows("parted") == []
    assert lake.rows("all_of_it") == [(0, None, None)]
    orders.upsert(order(8, 8, "8", "x", "m1"))
    lake.run_well()
    lake.assert_maintained()
    assert lake.rows("all_of_it") == [(1, D("8.00"), D("8.00"))]


@pytest.mark.release
def test_sums_of_doubles_are_merged_within_a_tolerance(lake: Lake) -> None:
    measured = lake.source("measured", "id int, g string, x double")
    sql = "select g, sum(x) as s, avg(x) as a, count(*) as n, max(soundex(g)) as sounds from @measured group by g"
    lake.model("totals", "{{ config(floating='1e-9') }} " + sql)
    lake.model("local", "{{ config(floating='1e-9') }} " + sql.replace("max(soundex(g))", "max(g)"))
    many = [(n, "p", n / 7) for n in range(50)]
    measured.upsert(*many, (100, "q", 1e16), (101, "q", 1.0), (102, "r", float("nan")), (103, "r", 2.0))
    lake.run_well()
    lake.assert_maintained()
    for changed, gone in (
        ([(50, "p", 0.1), (3, "p", -0.0)], [(100, "q", 1e16)]),
        ([(104, "r", float("inf"))], [(102, "r", 0.0), (50, "p", 0.1)]),
        ([(105, "r", 1e300), (106, "q", None)], [(104, "r", 0.0), (101, "q", 1.0)]),
    ):
        measured.upsert(*changed, delete=gone)
        assert set(lake.run_well().values()) == {"aggregate_merge"}
        lake.assert_maintained()
    for name in ("totals", "local"):
        by_group = {row[0]: row[1:4] for row in lake.rows(name)}
        assert by_group["q"] == (None, None, 1)
        assert by_group["r"] == (1e300, 5e299, 2)


@pytest.mark.release
def test_windows_over_all_rows_go_on_from_the_table_and_a_variance_from_its_sums(lake: Lake, orders: Table) -> None:
    lake.model(
        "placed", "select id, rank() over (order by amount desc) as place, sum(amount) over () as s from @orders"
    )
    lake.model("on_spark", "select soundex(city) as sounds, count(*) over (order by amount, id) as n from @orders")
    lake.model("spread", "select city, stddev(amount) as s, count(*) as n from @orders group by city")
    lake.model("page", "select id from @orders order by amount, id limit 2 offset 1")
    orders.upsert(order(1, 1, "1", "x", "m1"), order(2, 1, "2", "y", "m1"), order(3, 1, "3", "x", "m1"))
    lake.run_well()
    lake.assert_maintained()
    for changed in ([order(4, 1, "2", "x", "m1")], [order(1, 1, "9", "y", "m1"), order(2, 1, None, "y", "m1")]):
        orders.upsert(*changed)
        strategies = lake.run_well()
        assert strategies == {
            **dict.fromkeys(("placed", "on_spark", "page"), "group_recompute"),
            "spread": "aggregate_merge",
        }
        lake.assert_maintained()
    assert lake.rows("placed") == [(1, 1, D("14.00")), (2, 4, D("14.00")), (3, 2, D("14.00")), (4, 3, D("14.00"))]
    assert lake.rows("page") == [(3,), (4,)]


@pytest.mark.release
def test_first_rows_are_kept_in_their_order_and_replaced_from_the_query(lake: Lake, orders: Table) -> None:
    lake.model("cheapest", "select id, city from @orders order by amount, city desc limit 3")
    by_city = "from @orders group by city order by sum(amount) desc, city nulls last limit 2"
    lake.model("dearest", f"select city, sum(amount) as total {by_city}")
    lake.model("on_spark", f"select soundex(city) as sounds, count(*) as n {by_city}")
    orders.upsert(
        order(1, 1, None, "x", "m1"), order(2, 1, "1", "y", "m1"), order(3, 1, "2", "Z", "m1"),
        order(4, 1, "2", "z", "m1"), order(5, 1, "5", None, "m1"), order(6, 1, "7", "x", "m2"),
    )  # fmt: skip
    lake.run_well()
    lake.assert_maintained()
    assert lake.rows("cheapest") == [(1, "x"), (2, "y"), (4, "z")]
    models = dict.fromkeys(("cheapest", "dearest", "on_spark"), "group_recompute")
    orders.upsert(order(7, 1, "1", "zz", "m3"), order(5, 1, "9", None, "m1"))
    assert lake.run_well() == models
    lake.assert_maintained()
    assert lake.rows("cheapest") == [(1, "x"), (2, "y"), (7, "zz")]
    assert lake.rows("dearest") == [("x", D("7.00")), (None, D("9.00"))]
    assert not [name for name, result in lake.results.items() if "LIM003" in {r.rule for r in result.reasons}]
    assert {name: result.engine for name, result in lake.results.items()} == {
        "cheapest": "duckdb", "dearest": "duckdb", "on_spark": "spark",
    }  # fmt: skip
    orders.upsert(delete=[order(1, 1, None, "x", "m1"), order(5, 1, "9", None, "m1")])
    assert lake.run_well() == models
    lake.assert_maintained()
    assert lake.rows("cheapest") == [(2, "y"), (4, "z"), (7, "zz")]
    assert {name for name, result in lake.results.items() if "LIM003" in {r.rule for r in result.reasons}} == set(
        models
    )


@pytest.mark.release
def test_wide_decimals_and_overflow_stay_equal_to_the_query(lake: Lake) -> None:
    big = lake.source("big", "id int, g string, d decimal(38,10), n bigint")
    lake.model("sums", "select g, sum(d) as d, sum(n) as n, avg(n) as mean, max(d) as hi from @big group by g")
    top = D("9" * 28 + "." + "9" * 10)
    big.write((1, "a", top, 2**62), (2, "b", D("0.0000000001"), -1), (3, "b", D("1E+27"), 3))
    lake.run_well()
    lake.assert_maintained()
    big.write((4, "a", top, 5), (2, "b", D("-0.0000000001"), None))  # group a overflows
    lake.run_well()
    lake.assert_maintained()
    almost = D("999999999999999999999999999.9999999999")
    assert {row[0]: row[1] for row in lake.rows("sums")} == {"a": None, "b": almost}
    big.upsert(delete=[(4, "a", top, 5)])  # and is back in range
    assert lake.run_well() == {"sums": "aggregate_merge"}
    lake.assert_maintained()
    assert lake.rows("sums")[0][1] == top


def test_averages_of_decimals_have_the_digits_of_doubles_as_spark_has_them(lake: Lake) -> None:
    sales = lake.source("sales", "id int, g string, d decimal(10,2), e decimal(11,9), h decimal(11,0)")
    lake.model("means", "select g, avg(d) as d, avg(e) as e, avg(h) as h, sum(d) as s from @sales group by g")

    def sale(number: int, cents: int) -> tuple[object, ...]:
        return number, f"g{number // 160}", D(cents) / 100, D(cents) / 10**9, D(cents)

    # Exactly the first mean is 3352.0556875; by doubles it is a bit less.
    totals = [53632891, 1_000_007, 99_999_999, 4_848_488_888]
    sales.write(
        *(sale(160 * g + n, total // 160 + (n < total % 160)) for g, total in enumerate(totals) for n in range(160))
    )
    lake.run_well()
    lake.assert_maintained()
    assert lake.rows("means")[0][1] == D("3352.055687")
    sales.upsert(*(sale(160 * g, 1_234_500 + g) for g in range(4)))
    assert lake.run_well() == {"means": "aggregate_merge"}
    lake.assert_maintained()


@pytest.mark.checklist(63)
def test_a_partition_rescan_empties_moves_and_knows_null(lake: Lake, orders: Table) -> None:
    lake.model(
        "buyers",
        "{{ config(partition_by='ym') }} select ym, count(distinct buyer) as buyers from {{ ref('flat') }} group by ym",
    )
    lake.model(
        "ranked",
        "{{ config(partition_by='city') }} "
        "select id, city, row_number() over (partition by city order by amount) as place from {{ ref('flat') }}",
    )
    lake.model("flat", "select id, buyer, amount, city, nullif(ym, 'none') as ym from @orders")
    orders.upsert(
        order(1, 1, "5", "x", "m1"), order(2, 1, "5", "x", "m1"), order(3, 2, "1", "y", "m2"),
        order(4, 3, "1", None, "none"), order(5, 9, "1", "z", "m9"),
    )  # fmt: skip
    lake.run_well()
    lake.assert_maintained()
    orders.upsert(  # 3 leaves m2 empty, 1 moves from m1 to the NULL month, 4 changes within it
        order(1, 1, "5", "y", "none"), order(4, 1, "1", None, "none"),
        delete=[order(3, 2, "1", "y", "m2"), order(1, 1, "5", "x", "m1")],
    )  # fmt: skip
    untouched = {file.path for file in lake.timeline("buyers").slices(lake.timeline("buyers").frontier or "").values()}
    assert lake.run_well() == {"flat": "row_based", "buyers": "partition_rescan", "ranked": "partition_rescan"}
    lake.assert_maintained()
    assert lake.rows("buyers") == [("m1", 1), ("m9", 1), (None, 1)]
    after = {file.path for file in lake.timeline("buyers").slices(lake.timeline("buyers").frontier or "").values()}
    # Only rows that differ are written: m1 and the NULL month have as many buyers as before.
    assert len(untouched & after) == 3
    orders.upsert(delete=[order(1, 1, "5", "y", "none"), order(4, 1, "1", None, "none"), order(2, 1, "5", "x", "m1"),
                          order(5, 9, "1", "z", "m9")])  # fmt: skip
    lake.run_well()
    lake.assert_maintained()
    assert lake.rows("buyers") == lake.rows("ranked") == []


@pytest.mark.checklist(68)
def test_nothing_changed_means_no_commit_and_no_spark(lake: Lake, orders: Table) -> None:
    lake.model("flat", "select id, amount from @orders")
    lake.model("agg", "select count(*) as n from {{ ref('flat') }}")
    orders.upsert(order(1, 1, "5", "x", "m1"))
    lake.run_well()
    commits = lake.commits("flat"), lake.commits("agg")

    def refuse() -> SparkSession:
        raise AssertionError("Spark was started")

    lake.start = refuse
    results = lake.run()
    assert {result.status for result in results.values()} == {"no-op"}
    assert (lake.commits("flat"), lake.commits("agg")) == commits


@pytest.mark.release
def test_an_input_rewritten_with_the_same_content_is_read_once(lake: Lake, orders: Table) -> None:
    lake.model("flat", "select id, amount from @orders")
    lake.model("agg", "select city, count(*) as n from @orders group by city")
    lake.model(
        "months", "{{ config(partition_by='ym') }} select ym, count(distinct city) as n from @orders group by ym"
    )
    orders.upsert(order(1, 1, "5", "x", "m1"), order(2, 1, None, None, "m1"))
    lake.run_well()
    orders.upsert(order(1, 1, "5", "x", "m1"), order(2, 99, None, None, "m1"))  # the buyer is read by no model
    lake.run_well()
    assert sum(result.rows for result in lake.results.values()) == 0
    assert set(lake.run_well().values()) == {"no_op"}
    lake.assert_maintained()


@pytest.mark.release
def test_many_pending_commits_without_effect_are_carried_by_an_empty_one(lake: Lake, orders: Table) -> None:
    lake.model("flat", "select id, amount from @orders")
    months = "select ym, count(distinct id) as n from {{ ref('same') }} group by ym"
    lake.model("months", "{{ config(partition_by='ym') }} " + months)
    lake.model("same", "{{ config(materialized='view') }} select id, ym from @orders")
    orders.upsert(order(1, 1, "5", "x", "m1"))
    lake.run_well()
    rows, before = lake.rows("flat"), lake.commits("flat")
    for buyer in range(10):
        end = orders.upsert(order(1, buyer, "5", "x", "m1"))
    lake.run_well()
    for name in ("flat", "months"):
        assert lake.commits(name) == before + 1
        record = lake.plan(name).target.record
        assert record is not None
        assert list(record.frontier.values()) == [end]
    assert lake.rows("flat") == rows
    assert set(lake.run_well().values()) - {"None"} == {"no_op"}
    orders.upsert(order(1, 1, "6", "x", "m1"))
    lake.run_well()
    lake.assert_maintained("flat", "months")


@pytest.mark.release
def test_a_chain_and_a_diamond_agree_in_one_run(lake: Lake, orders: Table) -> None:
    lake.model("base", "select id, buyer, amount, city from @orders")
    lake.model("left_arm", "select city, sum(amount) as total from {{ ref('base') }} group by city")
    lake.model("right_arm", "select city, count(*) as n from {{ ref('base') }} group by city")
    counted = "select city, cast(n as decimal(22,2)) as v from {{ ref('right_arm') }}"
    lake.model("tip", "select city, total as v from {{ ref('left_arm') }} union all " + counted)
    lake.model("end", "select city, sum(v) as v from {{ ref('tip') }} group by city")
    orders.upsert(*[order(i, i, f"{i}.25", f"c{i % 3}", "m1") for i in range(9)])
    lake.run_well(threads=4)
    gone = order(3, 3, "3.25", "c0", "m1")
    orders.upsert(order(1, 1, "100", "c2", "m1"), order(20, 1, "1", None, "m1"), delete=[gone])
    strategies = lake.run_well(threads=4)
    assert set(strategies.values()) == {"row_based", "aggregate_merge"}
    lake.assert_maintained()
    assert lake.run_well(threads=4) == dict.fromkeys(strategies, "no_op")


def test_a_new_order_with_an_old_modify_time_and_a_deleted_one_are_both_right(lake: Lake) -> None:
    """A watermark on the newest `modify_time` seen would miss the first and never see the second."""
    table = lake.source("late", "id int, buyer int, amount decimal(12,2), modify_time timestamp")
    lake.model("spent", "select buyer, sum(amount) as spent, max(modify_time) as last from @late group by buyer")
    lake.model("copied", "select id, amount, modify_time from @late")
    new, old = datetime(2024, 6, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)
    table.upsert((1, 1, D("10.00"), new), (2, 1, D("20.00"), new), (3, 2, D("5.00"), old))
    lake.run_well()
    table.upsert((4, 1, D("7.00"), old), delete=[(2, 1, D("20.00"), new), (3, 2, D("5.00"), old)])
    assert lake.run_well() == {"spent": "aggregate_merge", "copied": "row_based"}
    lake.assert_maintained()
    assert [row[:2] for row in lake.rows("spent")] == [(1, D("17.00"))]
    assert [row[0] for row in lake.rows("copied")] == [1, 4]


@pytest.mark.release
def test_null_and_repeated_unique_keys_fail_and_leave_the_table_as_it_was(lake: Lake, orders: Table) -> None:
    lake.model("keyed", "{{ config(unique_key='buyer') }} select buyer, amount from @orders")
    orders.upsert(order(1, 1, "5", "x", "m1"), order(2, 2, "5", "x", "m1"), order(3, 2, "6", "x", "m1"))
    assert "repeats" in lake.run()["keyed"].message
    assert not lake.timeline("keyed").exists
    orders.upsert(order(3, None, "6", "x", "m1"))
    assert "NULL in unique_key (buyer)" in lake.run()["keyed"].message
    orders.upsert(order(3, 3, "6", "x", "m1"))
    lake.run_well()
    before = lake.rows("keyed"), lake.commits("keyed")
    orders.upsert(order(4, 1, "9", "x", "m1"))  # a second row of buyer 1, who is not part of the change
    failed = lake.run()["keyed"]
    assert failed.status == "error"
    assert "repeats" in failed.message
    orders.upsert(order(4, None, "9", "x", "m1"))
    assert "NULL in unique_key" in lake.run()["keyed"].message
    assert (lake.rows("keyed"), lake.commits("keyed")) == before
    orders.upsert(order(4, 2, "9", "x", "m1"), order(2, 4, "5", "x", "m1"))  # two rows exchange a key
    assert lake.run_well() == {"keyed": "row_based"}
    lake.assert_maintained()


@pytest.mark.release
def test_a_unique_key_that_repeats_across_rescanned_partitions_fails(lake: Lake, orders: Table) -> None:
    lake.model(
        "per_month",
        "{{ config(partition_by='ym', unique_key='top') }} select ym, max(buyer) as top, count(distinct id) as n "
        "from @orders group by ym",
    )
    orders.upsert(order(1, 1, "5", "x", "m1"), order(2, 2, "5", "x", "m2"))
    lake.run_well()
    orders.upsert(order(3, 1, "5", "x", "m3"))
    failed = lake.run()["per_month"]
    assert failed.status == "error"
    assert "repeats" in failed.message
    assert len(lake.rows("per_month")) == 2


@pytest.mark.release
def test_a_zero_that_changes_its_sign_is_a_change_of_its_text(lake: Lake) -> None:
    readings = lake.source("readings", "id int, d double, f float")
    lake.model("texts", "select id, cast(d as string) as d, concat(f, '') as f from @readings")
    lake.model("most", "select f = 0 as is_zero, max(cast(d as string)) as d from @readings group by f = 0")
    readings.upsert((1, 0.0, -0.0), (2, -0.0, 0.0), (3, 1.5, 1.5))
    lake.run_well()
    readings.upsert((1, -0.0, 0.0), (2, 0.0, -0.0), (3, -0.0, None))
    assert lake.run_well() == {"texts": "row_based", "most": "aggregate_merge"}
    assert lake.rows("texts") == [(1, "-0.0", "0.0"), (2, "0.0", "-0.0"), (3, "-0.0", None)]
    lake.assert_maintained()
