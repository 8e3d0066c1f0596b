"""Where a query shows the sign of a zero, 0.0 and -0.0 are two values; elsewhere DuckDB may compute the program."""

from __future__ import annotations

import pytest

from tests.properties.lake import compiled, schema

COLUMNS = schema(id="int", d="double", f="float", s="string", g="string")


def keeps_signs(sql: str) -> bool:
    program = compiled(sql, COLUMNS).table.program
    assert program is not None
    return "'-0.0'" in program.steps[0].query.sql("spark")


@pytest.mark.parametrize(
    "sql",
    [
        "select id, cast(d as string) as x from ods.t",
        "select id, s || f as x from ods.t",
        "select id, coalesce(d, 'none') as x from ods.t",
        "select id from ods.t where concat(f, '') like '-%'",
        "select id, hash(d) as x, 1 as y from ods.t",
        "select s, max(cast(d as string)) as x from ods.t group by s",
        "select id, d as x from ods.t union all select id, s from ods.t",
        "select l.id from ods.t as l join ods.t as r on cast(l.d as string) = r.s",
    ],
)
def test_the_sign_is_part_of_the_change(sql: str) -> None:
    assert keeps_signs(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "select id, d, -f as g, round(d * 2 + f, 1) as r, upper(s) as u from ods.t where d > 0 or s like 'a%'",
        "select s, sum(d) as x, max(f) as y, count(d) as n, upper(s) as z from ods.t group by s",
        "select id, cast(cast(d as decimal(10, 2)) as int) as x, case when d = 0 then f end as y from ods.t",
        "select id, row_number() over (partition by s order by d) as n from ods.t",
    ],
)
def test_equal_results_need_no_sign(sql: str) -> None:
    assert not keeps_signs(sql)
