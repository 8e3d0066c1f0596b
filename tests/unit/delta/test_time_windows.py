"""`window(ts, …)` as a key, as a value and sliding: Spark's windows, followed through random changes (on DuckDB)."""

from __future__ import annotations

from datetime import date, datetime
from random import Random

import pytest

from sqlmesh_like.duckdb.programs.memory_lake import LakeSnapshot
from tests.levels import count, sample
from tests.properties.lake import T, U, check, compiled, final_rows, schema, states

COLUMNS = schema(a="int", s="string", ts="timestamp", d="date")
MOMENTS = (
    None, datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1), datetime(1582, 10, 10, 3),
    datetime(2024, 1, 1, 10, 5), datetime(2024, 1, 1, 10, 59, 59, 999999), datetime(2024, 1, 1, 11),
    datetime(2024, 3, 31, 2, 30),
)  # fmt: skip
DAYS = (None, date(1, 1, 1), date(1960, 1, 5), date(2024, 1, 1), date(2024, 1, 2))
PATHS = count(1, 8, 60)
MERGED = {
    "whole": "select window(ts, '1 hour') as w, count(*) as n, min(a) as low from ods.t group by window(ts, '1 hour')",
    "fields by its name": "select window.start, window.end as e, count(*) as n from ods.t group by window(ts, '1 day')",
    "by alias": "select window(ts, '10 minutes') as w, w.end as e, sum(a) as n from ods.t group by w",
    "by position": "select window(ts, '1 hour').start as b, count(*) as n from ods.t group by 1",
    "of all": "select window(ts, '1 hour') as w, s, count(*) as n from ods.t group by all",
    "sliding": "select window(ts, '1 hour', '25 minutes') as w, count(*) as n from ods.t group by 1",
    "sliding, moved":
        "select window(ts, '1 hour', '20 minutes', '-5 minutes').end as w, s, max(a) as n from ods.t group by s, 1",
    "its end alone": "select count(*) as n from ods.t where a > 0 group by window(ts, '90 minutes').end",
    "over a join": "select t.s, window(t.ts, '1 hour').start as b, count(*) as n from ods.t join ods.u on t.a = u.a"
                   " group by 1, 2",
    "over an outer join": "select window.start as b, t.s, count(u.s) as n from ods.t left join ods.u on t.a = u.a"
                          " group by window(t.ts, '1 week'), t.s",
    "rows that exist": "select window(ts, '1 hour').start as b, sum(a) as n from ods.t"
                       " where exists (select 1 from ods.u where u.a = t.a) group by window(ts, '1 hour')",
    "of windows": "select window(b, '1 day').start as day, sum(n) as n from (select window(ts, '1 hour').start as b,"
                  " count(*) as n from ods.t group by 1) as q group by window(b, '1 day')",
}  # fmt: skip
OTHERS = {
    "a value of a row": "select a, window(ts, '1 hour', '25 minutes').start as b from ods.t",
    "of dates, with HAVING": "select window, sum(a) as n from ods.t group by window(d, '10 days')"
                             " having window.start > '2000-01-01'",
    "counted": "select s, count(distinct window(ts, '1 hour').start) as n from ods.t group by s",
    "ranked": "select window(ts, '1 hour').start as b, rank() over (order by count(*)) as r from ods.t"
              " group by window(ts, '1 hour')",
    "distinct": "select distinct window(ts, '1 hour').start as b from ods.t",
}  # fmt: skip
REFUSED = {
    "select window(ts, '1 month').start as b, count(*) as n from ods.t group by 1":
        "WINDOW(ts, '1 month'), whose durations are not whole numbers of weeks or less",
    "select window(ts, '1 hour', '2 hours').start as b from ods.t":
        "WINDOW(ts, '1 hour', '2 hours'), which Spark refuses",
    "select window(ts, '1 hour').start as b, window(d, '1 day').start as e from ods.t":
        "several windows of time in one SELECT",
    "select window(ts, '1 hour').start as b, s, count(*) as n from ods.t group by rollup(window(ts, '1 hour'), s)":
        "a window of time beside ROLLUP, CUBE or GROUPING SETS",
    "select session_window(ts, '1 hour').start as b, count(*) as n from ods.t group by session_window(ts, '1 hour')":
        "SESSION_WINDOW, which depends on the rows before: mark gaps by LAG, and add them up",
    "select window(a, '1 hour').start as b from ods.t": "windows of time over values of type int",
    "select window(ts, '1 day', '1 minute').start as b from ods.t":
        "WINDOW(ts, '1 day', '1 minute'), of more than 200 windows a row",
    "select window(ts, '1 hour').start as b from (select a as window, ts from ods.t) as q":
        "a window of time beside a column or table of the name 'window'",
}  # fmt: skip


def path(number: int) -> list[LakeSnapshot]:
    """States of both tables, each some random changes after the one before."""
    random = Random(number)
    states: list[LakeSnapshot] = [{T: {}, U: {}}]
    for _ in range(5):
        state = dict(states[-1])
        for table in (T, U):
            rows = {key: row for key, row in state[table].items() if random.random() > 0.2}
            rows |= {
                str(key): tuple(map(random.choice, ((None, 0, 1, 2), (None, "x", "y"), MOMENTS, DAYS)))
                for key in range(7)
                if random.random() < 0.4
            }
            state[table] = random.choices((rows, {}), (8, 1))[0]
        states.append(state)
    return states[1:]


@sample("name", MERGED | OTHERS, every=4)
def test_windows_of_time_follow_random_changes(name: str) -> None:
    plan = compiled((MERGED | OTHERS)[name], COLUMNS)
    strategy = plan.classification.strategy
    assert (strategy == "aggregate_merge") == (name in MERGED), plan.classification.reasons
    assert strategy != "full_refresh", plan.classification.reasons
    assert [check(plan, COLUMNS, path(number)) for number in range(PATHS)]


def test_windows_are_those_of_spark() -> None:
    """As Spark 3.5 gives them: counted from 1970 also before it, moved by the offset, none where there is no time."""
    rows = {str(number): (number, "x", moment, None) for number, moment in enumerate((*MOMENTS[:2], MOMENTS[4]))}
    hours = compiled("select a, window(ts, '1 hour', '1 hour', '-5 minutes') as w from ods.t", COLUMNS)
    assert final_rows(hours, COLUMNS, states(rows)) == [
        (1, {"start": datetime(1969, 12, 31, 23, 55), "end": datetime(1970, 1, 1, 0, 55)}),
        (2, {"start": datetime(2024, 1, 1, 9, 55), "end": datetime(2024, 1, 1, 10, 55)}),
    ]
    sliding = compiled("select window(ts, '1 hour', '25 minutes').start as b, a from ods.t", COLUMNS)
    assert final_rows(sliding, COLUMNS, states({"2": rows["2"]})) == [
        (datetime(2024, 1, 1, 10, 5), 2), (datetime(2024, 1, 1, 9, 15), 2), (datetime(2024, 1, 1, 9, 40), 2),
    ]  # fmt: skip


@pytest.mark.parametrize("sql", REFUSED)
def test_other_windows_of_time_are_rebuilt_and_say_why(sql: str) -> None:
    classification = compiled(sql, COLUMNS).classification
    assert classification.strategy == "full_refresh"
    assert [reason.message for reason in classification.reasons] == [REFUSED[sql]]
