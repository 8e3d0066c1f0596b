"""Tables with frozen partitions on one machine: other rows are the query's, those of frozen partitions stay."""

from __future__ import annotations

import random
import shutil
from typing import Any

import pytest

from sqlmesh_like import Project
from sqlmesh_like.cli.app import main
from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.run.result import ModelResult
from tests.faults.shop import ORDERS, Row, Rows, Shop
from tests.levels import count

DAILY, PER_DAY, NEWEST, TOTAL = (f"model.shop.{name}" for name in ("daily", "per_day", "newest", "total"))
QUERIES = {
    DAILY: "select day, id, amount from {{ ref('orders') }} where amount > 10",
    PER_DAY: "select day, count(*) as n, sum(amount) as total, max(amount) as top"
    " from {{ ref('orders') }} group by day",
    NEWEST: "select max(day) as day, customer, count(distinct id) as n from {{ ref('orders') }} group by customer",
}
"""Programs without stored rows, by keys that determine the partition, and by keys that do not."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A lake whose tables are up to date, with partitions before 2024-01-10 frozen from now on."""
    shop = Shop.changed(tmp_path_factory.mktemp("built"), random.Random(1), 8)
    for path in (shop.root / "models").iterdir():
        path.unlink()
    freeze(shop, "2024-01-10")
    (shop.root / "models/total.sql").write_text("select sum(n) as n, sum(total) as total from {{ ref('per_day') }}\n")
    shutil.rmtree(shop.root / "warehouse/dws/daily")
    run(shop)
    return shop


def freeze(shop: Shop, before: str | None, table_type: str = "cow", **queries: str) -> None:
    for unique_id, query in QUERIES.items():
        name = unique_id.rpartition(".")[2]
        frozen = "" if before is None else f",\n  frozen_before='{before}'"
        text = f"{{{{ config(partition_by='day', table_type='{table_type}'{frozen}) }}}}\n{queries.get(name, query)}\n"
        (shop.root / f"models/{name}.sql").write_text(text)


def run(shop: Shop, full_refresh: bool = False) -> dict[str, ModelResult]:
    with Project.load(shop.root) as project:
        results = project.run(full_refresh=full_refresh).results
    assert {result.status for result in results} <= {"success", "no-op"}, [result.message for result in results]
    return {result.node.unique_id: result for result in results if isinstance(result, ModelResult)}


def read(shop: Shop, name: str) -> Rows:
    """Rows of a table whose files have different columns."""
    with Project.load(shop.root) as project:
        rows = project.sql(f"select * from dws.{name}").to_pylist()
    return sorted((str(day), *more) for day, *more in (row.values() for row in rows))


def rules(result: ModelResult) -> dict[str, str]:
    return {reason.rule: reason.message for reason in result.reasons}


def expected(unique_id: str, orders: Rows) -> list[tuple[Any, ...]]:
    """Rows of a query, over all orders."""
    if unique_id == DAILY:
        return sorted((day, key, amount) for key, _, amount, day in orders if amount > 10)
    groups: dict[Any, Rows] = {}
    for row in orders:
        groups.setdefault(row[3] if unique_id == PER_DAY else row[1], []).append(row)
    if unique_id == PER_DAY:
        amounts = {day: [row[2] for row in rows] for day, rows in groups.items()}
        return sorted((day, len(each), sum(each), max(each)) for day, each in amounts.items())
    return sorted((max(row[3] for row in rows), customer, len(rows)) for customer, rows in groups.items())


def split(rows: Rows, before: str) -> tuple[list[Row], list[Row]]:
    return [row for row in rows if row[0] < before], [row for row in rows if row[0] >= before]


def orders(shop: Shop) -> Rows:
    return shop.recorded(ORDERS)


def test_live_rows_follow_every_change_and_frozen_rows_none(shop: Shop) -> None:
    dice, said = random.Random(7), 0
    for number in range(count(4, 60, 1000)):
        before = f"2024-01-{10 + number // 2 if number < 30 else 28:02d}"
        freeze(shop, before)
        kept = {unique_id: split(shop.stored(unique_id), before)[0] for unique_id in QUERIES}
        queried = {unique_id: split(expected(unique_id, orders(shop)), before)[0] for unique_id in QUERIES}
        shop.commit(ORDERS, dice)
        done = run(shop, full_refresh=number % 4 == 3)
        for unique_id in QUERIES:
            frozen, live = split(shop.stored(unique_id), before)
            now, wanted = split(expected(unique_id, orders(shop)), before)
            assert frozen == kept[unique_id], f"a frozen row of {unique_id} has changed, before {before}"
            assert live == wanted, f"{unique_id}, before {before}"
            if now not in (queried[unique_id], frozen):
                assert "FRZ003" in rules(done[unique_id]), f"{unique_id}: rows were left out silently"
                said += 1
        [(n, total)] = shop.stored(TOTAL)
        assert (n, total) == tuple(sum(column) for column in list(zip(*shop.stored(PER_DAY), strict=True))[1:3])
        assert {done[unique_id].strategy for unique_id in QUERIES} != {"full_refresh"}
    assert said
    with Project.load(shop.root) as project:
        compared = project.verify(select=["daily", "per_day", "newest"], sample=20)
    assert [each.status for each in compared] == ["pass"] * 3
    assert {each.strategy for each in run(shop).values()} == {"no_op"}, "what was left out is not read again"


def test_each_program_is_the_cheapest_that_is_sound(shop: Shop) -> None:
    shop.commit(ORDERS, random.Random(3))
    done = run(shop)
    assert [done[unique_id].strategy for unique_id in QUERIES] == ["row_based", "aggregate_merge", "recompute_merge"]
    assert "FRZ002" in rules(done[NEWEST]) and "FRZ001" in rules(done[DAILY])


def test_a_row_that_moves_out_of_a_frozen_partition_is_in_both(shop: Shop) -> None:
    old = next(row for row in orders(shop) if row[3] < "2024-01-10" and row[2] > 10)
    move(shop, (*old[:3], "2024-01-25"))
    done = run(shop)
    assert {(old[3], old[0], old[2]), ("2024-01-25", old[0], old[2])} <= set(shop.stored(DAILY))
    assert rules(done[DAILY])["FRZ003"].endswith("1 that are gone were left out")
    (shop.root / "models/below.sql").write_text("select id, day, amount + 1 as more from {{ ref('daily') }}\n")
    run(shop)
    move(shop, (*old[:2], 49, "2024-01-25"))
    run(shop)
    below = shop.stored("model.shop.below")
    assert below == sorted((key, day, amount + 1) for day, key, amount in shop.stored(DAILY)), "keys are unique below"


def move(shop: Shop, row: Row) -> None:
    """One commit of one order."""

    class Loaded(random.Random):
        """Dice that show this row, over and over."""

        def __init__(self) -> None:
            self.shown: list[int] = []

        def random(self) -> float:
            return 1.0

        def randint(self, low: int, high: int) -> int:
            known = {12: row[0], 4: row[1], 50: row[2], 28: int(row[3][-2:])}
            assert low <= known[high] <= high
            return int(known[high])

    shop.commit(ORDERS, Loaded())


def test_an_edit_holds_from_the_boundary_on(shop: Shop) -> None:
    kept = split(shop.stored(DAILY), "2024-01-10")[0]
    assert kept
    freeze(shop, "2024-01-10", daily="select day, id, amount * 2 as amount from {{ ref('orders') }} where amount > 5")
    done = run(shop)
    frozen, live = split(shop.stored(DAILY), "2024-01-10")
    assert frozen == kept
    assert live == sorted((d, key, a * 2) for key, _, a, d in orders(shop) if a > 5 and d >= "2024-01-10")
    assert done[DAILY].strategy == "recompute_merge" and {"HIS002", "FRZ001"} <= rules(done[DAILY]).keys()
    wider = "select day, id, amount, customer from {{ ref('orders') }} where amount > 5"
    freeze(shop, "2024-01-10", daily=wider)
    done = run(shop)
    assert "its new columns are NULL" in rules(done[DAILY])["FRZ001"]
    frozen, live = split(read(shop, "daily"), "2024-01-10")
    assert [row[:3] for row in frozen] == kept and {row[3] for row in frozen} == {None}
    assert live == sorted((d, key, a, c) for key, c, a, d in orders(shop) if a > 5 and d >= "2024-01-10")
    shop.commit(ORDERS, random.Random(5))
    assert run(shop)[DAILY].strategy == "row_based"
    assert [row[:3] for row in split(read(shop, "daily"), "2024-01-10")[0]] == kept


def test_a_full_refresh_keeps_frozen_rows_unless_they_are_thawed(shop: Shop) -> None:
    kept = split(shop.stored(PER_DAY), "2024-01-10")[0]
    old = next(row for row in orders(shop) if row[3] < "2024-01-10")
    move(shop, (*old[:3], "2024-01-25"))
    run(shop, full_refresh=True)
    assert split(shop.stored(PER_DAY), "2024-01-10")[0] == kept
    freeze(shop, None)
    assert main(["run", "--full-refresh", "-s", "per_day"]) == 0
    assert shop.stored(PER_DAY) == expected(PER_DAY, orders(shop)) != kept


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("'2024-01-10'", "'2024-01-05'"), "models/daily.sql:2:3: dws.daily keeps rows of frozen partitions: partitions"
         " before 2024-01-10 are frozen, and frozen_before is 2024-01-05 now"),
        ((",\n  frozen_before='2024-01-10'", ""), "models/daily.sql:1:1: dws.daily keeps rows of frozen partitions:"
         " partitions before 2024-01-10 are frozen, and frozen_before is not set any more"),
        (("day, id, amount", "day, id"), "models/daily.sql:2:3: dws.daily keeps rows of frozen partitions: its stored"
         " rows cannot be read with the query's columns: amount is gone"),
        (("amount from", "cast(amount as string) as amount from"), "amount was int and is string"),
        (("by='day'", "by=['day', 'id']"), "the stored table has other partitions, or another table_type"),
    ],
)  # fmt: skip
def test_what_would_lose_frozen_rows_is_refused(
    shop: Shop, change: tuple[str, str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, before = shop.root / "models/daily.sql", shop.stored(DAILY)
    assert change[0] in path.read_text()
    path.write_text(path.read_text().replace(*change))
    assert main(["run", "-s", "daily"]) == 1
    assert message in capsys.readouterr().out and shop.stored(DAILY) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("partition_by='day',\n frozen_before='May'", ":2:2: frozen_before of dws.daily: 'May' is not a date such as"),
        ("partition_by='day',\n frozen_before='2024-13-01'", ":2:2: frozen_before of dws.daily: '2024-13-01' is not a"),
        ("partition_by='id',\n frozen_before='x'", ":2:2: frozen_before of dws.daily: 'x' is not a whole number of"),
        ("frozen_before='2024-01-01'", ":1:11: frozen_before of dws.daily: the table has no partitions"),
        ("partition_by='day',\n frozen_before=true", ":2:2: config 'frozen_before' must be a date, a text or a whole"),
        ("materialized='view',\n frozen_before='2024-01-01'", ":2:2: frozen_before of dws.daily: a model that is view"),
    ],
)  # fmt: skip
def test_a_boundary_that_makes_no_sense_is_an_error_at_its_place(
    shop: Shop, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (shop.root / "models/daily.sql").write_text(f"{{{{ config({text}) }}}}\n{QUERIES[DAILY]}\n")
    assert main(["compile", "-s", "daily"]) == 2
    assert f"models/daily.sql{message}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "text", "command", "message"),
    [
        ("seeds/s.yml", "seeds: [{name: orders, config: {frozen_before: '2024'}}]", "seed",
         "seeds/s.yml:1:33: frozen_before of the seed orders"),
        ("pyproject.toml", '[tool.sqlmesh_like]\nname = "shop"\nprofile = "lake"\n[tool.sqlmesh_like.seeds]\n'
         '"+frozen_before" = 9\n', "seed", "pyproject.toml:5:1: frozen_before of the seed customers"),
        ("models/m.yml", "snapshots: [{name: kept, relation: ref('orders'), config: {strategy: check, unique_key: id,"
         "\n check_cols: all, frozen_before: '2024'}}]", "snapshot",
         "models/m.yml:2:19: frozen_before of dws.kept: a model that is snapshot"),
        ("snapshots/s.sql", "{% snapshot kept %}{{ config(strategy='check', unique_key='id', check_cols='all',\n"
         " frozen_before='2024') }} select * from {{ ref('orders') }}{% endsnapshot %}", "snapshot",
         "snapshots/s.sql:2:2: frozen_before of dws.kept: a model that is snapshot"),
    ],
)  # fmt: skip
def test_seeds_and_snapshots_have_no_frozen_partitions(
    path: str, text: str, command: str, message: str, shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    (shop.root / path).parent.mkdir(exist_ok=True)
    (shop.root / path).write_text(text)
    assert main([command]) == 2
    assert message in capsys.readouterr().err


def test_a_query_without_keys_cannot_have_frozen_partitions(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    freeze(shop, "2024-01-10", daily="select day, id,\n rand() as amount from {{ ref('orders') }}")
    assert main(["run", "-s", "daily"]) == 1
    assert "models/daily.sql:4:2: frozen_before of dws.daily needs a query that can be followed: FUN002" in (
        capsys.readouterr().out
    )


def test_the_boundary_is_in_the_commit_alone_where_there_is_one(shop: Shop) -> None:
    record = table_state(shop.timeline(DAILY)).record
    assert record is not None and record.frozen_before == "2024-01-10" and '"frozen_before"' in record.to_json()
    other = table_state(shop.timeline(TOTAL)).record
    assert other is not None and "frozen_before" not in other.to_json()
