"""By which columns rows of a table are sampled: its groups where rows are computed by group."""

from __future__ import annotations

import pytest

from sqlmesh_like.names import visible
from sqlmesh_like.plan.sample_columns import inexact_columns, sample_columns
from tests.properties.lake import compiled, schema

COLUMNS = schema(a="int", s="string", d="decimal(10,2)", f="double", arr="array<string>")

CASES = {
    "select s, a, sum(d) as total from ods.t group by s, a": ("s", "a"),
    "select upper(s) as S2, sum(d) as total from ods.t group by upper(s)": ("S2",),
    "select sum(d) as total, s as name from ods.t group by s having sum(d) > 1": ("name",),
    "select s, n + 1 as m from (select s, count(*) as n from ods.t group by s) as g where n > 1": ("s",),
    "select distinct a, s from ods.t": ("a", "s"),
    "select a, s from (select a, s, row_number() over (partition by s order by a) as r from ods.t) where r = 1": ("s",),
    "select s, f, sum(d) as total from ods.t group by s, f": ("s",),
    # Neither groups nor a declared key: all that can be hashed.
    "select a, s, f, arr from ods.t": ("a", "s"),
    "select f, count(*) as n from ods.t group by f": ("n",),
    "select f, f + 1 as g from ods.t": (),
    "select t.a, u.s from ods.t join ods.u on t.a = u.a": ("a", "s"),
}


@pytest.mark.parametrize(("sql", "expected"), CASES.items(), ids=CASES)
def test_the_columns_of_a_sample(sql: str, expected: tuple[str, ...]) -> None:
    model = compiled(sql, COLUMNS)
    shown = model.facts.schema
    assert shown is not None
    assert sample_columns(model, visible(shown)) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select a, f from ods.t", ()),
        ("select a, f as g from ods.t union all select a, f as g from ods.u", ()),
        ("select a, f, f * 2 as twice from ods.t", ("twice",)),
        ("select f, sum(f) as total, count(*) as n from ods.t group by f", ("total",)),
        ("select a, f from ods.t limit 3", ("f",)),
    ],
)
def test_only_floating_point_numbers_that_are_computed_may_differ_in_their_last_digits(
    sql: str, expected: tuple[str, ...]
) -> None:
    model = compiled(sql, COLUMNS)
    shown = visible(model.facts.schema or schema(a="int", f="double"))
    assert inexact_columns(model, shown) == expected
