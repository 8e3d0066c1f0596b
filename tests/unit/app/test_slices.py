"""Tables built slice by slice on one machine, and ranges of partitions that are computed again, without Spark."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sqlmesh_like import Project
from sqlmesh_like.cli.app import main
from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.plan.slices.sliced_build import beside
from sqlmesh_like.run import slices as slice_run
from sqlmesh_like.run.result import ModelResult
from sqlmesh_like.run.retention import AT_LEAST, SLACK
from tests.faults.shop import ORDERS, Rows, Shop
from tests.levels import count
from tests.planted_rows import Values, plant

DAILY, PER_DAY, BY_TENS = (f"model.shop.{name}" for name in ("daily", "per_day", "by_tens"))
QUERIES = {
    DAILY: ("day", "select day, id, amount from {{ ref('orders') }} where amount > 10"),
    PER_DAY: (
        "day",
        "select day, count(*) as n, sum(amount) as total, max(amount) as top from {{ ref('orders') }} group by day",
    ),
    BY_TENS: (
        "tens",
        "select substr(cast(o.day as string), 1, 9) as tens, o.customer, count(distinct o.id) as n,"
        " max(c.region) as region from {{ ref('orders') }} o left join {{ ref('customers') }} c"
        " on c.id = o.customer group by 1, 2",
    ),
}
"""Rows of rows, groups with a state, and a partition that is computed, beside an input that each slice reads whole."""


class Killed(BaseException):
    """Ends a run as a signal would: nothing of it goes on."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A lake whose inputs have rows, and none of whose models is built."""
    shop = Shop.changed(tmp_path_factory.mktemp("built"), random.Random(1), 8)
    for path in (shop.root / "models").iterdir():
        path.unlink()
    for name in ("detail", "region", "customer", "daily"):
        shutil.rmtree(shop.root / "warehouse/dws" / name)
    write_models(shop)
    return shop


def write_models(shop: Shop, config: str = "", **queries: str) -> None:
    for unique_id, (partition, query) in QUERIES.items():
        name = unique_id.rpartition(".")[2]
        text = f"{{{{ config(partition_by='{partition}'{config}) }}}}\n{queries.get(name, query)}\n"
        (shop.root / f"models/{name}.sql").write_text(text)


def run(shop: Shop, **options: Any) -> dict[str, ModelResult]:
    with Project.load(shop.root) as project:
        results = project.run(**options).results
    assert {result.status for result in results} <= {"success", "no-op"}, [result.message for result in results]
    return {result.node.unique_id: result for result in results if isinstance(result, ModelResult)}


def end_after(monkeypatch: pytest.MonkeyPatch, commits: int) -> None:
    """Let runs end after so many slices."""
    left = [commits]

    def end(name: str) -> None:
        left[0] -= name == "slices.committed"
        if left[0] == 0 and name == "slices.committed":
            raise Killed

    monkeypatch.setattr(slice_run, "fault_point", end)


def interrupt(shop: Shop, monkeypatch: pytest.MonkeyPatch, commits: int, **options: Any) -> None:
    """Begin a build, which ends after so many slices."""
    with monkeypatch.context() as patched:
        end_after(patched, commits)
        with pytest.raises(Killed):
            run(shop, **options)


def expected(shop: Shop, unique_id: str) -> list[tuple[Any, ...]]:
    """The rows of a query over the inputs as they are."""
    orders: Rows = shop.recorded(ORDERS)
    if unique_id == DAILY:
        return sorted((day, key, amount) for key, _, amount, day in orders if amount > 10)
    groups: dict[Any, Rows] = {}
    for row in orders:
        groups.setdefault(row[3] if unique_id == PER_DAY else (row[3][:9], row[1]), []).append(row)
    if unique_id == PER_DAY:
        amounts = {day: [row[2] for row in rows] for day, rows in groups.items()}
        return sorted((day, len(each), sum(each), max(each)) for day, each in amounts.items())
    regions = dict(shop.recorded("seed.shop.customers"))
    return sorted(((*key, len(rows), regions.get(key[1])) for key, rows in groups.items()), key=repr)


def stored(shop: Shop, unique_id: str) -> list[tuple[Any, ...]]:
    with Project.load(shop.root) as project:
        rows = project.sql(f"select * from dws.{unique_id.rpartition('.')[2]}").to_pylist()
    return sorted((tuple(str(v) if k == "day" else v for k, v in row.items()) for row in rows), key=repr)


def require_equal(shop: Shop, *names: str) -> None:
    for unique_id in names or QUERIES:
        assert stored(shop, unique_id) == sorted(expected(shop, unique_id), key=repr), unique_id


def rules(result: ModelResult) -> dict[str, str]:
    return {reason.rule: reason.message for reason in result.reasons}


def begun(shop: Shop, unique_id: str) -> Timeline:
    return Timeline(beside(shop.timeline(unique_id).uri))


def left_beside(shop: Shop) -> list[str]:
    return sorted(path.name for path in (shop.root / "warehouse/dws").iterdir() if "__sml_" in path.name)


def test_a_build_ended_anywhere_goes_on_with_its_slices_whatever_changes_meanwhile(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice, totals = random.Random(5), Counter[str]()
    for _ in range(count(3, 40, 300)):
        unique_id = dice.choice(list(QUERIES))
        name, is_rebuild = unique_id.rpartition(".")[2], dice.random() < 0.4 and shop.timeline(unique_id).exists
        if not is_rebuild:
            shutil.rmtree(shop.root / "warehouse/dws" / name, ignore_errors=True)
        before = stored(shop, unique_id) if is_rebuild else None
        slices, ended = dice.randint(3, 6), dice.randint(1, 2)
        if unique_id == BY_TENS and ended == 2:
            slices = 9
        options = {"select": [name], "slices": slices, "full_refresh": is_rebuild}
        interrupt(shop, monkeypatch, ended, **options)
        commits = begun(shop, unique_id).commit_instants
        assert len(commits) == ended
        assert shop.timeline(unique_id).exists == is_rebuild, "readers see slices that are not all there"
        assert before is None or stored(shop, unique_id) == before
        for _ in range(dice.randint(0, 2)):
            shop.change(dice)
            totals["changed"] += 1
        done = run(shop, select=[name])[unique_id]
        require_equal(shop, unique_id)
        assert shop.timeline(unique_id).commit_instants[: len(commits)] == commits, "finished slices were built again"
        assert "SLC001" in rules(done) and left_beside(shop) == []
        totals[name] += 1
    assert totals["changed"]
    run(shop)
    shop.change(dice)
    done = run(shop)
    require_equal(shop)
    assert all(each.strategy != "full_refresh" for each in done.values()), "the tables follow changes as all others"
    with Project.load(shop.root) as project:
        compared = project.verify(sample=50)
    assert [each.status for each in compared] == ["pass"] * 3


def test_an_edited_query_begins_anew_and_says_so(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt(shop, monkeypatch, 2, select=["daily"], slices=4)
    write_models(shop, daily=QUERIES[DAILY][1].replace("> 10", "> 10 and true"))
    done = run(shop, select=["daily"], slices=4)[DAILY]
    assert rules(done)["SLC002"] == "2 slices: the query or its settings have changed since"
    require_equal(shop, DAILY)
    interrupt(shop, monkeypatch, 2, select=["daily"], slices=4, full_refresh=True)
    next(Path(begun(shop, DAILY).uri).rglob("*.parquet")).unlink()
    done = run(shop, select=["daily"], slices=4, full_refresh=True)[DAILY]
    assert rules(done)["SLC002"].startswith("2 slices: ") and "missing" in rules(done)["SLC002"]
    interrupt(shop, monkeypatch, 1, select=["daily"], slices=4, full_refresh=True)
    done = run(shop, select=["daily"], full_refresh=True)[DAILY]
    assert rules(done)["SLC002"] == "1 slices: the table is built as a whole"
    assert left_beside(shop) == []
    require_equal(shop, DAILY)


def test_a_build_whose_inputs_have_lost_their_history_begins_anew(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt(shop, monkeypatch, 2, select=["daily"], slices=4)
    record = table_state(begun(shop, DAILY)).record
    assert record is not None
    shop.commit(ORDERS, random.Random(4))
    pinned = record.frontier[ORDERS].partition("_")[0]
    for path in (shop.root / "warehouse/dws/orders/.hoodie/timeline").glob(f"{pinned}*"):
        path.unlink()
    done = run(shop, select=["daily"])[DAILY]
    assert "SLC002" in rules(done), done.reasons
    require_equal(shop, DAILY)


def test_history_that_an_unfinished_build_reads_is_kept(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    run(shop)
    interrupt(shop, monkeypatch, 1, select=["daily"], slices=4, full_refresh=True)
    dice = random.Random(8)
    for _ in range(18):
        shop.commit(ORDERS, dice)
    commits = len(shop.timeline(ORDERS).commit_instants)
    run(shop, select=["per_day", "by_tens"])
    assert len(shop.timeline(ORDERS).commit_instants) == commits > AT_LEAST + SLACK, "the build reads an old state"
    run(shop, select=["daily"])
    assert len(shop.timeline(ORDERS).commit_instants) < AT_LEAST + SLACK
    require_equal(shop)


def test_slices_so_far_are_shown_where_that_is_configured(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_models(shop, ", build_by='day', build_visible=true")
    (shop.root / "models/total.sql").write_text("select sum(n) as n from {{ ref('per_day') }}\n")
    interrupt(shop, monkeypatch, 2, select=["per_day"])
    rows, all_rows = stored(shop, PER_DAY), sorted(expected(shop, PER_DAY), key=repr)
    assert rows == all_rows[: len(rows)] and len(rows) == 2, "the slices so far"
    assert main(["explain", "per_day", "--output", "json"]) == 0
    [plan] = json.loads(capsys.readouterr().out)["models"]
    assert plan["slices"]["built"] == 2 and plan["slices"]["next"] == all_rows[2][0] and plan["slices"]["visible"]
    assert main(["explain", "per_day"]) == 0
    assert f"2 of {len(all_rows)} slices by day are built; next from {all_rows[2][0]} on" in capsys.readouterr().out
    assert main(["verify", "--sample", "-s", "per_day"]) == 1
    assert f"{len(all_rows) - 2} slices are left" in capsys.readouterr().out
    shop.commit(ORDERS, random.Random(12))
    run(shop)
    require_equal(shop)
    assert shop.stored("model.shop.total") == [(sum(row[1] for row in stored(shop, PER_DAY)),)]
    assert left_beside(shop) == []


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("select max(day) as day, customer from {{ ref('orders') }} group by customer", "a GROUP BY does not hold it"),
        ("select day, id from {{ ref('orders') }} order by id limit 3", "LIMIT"),
        ("select day, id, row_number() over (partition by customer order by id) as n from {{ ref('orders') }}",
         "PARTITION BY of a window function does not hold it"),
        ("select cast(x as string) as day, id, count(*) over (partition by x) as n"
         " from (select id, cast(amount as double) as x from {{ ref('orders') }})",
         "whose equal values are not all alike"),
        ("select cast(day as timestamp) as day, id from {{ ref('orders') }}", "its type is timestamp"),
        ("select day, id, uuid() as u from {{ ref('orders') }}", "the query is run as a whole: FUN002"),
    ],
)  # fmt: skip
def test_what_cannot_be_sliced_is_refused_where_slices_are_configured(
    query: str, why: str, shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    write_models(shop, ",\n  build_by='day'", daily=query)
    assert main(["run", "-s", "daily"]) == 1
    printed = capsys.readouterr().out
    assert why in printed and "models/daily.sql:2:3" in printed and "Traceback" not in printed, printed
    assert not shop.timeline(DAILY).exists


def test_what_cannot_be_sliced_is_built_as_a_whole_among_others(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    write_models(shop, daily="select max(day) as day, customer from {{ ref('orders') }} group by customer")
    assert main(["run", "-s", "daily", "--slices", "3"]) == 1
    assert "cannot be built in slices" in capsys.readouterr().out
    done = run(shop, slices=3)
    assert rules(done[DAILY])["SLC003"] == "its partition column day: a GROUP BY does not hold it"
    assert "SLC001" in rules(done[PER_DAY])
    require_equal(shop, PER_DAY, BY_TENS)


def test_a_range_is_computed_again_and_nothing_else(shop: Shop) -> None:
    run(shop)
    days = sorted({row[0] for row in stored(shop, DAILY)})
    spoil(shop, DAILY, days)
    shop.commit(ORDERS, random.Random(2))
    low, high = days[1], days[3]
    done = run(shop, select=["daily"], backfill=f"{low}..{high}")[DAILY]
    rows, now = stored(shop, DAILY), set(expected(shop, DAILY))
    assert {row for row in rows if low <= row[0] <= high} == {row for row in now if low <= row[0] <= high}
    assert {row[2] for row in rows if not low <= row[0] <= high and row not in now} == {999}, "others are left alone"
    assert done.strategy == "partition_rescan"
    before = len(shop.timeline(DAILY).commit_instants)
    run(shop, select=["daily"], backfill=f"{low}..{high}")
    assert len(shop.timeline(DAILY).commit_instants) == before, "nothing is written where nothing differs"
    run(shop, select=["daily"], backfill="2024..")
    require_equal(shop, DAILY)


def spoil(shop: Shop, unique_id: str, days: list[str]) -> None:
    def wrong(rows: list[Values]) -> list[Values]:
        return [{**row, "amount": 999} for row in rows if str(row["day"]) in days]

    plant(shop.timeline(unique_id), wrong)


def test_groups_and_computed_partitions_are_computed_again(shop: Shop) -> None:
    run(shop)

    def wrong(rows: list[Values]) -> list[Values]:
        return [{**row, "n": 77} for row in rows]

    for unique_id, words in ((PER_DAY, "2024-01"), (BY_TENS, "2024-01-0..2024-01-2")):
        plant(shop.timeline(unique_id), wrong)
        words = words if ".." in words else f"{words}..{words}"
        run(shop, select=[unique_id.rpartition(".")[2]], backfill=words)
    require_equal(shop, PER_DAY, BY_TENS)
    for _ in range(3):
        shop.change(random.Random(9))
    run(shop)
    require_equal(shop)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--backfill", "2024-01-05"], 2, "'2024-01-05' is not FROM..TO"),
        (["--backfill", ".."], 2, "'..' is not FROM..TO"),
        (["--backfill", "2024..2025", "--full-refresh"], 2, "exclude each other"),
        (["--backfill", "2024..2025", "-s", "daily", "plain"], 2, "no partitions have plain"),
        (["--backfill", "2024-13..2025"], 1, "'2024-13' is not a day, a month or a year"),
        (["--backfill", "2024-02..2024-01"], 1, "2024-02 comes after 2024-01"),
        (["--backfill", "2024-01-09..2024-01-20"], 1, "rows before 2024-01-10 are frozen"),
        (["--backfill", "..2024-01-20"], 1, "rows before 2024-01-10 are frozen"),
    ],
)
def test_a_range_that_cannot_be_computed_again_is_refused(
    words: list[str], code: int, said: str, shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    (shop.root / "models/plain.sql").write_text("select id from {{ ref('orders') }}\n")
    frozen = {"daily": "frozen_before='2024-01-10'"}
    run(shop, select=["daily"])
    write_models(shop, f", {frozen['daily']}")
    run(shop, select=["daily"], full_refresh=True)
    before = shop.timeline(DAILY).frontier
    shop.commit(ORDERS, random.Random(2))
    words = words if "-s" in words else [*words, "-s", "daily"]
    capsys.readouterr()
    assert main(["run", *words]) == code
    printed = capsys.readouterr()
    assert said in printed.out + printed.err and "Traceback" not in printed.out + printed.err, printed
    assert shop.timeline(DAILY).frontier == before, "nothing is changed"


def test_a_range_of_a_table_that_is_not_built_or_of_another_query_is_refused(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "-s", "daily", "--backfill", "2024..2025"]) == 1
    assert "it does not exist yet" in capsys.readouterr().out
    run(shop, select=["daily"])
    write_models(shop, daily=QUERIES[DAILY][1].replace("amount > 10", "amount > 20"))
    assert main(["run", "-s", "daily", "--backfill", "2024..2025"]) == 1
    assert "this run recomputes all of it" in capsys.readouterr().out


def test_a_signal_ends_a_build_after_a_slice(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(slice_run, "stop_signals", SimpleNamespace(is_wished=lambda: True))
        assert main(["run", "-s", "daily", "--slices", "3"]) == 1
    assert "1 of 3 slices by day are built" in capsys.readouterr().out
    assert main(["retry"]) == 0
    assert "2 of 3 slices by day are built" in capsys.readouterr().out
    require_equal(shop, DAILY)


def test_retry_goes_on_with_the_range(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    run(shop)
    spoil(shop, DAILY, sorted({row[0] for row in stored(shop, DAILY)}))
    with monkeypatch.context() as patched:
        patched.setattr("sqlmesh_like.plan.slices.backfill.plan_backfill", _refuse)
        assert main(["run", "-s", "daily", "--backfill", "2024..2024"]) == 1
    assert main(["retry"]) == 0
    require_equal(shop, DAILY)


def _refuse(*_: object) -> None:
    from sqlmesh_like.errors import NodeError

    raise NodeError("not now")
