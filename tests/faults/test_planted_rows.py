"""Wrong, missing and superfluous rows are noticed by `sml verify --sample` and `sml watch`, without a JVM."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from sqlmesh_like.app import api
from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.lakes.lake import clock, open_lake
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.app.operations.verification import watch_verification
from sqlmesh_like.app.operations.verification.table_verification import Verification
from sqlmesh_like.app.operations.verification.watch_verification import WatchVerification
from sqlmesh_like.cli.app import main
from sqlmesh_like.duckdb.local_sample import local_difference
from sqlmesh_like.errors import UsageError
from sqlmesh_like.names import IS_DELETED
from sqlmesh_like.run.ports import Sample
from tests.faults.calls import finished, start
from tests.faults.shop import CUSTOMER, DAILY, DETAIL, MODELS, ORDERS, REGION, Shop
from tests.planted_rows import Values, plant

Shown = pytest.CaptureFixture[str]
SEEDS = range(20)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A lake whose tables are up to date."""
    root, dice = tmp_path_factory.mktemp("built"), random.Random(3)
    shop = Shop.made(root)
    (root / "serving").mkdir()
    for _ in range(14):
        shop.change(dice)
    code, output = finished(start(root, "run"))
    assert code == 0, output
    return shop


@pytest.fixture
def shop(built: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A copy of that lake; to start Spark is an error."""
    monkeypatch.setattr("sqlmesh_like.app.lakes.lake.spark_engine", no_spark)
    shutil.copytree(built.root, tmp_path, dirs_exist_ok=True)
    return Shop(tmp_path, dict(built.rows_at), built.changes)


def no_spark(*_: object) -> None:
    raise AssertionError("a sample must not need Spark")


def wrong(rows: list[Values]) -> list[Values]:
    return [{**rows[0], "days": rows[0]["days"] + 1}]


def missing(rows: list[Values]) -> list[Values]:
    return [{**rows[0], IS_DELETED: True}]


def superfluous(rows: list[Values]) -> list[Values]:
    return [{**rows[0], "customer": 99, "_sml_key": "2.99"}]


def differing(shop: Shop, unique_id: str, keys: int, seeds: Iterable[int]) -> list[int]:
    """By seed, how many rows differ among so many keys."""
    planner = open_lake(load(Invocation(project_dir=shop.root))).planner(clock(None))
    recorded = planner.plan(planner.rendered.model(unique_id), {}).as_recorded()
    results = [local_difference(recorded, 10, Sample(keys, seed)) for seed in seeds]
    return [result.total for result in results if result is not None]


def test_what_is_right_passes_whatever_keys_are_compared(shop: Shop, capsys: Shown) -> None:
    for seed in range(2):
        assert main(["verify", "--sample", "--keys", "2", "--seed", str(seed), "--project-dir", str(shop.root)]) == 0
    shown = capsys.readouterr().out
    assert shown.count("(2 keys)") == 6 and shown.count("PASS=4") == 2
    for model in MODELS:
        assert differing(shop, model, 1, SEEDS) == [0] * len(SEEDS)


def test_a_sample_is_taken_at_the_tables_own_frontier(shop: Shop) -> None:
    for _ in range(3):
        shop.commit(ORDERS, random.Random(5))
    for model in MODELS:
        assert differing(shop, model, 100, [1]) == [0]


@pytest.mark.parametrize(("change", "rows"), [(wrong, 2), (missing, 1), (superfluous, 1)])
def test_a_planted_row_is_noticed_if_its_key_is_compared(
    change: Callable[[list[Values]], list[Values]], rows: int, shop: Shop
) -> None:
    plant(shop.timeline(CUSTOMER), change)
    assert differing(shop, CUSTOMER, 100, [0]) == [rows]
    by_seed = differing(shop, CUSTOMER, 1, SEEDS)
    assert set(by_seed) == {0, rows}
    assert by_seed == differing(shop, CUSTOMER, 1, SEEDS), "a seed determines the keys"


@pytest.mark.parametrize("unique_id", [DETAIL, DAILY])
def test_rows_without_groups_are_compared_by_their_values(unique_id: str, shop: Shop) -> None:
    plant(shop.timeline(unique_id), lambda rows: [{**rows[0], "amount": rows[0]["amount"] + 1}])
    assert differing(shop, unique_id, 100, [0]) == [2]
    by_seed = differing(shop, unique_id, 1, SEEDS)
    assert set(by_seed) >= {0, 1}, "the stored row and the right one are compared independently"


ORDERS_REF = "{{ ref('orders') }}"
DAYS = "select customer, count(distinct day) as days"
HERE = {
    "as written, but for the position": f"{DAYS} from {ORDERS_REF} group by 1",
    "a CTE": f"with o as (select * from {ORDERS_REF}) {DAYS} from o group by customer",
    "nested": "select customer, count(day) as days"
    f" from (select distinct customer, day from {ORDERS_REF}) group by customer",
}
BY_SPARK = {
    "not in the algebra": f"{DAYS} from {ORDERS_REF} group by customer limit 100",
    "not proven": f"select customer, size(collect_set(day)) as days from {ORDERS_REF} group by customer",
}


@pytest.mark.parametrize("sql", [*HERE.values(), *BY_SPARK.values()], ids=[*HERE, *BY_SPARK])
def test_a_query_is_run_as_written_or_as_planned_or_left_to_spark(sql: str, shop: Shop) -> None:
    """The table has the rows of an equal query."""
    (shop.root / "models" / "customer.sql").write_text(sql)
    assert differing(shop, CUSTOMER, 3, [5]) == ([0] if sql in HERE.values() else [])


def test_the_command_names_rows_seed_and_repair(shop: Shop, capsys: Shown) -> None:
    plant(shop.timeline(REGION), lambda rows: [{**rows[0], "total": 666}])
    assert main(["verify", "region", "--sample", "--seed", "7", "--project-dir", str(shop.root)]) == 1
    shown = capsys.readouterr().out
    assert "Comparing 20 random keys of each table; the same ones again: --seed 7" in shown
    assert "1 of 1 FAIL 2 table dws.region (all keys)" in shown
    assert "total=666" in shown and "rebuild it: sml repair region" in shown


def test_python_gets_the_keys_that_were_compared(shop: Shop) -> None:
    plant(shop.timeline(CUSTOMER), superfluous)
    with api.Project.load(shop.root) as project:
        (result,) = project.verify("customer", sample=100)
        with pytest.raises(UsageError, match="a sample of 0 keys"):
            project.verify("customer", sample=0)
    assert result.status == "fail" and result.difference is not None
    assert [sign for sign, _ in result.difference.rows] == [-1]
    keys = result.difference.keys
    assert keys is not None and (keys.columns, keys.is_all) == (("customer",), True)


@pytest.mark.parametrize("words", [("--keys", "5"), ("--seed", "5")])
def test_keys_and_seed_without_a_sample_are_refused(words: tuple[str, str], shop: Shop, capsys: Shown) -> None:
    assert main(["verify", *words, "--project-dir", str(shop.root)]) == 2
    assert "--keys and --seed describe a sample\n  add --sample" in capsys.readouterr().err


def test_a_file_that_is_gone_is_left_to_spark(shop: Shop) -> None:
    for file in shop.timeline(ORDERS).data_files:
        (Path(shop.timeline(ORDERS).uri) / file).unlink()
    assert differing(shop, CUSTOMER, 5, [0]) == []
    with api.Project.load(shop.root) as project, pytest.raises(AssertionError, match="must not need Spark"):
        project.verify("customer", sample=5)


class Watched:
    """Samples as `sml watch` takes them, each of one second, and what it tells of them."""

    def __init__(self, shop: Shop, monkeypatch: pytest.MonkeyPatch, share: float, *models: str) -> None:
        self.now, self.compared = 1000.0, list[str]()
        self.lines, self.problems = list[tuple[str, str]](), dict[str, str | None]()
        lake = open_lake(load(Invocation(project_dir=shop.root)))
        self.verify = WatchVerification(lake, models, share, self.notify, self.note)
        monkeypatch.setattr(watch_verification, "monotonic", lambda: self.now)

    def notify(self, text: str, level: str = "info") -> None:
        self.lines.append((level, text))

    def note(self, result: Verification, problem: str | None) -> None:
        assert result.error is None
        self.now += 1
        self.compared.append(result.model.name)
        self.problems[result.model.name] = problem

    def pass_seconds(self, seconds: int) -> None:
        for _ in range(seconds):
            self.verify()
            self.now += 1


def test_a_watch_compares_one_table_after_the_other_for_its_share_of_the_time(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(shop, monkeypatch, 10, CUSTOMER, DAILY, REGION)
    watched.pass_seconds(60)
    passed = watched.now - 1000
    assert len(watched.compared) == 7 and 0.9 * passed <= 10 * len(watched.compared) <= 1.1 * passed
    assert watched.compared[:3] == watched.compared[3:6] and set(watched.compared) == {"customer", "daily", "region"}
    assert watched.lines == [] and set(watched.problems.values()) == {None}


def test_a_watch_tells_no_whole_row(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(shop.timeline(DAILY), lambda rows: [{**rows[0], "amount": 4711}])
    watched = Watched(shop, monkeypatch, 100, DAILY)
    watched.pass_seconds(2)
    assert "differ from the query;" in str(watched.problems["daily"]) and "4711" not in str(watched.lines)


def test_without_a_share_nothing_is_compared(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(shop, monkeypatch, 0, CUSTOMER)
    watched.pass_seconds(100)
    assert watched.compared == []


def test_a_watch_tells_once_what_differs_and_that_it_is_right_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[Values] = []

    def spoil(rows: list[Values]) -> list[Values]:
        stored.extend({**row, IS_DELETED: False} for row in rows)
        return [*wrong(rows), *superfluous(rows)]

    plant(shop.timeline(CUSTOMER), spoil)
    watched = Watched(shop, monkeypatch, 100, CUSTOMER, REGION)
    watched.pass_seconds(6)
    assert len(watched.lines) == 1 and watched.lines[0][0] == "error"
    line = watched.lines[0][1]
    assert line.startswith("dws.customer: 3 rows of the table differ from the query") and "customer=99" in line
    assert "sml verify customer --sample --keys 20 --seed" in line and "sml repair customer" in line
    assert watched.problems["region"] is None and watched.problems["customer"] is not None

    plant(shop.timeline(CUSTOMER), lambda _: [*stored, {**stored[0], "_sml_key": "2.99", IS_DELETED: True}])
    watched.pass_seconds(6)
    assert watched.problems == {"customer": None, "region": None}
    assert watched.lines[1:] == [("info", "dws.customer: the rows that differed equal the query again")]


@pytest.mark.release
def test_keys_that_come_since_do_not_hide_the_one_that_differs(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(shop.timeline(CUSTOMER), wrong)
    telling = [seed for seed in SEEDS if differing(shop, CUSTOMER, 1, [seed]) == [2]]
    watches = []
    for seed in telling:
        monkeypatch.setattr(watch_verification, "new_sample", lambda seed=seed: Sample(1, seed))
        watches.append(Watched(shop, monkeypatch, 100, CUSTOMER))
        watches[-1].pass_seconds(2)
    for number in range(8):
        shop.write_unlocked(ORDERS, (50 + number, 50 + number, 20, "2024-01-01", False))
    code, output = finished(start(shop.root, "run", "-s", "customer"))
    assert code == 0, output
    assert [0] in [differing(shop, CUSTOMER, 1, [seed]) for seed in telling], "no new key has a smaller hash"
    for watched in watches:
        watched.pass_seconds(4)
        assert watched.problems["customer"] is not None and len(watched.lines) == 1
