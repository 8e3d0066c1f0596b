"""Models that read the clock on real tables: rows that cross it enter and leave, and the same day costs nothing."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from tests.spark.lake import Lake

NOON = datetime(2024, 5, 2, 12, tzinfo=UTC)


@pytest.mark.release
@pytest.mark.checklist(73, 75)
def test_rows_cross_the_clock_with_and_without_a_change_of_the_input(lake: Lake) -> None:
    events = lake.source("events", "id int, kind string, dt date, at timestamp")
    people = lake.source("people", "id int, name string")
    lake.model("recent", "select id, kind from @events where dt >= date_sub(current_date, 1)")
    lake.model("counted", "select kind, count(*) as n, min(id) as x from @events where dt = current_date group by kind")
    lake.model("named", "select e.id, p.name from @people p left join @events e on e.id = p.id and e.at < now()")
    lake.model("late", "select id, unix_timestamp() > unix_timestamp(at) as past from @events where at < now()")
    events.upsert(
        (1, "a", date(2024, 5, 2), datetime(2024, 5, 2, 11)),
        (2, "a", date(2024, 5, 3), datetime(2024, 5, 2, 13)),
        (3, None, None, None),
    )
    people.upsert((1, "x"), (2, "y"))
    lake.now = NOON
    assert set(lake.run_well().values()) == {"full_refresh"}
    lake.assert_maintained()
    lake.now = NOON.replace(hour=14)
    again = lake.run_well()
    assert again == {"recent": "no_op", "counted": "no_op", "named": "group_recompute", "late": "full_refresh"}
    lake.assert_maintained()
    assert lake.rows("named") == [(1, "x"), (2, "y")]
    lake.now = datetime(2024, 5, 4, tzinfo=UTC)
    events.upsert((3, "b", date(2024, 5, 4), datetime(2024, 5, 3)))
    followed = lake.run_well()
    assert followed["recent"] == "row_based"
    assert followed["counted"] == "aggregate_merge"
    lake.assert_maintained()
    assert lake.rows("recent") == [(2, "a"), (3, "b")]
    assert lake.rows("counted") == [("b", 1, 3)]
    lake.now = NOON
    lake.run_well()
    lake.assert_maintained()
    assert lake.rows("counted") == [("a", 1, 1)]
