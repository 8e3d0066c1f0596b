"""A target with the master of a cluster whose driver does what is small: no application of Spark is started."""

from __future__ import annotations

import random
import shlex
from pathlib import Path

import pytest

from sqlmesh_like import Project
from sqlmesh_like.cli.app import main
from sqlmesh_like.duckdb.programs import local_models, local_steps, read_limit
from sqlmesh_like.hudi.writer.arrow_schema import UnsupportedRowsError
from sqlmesh_like.hudi.writer.upsert import Upsert
from sqlmesh_like.plan import frontier_advance, model_plan, router
from sqlmesh_like.plan.cluster import expected_jobs
from sqlmesh_like.project.nodes import DEFAULT_DRIVER_MAX_BYTES
from tests.faults.shop import CUSTOMER, DETAIL, FILES, MODELS, ORDERS, PROFILE, Shop
from tests.unit.app.executors import Executors


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A lake that a target on one machine has built, with changes that no model has read."""
    shop = Shop.changed(tmp_path_factory.mktemp("cluster"), random.Random(7), 3)
    with Project.load(shop.root) as project:
        project.run()
    return shop


def set_cluster(root: Path, settings: str = "") -> None:
    text = PROFILE.replace("local[2]", "spark://127.0.0.1:1")
    (root / "profiles.yml").write_text(text.replace("type: spark", f"type: spark\n{settings}"))


def test_changes_are_followed_on_the_driver(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    set_cluster(shop.root)
    since, dice, engines = shop.timeline(DETAIL).frontier, random.Random(11), set[object]()
    for _ in range(4):
        shop.change(dice)
        with Project.load(shop.root) as project:
            engines |= {getattr(each, "engine", None) for each in project.run().results if each.status != "no-op"}
        for name in MODELS:
            assert shop.stored(name) == shop.expected(name), name
    assert engines == {"duckdb"}
    query = "sql 'select count(*) from dws.detail'"
    for call in (query, f"changes detail --since {since}", "run", "verify --sample", "maintain"):
        assert main(shlex.split(call)) == 0, capsys.readouterr().err


@pytest.fixture
def large_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of orders has as many bytes as the driver may read, beside all else."""
    for module in (model_plan, frontier_advance, local_steps, router):
        monkeypatch.setattr(module, "SMALL_INPUT", 0)
    size = read_limit._bytes_of
    bound = DEFAULT_DRIVER_MAX_BYTES
    monkeypatch.setattr(read_limit, "_bytes_of", lambda t, at: bound if t.uri.endswith("/orders") else size(t, at))


@pytest.mark.usefixtures("large_inputs")
def test_executors_look_rows_up_for_programs_on_the_driver(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    set_cluster(shop.root)
    dice, asked = random.Random(5), set[str]()
    for _ in range(5):
        executors = Executors()
        monkeypatch.setattr("sqlmesh_like.app.lakes.lake.spark_engine", lambda *_, made=executors: made)
        shop.change(dice)
        with Project.load(shop.root) as project:
            assert {each.status for each in project.run().results} <= {"success", "no-op"}
        for name in MODELS:
            assert shop.stored(name) == shop.expected(name), name
        keys = [(*each.keys.column_names, *row.values()) for each in executors.lookups for row in each.keys.to_pylist()]
        assert len(keys) == len(set(keys)), "models share what was looked up"
        asked |= {each.uri.rpartition("/")[2] for each in executors.lookups}
    assert asked == {"orders"}


def test_a_table_is_recomputed_on_the_driver_where_a_change_would_start_jobs(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The input and the table are within the bound, the input beside its change is not. No JVM can start here."""
    for module in (model_plan, frontier_advance, local_steps, router, expected_jobs):
        monkeypatch.setattr(module, "SMALL_INPUT", 0)
    set_cluster(shop.root)
    (shop.root / "models/days.sql").write_text(
        "select day, count(distinct customer) as n from {{ ref('orders') }} group by day"
    )
    with Project.load(shop.root) as project:
        project.run(select=["days"])
    shop.commit(ORDERS, random.Random(3))
    bound = 0
    for expected in ("group_recompute", "recompute_merge"):
        set_cluster(shop.root, f"      driver_max_bytes: {bound}" if bound else "")
        with Project.load(shop.root) as project:
            (plan,) = project.plan(select=["days"]).models
        assert plan.next_run == expected, plan.next_run_reasons
        assert plan.estimate is not None
        whole = dict(plan.estimate.ways)["recompute_merge"]
        bound = whole.read + whole.rewritten
    assert [reason.rule for reason in plan.next_run_reasons] == ["CST003"]
    with Project.load(shop.root) as project:
        (result,) = project.run(select=["days"]).results
    assert (result.status, getattr(result, "strategy", "")) == ("success", "recompute_merge")
    rows = shop.stored(ORDERS)
    counts = [(day, len({row[1] for row in rows if row[3] == day})) for day in sorted({row[3] for row in rows})]
    assert shop.stored(CUSTOMER.replace("customer", "days")) == counts


@pytest.mark.usefixtures("large_inputs")
def test_what_executors_do_not_return_is_computed_by_them(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    set_cluster(shop.root)
    monkeypatch.setattr("sqlmesh_like.app.lakes.lake.spark_engine", lambda *_: Executors(lambda _: False))
    before = shop.timeline(CUSTOMER).frontier
    shop.commit(ORDERS, random.Random(1))
    with (
        Project.load(shop.root) as project,
        pytest.raises(AttributeError, match=r"'Executors' object has no .* 'apply'"),
    ):
        project.run(select=["customer"])
    assert shop.timeline(CUSTOMER).frontier == before


def test_what_the_driver_cannot_commit_is_computed_by_executors(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not see the file of the driver in which the actions are."""

    def refuse(_: Upsert) -> None:
        raise UnsupportedRowsError("files are large")

    set_cluster(shop.root)
    monkeypatch.setattr(local_models, "upsert", refuse)
    monkeypatch.setattr("sqlmesh_like.app.lakes.lake.spark_engine", lambda *_: Executors(lambda _: False))
    shop.commit(ORDERS, random.Random(1))
    with (
        Project.load(shop.root) as project,
        pytest.raises(AttributeError, match=r"'Executors' object has no .* 'apply'"),
    ):
        project.run(select=["customer"])


def test_small_tables_are_built_made_anew_and_given_other_columns_on_the_driver(shop: Shop) -> None:
    set_cluster(shop.root)
    of_days = "select day, count(*) as n, sum(amount) as amount from {{ ref('orders') }} group by day"
    for text in (
        of_days,
        f"{{{{ config(partition_by=['day']) }}}} {of_days}",
        of_days.replace("sum(amount)", "cast(sum(amount) as string)"),
    ):
        (shop.root / "models/of_days.sql").write_text(text)
        with Project.load(shop.root) as project:
            project.run(select=["of_days"])
        rows = shop.stored(ORDERS)
        sums = {day: [row[2] for row in rows if row[3] == day] for day in {row[3] for row in rows}}
        as_text = str if "string" in text else int
        expected = sorted((day, len(each), as_text(sum(each))) for day, each in sums.items())
        assert shop.stored(CUSTOMER.replace("customer", "of_days")) == expected, text


def test_seeds_and_rows_compared_with_a_query_are_the_drivers(shop: Shop) -> None:
    set_cluster(shop.root)
    (shop.root / "seeds/orders.csv").write_text(FILES["seeds/orders.csv"] + "7,1,20,2024-01-09\n")
    with Project.load(shop.root) as project:
        results = project.build().results
    strategies = {each.node.unique_id: getattr(each, "strategy", None) for each in results}
    assert strategies[CUSTOMER] == "recompute_merge", "the history of its input is gone"
    assert shop.stored(ORDERS) == [(0, 0, 0, "2024-01-01"), (7, 1, 20, "2024-01-09")]
    assert shop.stored(CUSTOMER) == [(0, 1), (1, 1)]


@pytest.mark.parametrize("bound", [1, 3_000])
def test_what_is_larger_is_left_to_the_executors(shop: Shop, bound: int) -> None:
    """Files of these tables have a few kB: one byte is refused by the plan, some kB only while tables are read."""
    set_cluster(shop.root, f"      driver_max_bytes: {bound}")
    before = {name: shop.timeline(name).frontier for name in MODELS}
    shop.commit(ORDERS, random.Random(1))
    with Project.load(shop.root) as project, pytest.raises(AssertionError, match="this must not need Spark"):
        project.run()
    assert {name: shop.timeline(name).frontier for name in MODELS} == before
