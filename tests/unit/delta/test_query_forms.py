"""Forms of joins, subqueries and groups: equal to a recompute after each batch of random changes (on DuckDB)."""

from __future__ import annotations

from random import Random

import pytest

from sqlmesh_like.duckdb.programs.memory_lake import LakeSnapshot
from tests.properties.lake import T, U, check, compiled, schema

COLUMNS = schema(a="int", b="int", s="string", f="double")
VALUES = ((None, 0, 1, 2, 3), (None, 0, 1, 2, 3), (None, "", "x", "y"), (None, 0.0, -0.0, 1.5, float("nan")))
FORMS = {
    "a left join by less": "select t.a, u.b from ods.t left join ods.u on t.a > u.b",
    "a right join by less": "select t.a, u.b from ods.t right join ods.u on t.a > u.b",
    "a full join by less": "select t.a, u.b from ods.t full join ods.u on t.a > u.b",
    "doubles that are equal": "select t.a, u.b from ods.t left join ods.u on t.f = u.f",
    "EXISTS by less": "select a, b from ods.t where exists (select 1 from ods.u where u.a > t.a)",
    "NOT EXISTS by either":
        "select a from ods.t where not exists (select 1 from ods.u where u.a = t.a or u.b > t.b)",
    "NOT IN by less": "select a, b from ods.t where a not in (select b from ods.u where u.a < t.a)",
    "groups of doubles": "select f, count(*) as n, sum(a) as x from ods.t group by f",
    "groups of quotients": "select a / 4 as g, count(distinct b) as n from ods.t group by a / 4",
    "distinct doubles": "select distinct f, s from ods.t",
    "a union of doubles": "select f, a from ods.t union select f, b from ods.u",
    "doubles except doubles": "select f from ods.t except select f from ods.u",
    "doubles that are integers": "select f from ods.t intersect select a from ods.u",
    "IN of groups": "select a, b from ods.t where b in"
                    " (select max(b) from ods.u where u.a = t.a group by s having count(*) > 1)",
    "NOT IN of groups": "select a, b from ods.t where b not in (select max(b) from ods.u where u.a = t.a group by s)",
    "IN of an extremum or not":
        "select a, b from ods.t where b in (select max(b) from ods.u where u.a <=> t.a) or s = 'x'",
    "NOT EXISTS of groups": "select a, b from ods.t where not exists"
                            " (select s from ods.u where u.a = t.a group by s having max(b) > 1)",
    "a count of no group is NULL":
        "select a, (select count(b) from ods.u where u.a = t.a group by u.a having count(*) > 1) as m from ods.t",
    "a question in a question": "select a, b from ods.t where b in (select min(u.b) from ods.u where u.a = t.a"
                                " and u.b in (select x.b from ods.t as x where x.s = u.s) group by u.s)",
    "joined again": "select x.b, y.a from (select t.a, u.b from ods.t left join ods.u on t.a > u.b) as x"
                    " left join ods.t as y on x.a = y.a",
}  # fmt: skip


def random_path(number: int, batches: int = 5) -> list[LakeSnapshot]:
    """States of both tables, each some random changes after the one before; now and then a table is empty."""
    random = Random(number)
    path: list[LakeSnapshot] = [{T: {}, U: {}}]
    for _ in range(batches):
        state = dict(path[-1])
        for table in (T, U):
            rows = {key: row for key, row in state[table].items() if random.random() > 0.2}
            rows |= {str(key): tuple(map(random.choice, VALUES)) for key in range(7) if random.random() < 0.35}
            state[table] = random.choices((rows, path[-1][table], {}), (6, 3, 1))[0]
        path.append(state)
    return path[1:]


@pytest.mark.parametrize("name", FORMS)
def test_a_form_follows_random_changes(name: str) -> None:
    plan = compiled(FORMS[name], COLUMNS)
    assert plan.classification.strategy != "full_refresh", plan.classification.reasons
    assert [check(plan, COLUMNS, random_path(number)) for number in range(3)]
