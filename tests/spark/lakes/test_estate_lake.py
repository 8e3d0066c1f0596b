"""The property developer's lake: each question answered as computed by hand, a day later, and under another rule."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from decimal import Decimal as D
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demo.estate.log import SIGNED, Developer, documented, write
from tests.spark.demo_lake import DEMO, DemoLake

DAYS = ("2024-05-02T12:00:00Z", "2024-05-03T12:00:00Z")
ROUNDS, RECORDS = 10, 9 * 1000


@pytest.fixture
def estate(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DemoLake:
    return DemoLake.of("estate", spark, tmp_path, monkeypatch)


def hour(day: int, hour_: int) -> datetime:
    return datetime(2024, 5, day, hour_)


@pytest.mark.release
@pytest.mark.checklist(8, 71, 72, 73, 74, 75, 76, 77, 78, 79)
def test_the_questions_are_answered_as_by_hand_as_the_clock_moves_on(estate: DemoLake) -> None:
    write(estate.root, documented("part1"), "part1")
    estate.sml("ingest")
    estate.sml("build", "--now", DAYS[0])
    assert len(estate.rows("sales", "dwd")) == 9
    assert estate.rows("buildings", "dwd") == [(1, "North", 1), (2, "South", 1)]
    assert sorted(estate.rows("events_by_hour")) == [
        (hour(1, 13), 2),
        (hour(2, 9), 2),
        (hour(2, 10), 1),
        (hour(2, 11), 1),
    ]
    assert estate.rows("deals_today") == [(1,)]
    assert estate.rows("contracts_by_agent") == [(1, D("100000.0000"), 1), (2, D("250000.5000"), 1)]
    assert estate.rows("hard_units") == [(11, 1, 3.0, 1), (12, 2, 2.0, 0), (13, 1, 2.0, 1)]
    assert estate.rows("agent_success") == [(1, "Ann", 1, 3.0, 1), (2, "Bob", 2, 2.0, 1), (3, "Cid", 1, 2.0, 0)]
    assert estate.rows("demanding_customers") == [(101, 1, 3.0, 0), (102, 2, 2.0, 1), (103, 1, 2.0, 1)]
    assert [row for row in estate.rows("funnel") if row[0] == 101] == [
        (101, 11, 1, 1, 1, 0), (101, 11, 2, 2, 2, 3), (101, 11, 3, 3, 3, 22),
    ]  # fmt: skip
    assert estate.rows("commissions") == [(1, D("2000")), (2, D("5000.01"))]

    write(estate.root, documented("part2"), "part2")
    estate.sml("ingest")
    estate.sml("run", "--now", DAYS[1])
    assert sorted(estate.rows("events_by_hour")) == [(hour(3, 10), 1), (hour(3, 11), 1)], "a day has passed"
    assert estate.rows("deals_today") == [(1,)]
    # Agent 1's contract was corrected; agent 2's was signed 365 days ago, and leaves; nothing is counted twice.
    assert estate.rows("contracts_by_agent") == [(1, D("120000.0000"), 1), (3, D("80000.0000"), 1)]
    assert estate.strategy("contracts_by_agent") == "aggregate_merge"
    assert estate.rows("hard_units") == [(11, 2, 2.0, 1), (12, 2, 2.5, 1), (13, 1, 2.0, 1)]
    assert estate.rows("agent_success") == [(1, "Ann", 1, 3.0, 1), (2, "Robert", 3, 5 / 3, 1), (3, "Cid", 1, 3.0, 1)]
    assert estate.rows("demanding_customers") == [
        (101, 1, 3.0, 0), (102, 2, 2.0, 1), (103, 1, 3.0, 0), (104, 1, 1.0, 1),
    ]  # fmt: skip
    assert estate.rows("commissions") == [(1, D("2400")), (2, D("5000.01")), (3, D("1600"))]

    shutil.copyfile(DEMO / "estate" / "events" / "new_rule.csv", estate.root / "seeds" / "commission_rule.csv")
    estate.sml("seed")
    estate.sml("run", "--now", DAYS[1])
    assert estate.rows("commissions") == [(1, D("1200")), (2, D("2500.005")), (3, D("800"))]
    estate.sml("verify")


@pytest.mark.checklist(71, 72, 73)
@pytest.mark.deep
@pytest.mark.timeout(3600)
def test_a_long_log_is_followed_round_by_round(estate: DemoLake) -> None:
    developer = Developer(seed=1)
    for number in range(ROUNDS):
        write(estate.root, developer.records(RECORDS if number == 0 else RECORDS // 10, days=20), f"{number:02}")
        now = developer.now.astimezone(UTC)
        estate.sml("ingest")
        estate.sml("build" if number == 0 else "run", "--now", f"{now:%Y-%m-%dT%H:%M:%SZ}")
        signed = [sale for sale in developer.sales.values() if sale["StatusId"] == SIGNED]
        today = sum(isinstance(sale["EventAt"], datetime) and sale["EventAt"].date() == now.date() for sale in signed)
        assert estate.rows("deals_today") == [(today,)]
    estate.sml("verify")
