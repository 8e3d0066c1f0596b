"""Tables that are built again on one machine: no JVM starts, history stays where the layout does."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hudi import HudiTableBuilder

from sqlmesh_like import Project
from sqlmesh_like.duckdb.programs import local_actions
from sqlmesh_like.hudi.recovery.table_swap import has_remains
from tests.faults.shop import CUSTOMER, DAILY, DETAIL, MODELS, REGION, Shop


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    dice = random.Random(7)
    shop = Shop.changed(tmp_path_factory.mktemp("built"), dice, 4)
    run(shop)
    shop.change(dice)
    return shop


def run(shop: Shop, *selected: str, full_refresh: bool = False) -> dict[str, tuple[str | None, int]]:
    """Strategy and changed rows of each model."""
    with Project.load(shop.root) as project:
        results = project.run(select=selected, full_refresh=full_refresh).results
    assert {result.status for result in results} <= {"success", "no-op"}, [result.message for result in results]
    return {each.node.unique_id: (each.strategy, each.upserts + each.deletes) for each in results}  # type: ignore[union-attr]


def read_by_hudi_rs(shop: Shop, name: str, *columns: str) -> list[tuple[object, ...]]:
    batches = HudiTableBuilder.from_base_uri(shop.timeline(name).uri).build().read()
    return sorted(tuple(row[column] for column in columns) for batch in batches for row in batch.to_pylist())


def test_all_rows_are_replaced_by_one_commit_and_followed_from_there(shop: Shop) -> None:
    before = {name: shop.timeline(name) for name in MODELS}
    done = run(shop, full_refresh=True)
    for name in MODELS:
        rows, after = shop.expected(name), shop.timeline(name)
        assert shop.stored(name) == rows and done[name] == ("full_refresh", len(rows)), name
        newest, old = after.commits[-1], before[name].frontier
        assert (newest.instant.action, newest.operation) == ("replacecommit", "INSERT_OVERWRITE_TABLE")
        assert old and newest.replaced_groups == set(before[name].slices(old)) and len(newest.replaced_groups) > 0
        assert len(after.commit_instants) == len(before[name].commit_instants) + 1
    columns = ("region", "n", "total", "top")
    assert read_by_hudi_rs(shop, REGION, *columns) == shop.stored(REGION)
    shop.change(random.Random(3))
    assert "full_refresh" not in {strategy for strategy, _ in run(shop).values()}
    assert all(shop.stored(name) == shop.expected(name) for name in MODELS)


def test_models_below_see_only_the_rows_that_differ(shop: Shop) -> None:
    run(shop)
    run(shop, "detail", full_refresh=True)
    assert run(shop)[REGION][1] == 0
    shop.change(random.Random(5))
    run(shop, "detail", full_refresh=True)
    strategy, rows = run(shop)[REGION]
    assert (strategy, shop.stored(REGION)) == ("aggregate_merge", shop.expected(REGION)) and rows


@pytest.mark.release
def test_rows_that_are_chosen_are_kept_and_followed(shop: Shop) -> None:
    (shop.root / "models/region.sql").write_text(
        "select region, max_by(amount, customer) as last, first(id) as one, count(*) as n from {{ ref('detail') }}"
        " group by region"
    )
    dice, ways = random.Random(11), []
    for _ in range(4):
        shop.change(dice)
        ways.append(run(shop)[REGION][0])
    followed = shop.stored(REGION)
    run(shop, "region", full_refresh=True)
    assert shop.stored(REGION) == followed and followed and "aggregate_merge" in ways


def test_a_table_that_all_rows_leave_is_empty(shop: Shop) -> None:
    text = (shop.root / "models/daily.sql").read_text()
    (shop.root / "models/daily.sql").write_text(text.replace("amount > 10", "amount > 1000"))
    run(shop, "daily", full_refresh=True)
    assert shop.stored(DAILY) == [] and shop.timeline(DAILY).slices(shop.timeline(DAILY).frontier or "") == {}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("partition_by='day'", "partition_by='id'"),
        ("id, amount", "id, cast(amount as bigint) as amount"),
    ],
    ids=["partitions", "types"],
)
def test_a_table_of_another_layout_is_built_beside_and_swapped(shop: Shop, before: str, after: str) -> None:
    text = (shop.root / "models/daily.sql").read_text()
    assert before in text
    (shop.root / "models/daily.sql").write_text(text.replace(before, after))
    earlier = shop.timeline(DAILY).commit_instants
    assert run(shop)[DAILY][0] == "full_refresh"
    assert shop.stored(DAILY) == shop.expected(DAILY)
    # The table of other types is made of the stored rows, and then follows the inputs.
    assert not set(earlier) & set(shop.timeline(DAILY).commit_instants) and not has_remains(shop.timeline(DAILY).uri)
    shop.change(random.Random(9))
    assert run(shop)[DAILY][0] != "full_refresh"
    assert shop.stored(DAILY) == shop.expected(DAILY)


def test_a_table_that_lost_a_file_is_made_whole(shop: Shop) -> None:
    """Its own rows are not read: they are replaced as a whole."""
    timeline = shop.timeline(CUSTOMER)
    for path in timeline.data_files:
        (Path(timeline.uri) / path).unlink()
    assert run(shop)[CUSTOMER][0] == "full_refresh"
    assert shop.stored(CUSTOMER) == shop.expected(CUSTOMER) and shop.stored(DETAIL) == shop.expected(DETAIL)


def test_a_table_of_too_many_values_is_left_to_spark(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = len(shop.stored(REGION))  # its input has not seen the change
    values = rows * 10  # four columns, five of state, and the row key
    monkeypatch.setattr(local_actions, "_MOST_VALUES", values)
    assert run(shop, "region", full_refresh=True)[REGION] == ("full_refresh", rows)
    monkeypatch.setattr(local_actions, "_MOST_VALUES", values - 1)
    with pytest.raises(AssertionError, match="must not need Spark"):
        run(shop, "region", full_refresh=True)
