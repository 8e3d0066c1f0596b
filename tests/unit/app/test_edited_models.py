"""A model that is edited on one machine: its table keeps its history, models below see what differs, no JVM starts."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from sqlmesh_like import Project
from tests.faults.shop import DAILY, DETAIL, REGION, Shop
from tests.levels import parametrize

_DETAIL = "models/detail.sql"
_JOINED = "c.region from {{ ref('orders') }} o join {{ ref('customers') }} c on o.customer = c.id"
_DAYS = "left join {{ ref('customer') }} d on d.customer = o.customer"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A lake whose tables are up to date."""
    shop = Shop.changed(tmp_path_factory.mktemp("built"), random.Random(1), 5)
    run(shop)
    return shop


def run(shop: Shop) -> dict[str, tuple[str | None, int, list[str]]]:
    """Strategy, changed rows and rules of each model."""
    with Project.load(shop.root) as project:
        results = project.run().results
    assert {result.status for result in results} <= {"success", "no-op"}, [result.message for result in results]
    return {
        each.node.unique_id: (each.strategy, each.upserts + each.deletes, [reason.rule for reason in each.reasons])  # type: ignore[union-attr]
        for each in results
    }  # fmt: skip


def edit(shop: Shop, before: str, after: str, path: str = _DETAIL) -> None:
    text = (shop.root / path).read_text()
    assert before in text
    (shop.root / path).write_text(text.replace(before, after))


def test_models_below_an_edited_filter_see_the_rows_that_leave_and_enter(shop: Shop) -> None:
    before = shop.stored(DETAIL)
    edit(shop, "o.customer = c.id", "o.customer = c.id where o.amount > 12")
    done = run(shop)
    left = [row for row in before if row[2] <= 12]
    assert left and shop.stored(DETAIL) == [row for row in before if row not in left]
    assert (done[DETAIL][0], done[DETAIL][1]) == ("recompute_merge", len(left))
    assert done[DETAIL][2] == ["HIS002", "EDT002"]
    assert done[REGION][0] == "aggregate_merge"
    assert sum(row[1] for row in shop.stored(REGION)) == len(shop.stored(DETAIL))
    edit(shop, " where o.amount > 12", "")
    done = run(shop)
    assert shop.stored(DETAIL) == before and shop.stored(REGION) == shop.expected(REGION)
    assert done[DETAIL] == ("row_based", len(left), ["HIS002", "EDT003"])


def test_changes_of_the_inputs_are_followed_after_the_edit(shop: Shop) -> None:
    shop.change(random.Random(4))
    edit(shop, "o.customer = c.id", "o.customer = c.id where o.amount > 12")
    done = run(shop)
    assert shop.stored(DETAIL) == [row for row in shop.expected(DETAIL) if row[2] > 12]
    assert "EDT002" in done[DETAIL][2] and done[REGION][0] == "aggregate_merge"
    assert {strategy for strategy, _, _ in run(shop).values()} == {"no_op"}


def test_a_model_that_is_only_written_otherwise_has_nothing_to_do(shop: Shop) -> None:
    edit(shop, "o.customer = c.id", "c.id = o.customer -- by customer")
    edit(shop, "where amount > 10", "where 10 < amount", "models/daily.sql")
    assert {strategy for strategy, _, _ in run(shop).values()} == {"no_op"}


@parametrize(
    ("before", "after", "columns"),
    suite=[("o.id, o.customer, o.amount, c.region", "c.region, o.amount, o.id + 1 as more", "region amount more")],
    release=[
        ("o.amount,", "o.amount, o.amount * 2 as twice,", "id customer amount twice region"),
        ("o.id, o.customer, o.amount, c.region", "c.region, o.amount", "region amount"),
    ],
)
def test_other_columns_keep_the_history_that_models_below_read(
    shop: Shop, before: str, after: str, columns: str
) -> None:
    commits = len(shop.timeline(DETAIL).commit_instants)
    edit(shop, before, after)
    done = run(shop)
    assert [column.name for column in Project.load(shop.root).table("detail").schema] == columns.split()
    assert done[DETAIL][0] == "full_refresh" and done[REGION][:2] == ("aggregate_merge", 0)
    assert len(shop.timeline(DETAIL).commit_instants) == commits + 1
    shop.change(random.Random(2))
    assert run(shop)[DETAIL][0] == "row_based"
    assert shop.stored(REGION) == shop.expected(REGION)


def test_rows_of_a_partitioned_table_leave_their_partition_where_a_column_is_added(shop: Shop) -> None:
    edit(shop, "select day, id, amount", "select day, id, amount, amount + 1 as more", "models/daily.sql")
    edit(shop, "amount > 10", "amount > 20", "models/daily.sql")
    expected = [(day, key, amount, amount + 1) for day, key, amount in shop.expected(DAILY) if amount > 20]
    run(shop)
    assert shop.stored(DAILY) == expected


@parametrize(
    ("path", "before", "after", "strategy", "moves"),
    suite=[
        (_DETAIL, "o.amount, c.region", "o.day, o.amount, c.region", "full_refresh", True),
        ("models/region.sql", "max(amount) as top", "min(amount) as least, max(amount) as top", "full_refresh", False),
        ("models/daily.sql", "amount > 10", "amount > 5 and id <> 3", "row_based", True),
        (_DETAIL, _JOINED, _JOINED.replace("region", "region, d.days", 1) + f" {_DAYS}", "full_refresh", True),
    ],
    release=[
        (_DETAIL, "o.amount, c.region", "o.day, o.amount, c.region", "full_refresh", False),
        ("models/region.sql", "max(amount) as top", "min(amount) as least, max(amount) as top", "full_refresh", True),
        ("models/region.sql", "ref('detail') }}", "ref('detail') }} where amount < 40", "aggregate_merge", True),
        ("models/customer.sql", "ref('orders') }}", "ref('orders') }} where amount > 12", "group_recompute", False),
        ("models/daily.sql", "day, id, amount", "day, customer, amount + 1 as amount", "full_refresh", False),
        (
            "models/daily.sql",
            "where",
            "left join {{ ref('customer') }} using (customer) where",
            "recompute_merge",
            False,
        ),
        (_DETAIL, _JOINED, f"{_JOINED} {_DAYS} where d.days > 1", "recompute_merge", True),
    ],
)
def test_only_what_an_edit_changes_is_computed(
    shop: Shop, path: str, before: str, after: str, strategy: str, moves: bool
) -> None:
    if moves:
        shop.change(random.Random(4))
    edit(shop, before, after, path)
    node = f"model.shop.{Path(path).stem}"
    done = run(shop)[node]
    assert "EDT003" in done[2] and (moves or done[0] == strategy), done
    assert run(shop)[node][0] == "no_op"
    stored = {name: shop.stored(name) for name in (node, REGION)}
    with Project.load(shop.root) as project:
        assert {each.status for each in project.run(full_refresh=True).results} == {"success"}
    assert stored == {name: shop.stored(name) for name in stored}


@pytest.mark.release
def test_a_wider_column_is_a_cast_of_the_stored_one_and_its_readers_see_no_other_row(shop: Shop) -> None:
    before, region = shop.stored(DETAIL), shop.stored(REGION)
    edit(shop, "o.id,", "cast(o.id as bigint) as id,")
    done = run(shop)
    assert done[DETAIL][0] == "full_refresh" and done[DETAIL][2] == ["HIS002", "EDT002"]
    assert done[REGION][:2] == ("recompute_merge", 0) and "EDT001" in done[REGION][2]
    assert Project.load(shop.root).table("detail").schema[0].type == "bigint"
    assert shop.stored(DETAIL) == before and shop.stored(REGION) == region


def test_joins_in_another_order_go_on_with_the_keys_that_are_stored(shop: Shop) -> None:
    text = _JOINED.removeprefix("c.region ")
    edit(shop, text, "from {{ ref('customers') }} c join {{ ref('orders') }} o on o.customer = c.id")
    assert {strategy for strategy, _, _ in run(shop).values()} == {"no_op"}
    for seed in (4, 5):
        shop.change(random.Random(seed))
        assert run(shop)[DETAIL][0] == "row_based"
        assert shop.stored(DETAIL) == shop.expected(DETAIL) and shop.stored(REGION) == shop.expected(REGION)
    with Project.load(shop.root) as project:
        assert {each.status for each in project.verify(sample=9)} == {"pass"}


def test_a_left_join_is_removed_from_the_stored_rows(shop: Shop) -> None:
    before = shop.stored(DETAIL)
    edit(shop, _JOINED, _JOINED.replace("region", "region, d.days", 1) + f" {_DAYS}")
    run(shop)
    assert [row[:4] for row in shop.stored(DETAIL)] == before
    edit(shop, ", d.days", "")
    edit(shop, _DAYS, "")
    assert run(shop)[DETAIL][2] == ["HIS002", "HIS005", "EDT002"]
    assert shop.stored(DETAIL) == before
    shop.change(random.Random(4))
    assert run(shop)[DETAIL][0] == "row_based"
    assert shop.stored(DETAIL) == shop.expected(DETAIL) and shop.stored(REGION) == shop.expected(REGION)


def test_a_plan_names_the_edit_and_what_it_reads_beside_a_rebuild(shop: Shop) -> None:
    edit(shop, "amount > 10", "amount > 8", "models/daily.sql")
    with Project.load(shop.root) as project:
        plan = next(each for each in project.plan().models if each.unique_id == DAILY)
    messages = {reason.rule: reason.message for reason in plan.next_run_reasons}
    assert re.fullmatch(r"a wider filter \(reads at most \d+\.\d MB, a rebuild \d+\.\d MB\)", messages["EDT003"])
