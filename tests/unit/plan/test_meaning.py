"""Two texts of one meaning leave a table as it is; where that is not certain they have two."""

from __future__ import annotations

import pytest

from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.plan.edits.outline import stored_outline
from sqlmesh_like.plan.edits.recorded_query import as_recorded, is_table_of, recorded_query
from sqlmesh_like.plan.fingerprint import fingerprint, is_of_query, meaning
from sqlmesh_like.plan.history import TableRecord
from tests.properties.lake import compiled, schema


def of(sql: str) -> CompiledModel:
    return compiled(sql, schema(a="int", b="int", x="double", s="string", ts="timestamp"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("select a, s from ods.t where a > 1 and b < 2",
         "select p.a, p.s -- why\nfrom ods.t as p where 2 > p.b and p.a > 1"),
        ("select a + 1 as c from ods.t where a > 1",
         "with w as (select a as k, s from ods.t) select k + 1 c from w where k > 1"),
        ("select a from ods.t where a > 1",
         "select a from (select *, upper(s) as big from ods.t) where not a <= 1"),
        ("select t.a from ods.t join ods.u on t.a = u.b and u.a > 3",
         "select t.a from ods.t, ods.u where u.a > 3 and u.b = t.a"),
        ("select a, sum(b) as n from ods.t group by a",
         "select q.k as a, sum(q.v) as n from (select a as k, b as v from ods.t) q group by 1"),
        ("select distinct a from ods.t where b between 1 and 2",
         "select distinct a from ods.t where b <= 2 and b >= 1"),
        ("select a, row_number() over (partition by b order by a) as n from ods.t",
         "select k as a, row_number() over (partition by l order by k) as n from (select a as k, b as l from ods.t)"),
    ],
)  # fmt: skip
def test_what_is_only_written_otherwise_rebuilds_nothing(before: str, after: str) -> None:
    old = of(before)
    record = TableRecord("model.p.m", "of the text", {}, "2024-01-01T00:00:00+00:00", "row_based", meaning=meaning(old))
    assert is_of_query(TableRecord.from_json(record.to_json()), of(after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("select a, b from ods.t", "select b, a from ods.t"),
        ("select a as c from ods.t", "select a as d from ods.t"),
        ("select a - (b - 1) as c from ods.t", "select a - b - 1 as c from ods.t"),
        ("select x + (x + b) as c from ods.t", "select x + x + b as c from ods.t"),
        ("select t.a from ods.t join ods.u on t.a = u.a", "select t.a from ods.u join ods.t on t.a = u.a"),
        ("select a from ods.t union all select b from ods.u", "select b as a from ods.u union all select a from ods.t"),
        ("select a, b, count(*) as n from ods.t group by a, b", "select a, b, count(*) as n from ods.t group by b, a"),
        ("select t.a from ods.t left join ods.u on t.a = u.a and t.b > 1",
         "select t.a from ods.t left join ods.u on t.a = u.a where t.b > 1"),
        ("select a from ods.t where a = 1 or b = 1", "select a from ods.t where a = 1 and b = 1"),
        ("select a from ods.t where a <=> b", "select a from ods.t where a = b"),
        ("select a, 1.0 as c from ods.t", "select a, 1.00 as c from ods.t"),
        ("select a from ods.t order by a limit 2", "select a from ods.t order by a limit 2 offset 1"),
        ("select a, rank() over (order by b) as r from ods.t",  # the first one keeps b in a hidden column
         "select a, r from (select a, rank() over (order by b) as r from ods.t)"),
        ("select max(n) as n from (select a, count(*) as n from ods.t where b > 1 group by a)",
         "select max(n) as n from (select a, count(*) as n from ods.t group by a) where n > 1"),
    ],
)  # fmt: skip
def test_what_may_have_other_rows_keys_or_columns_has_another_meaning(before: str, after: str) -> None:
    assert meaning(of(before)) != meaning(of(after))


_JOIN = "from ods.t join ods.u on t.a = u.a"
_TURNED = "from ods.u join ods.t on t.a = u.a"
_TWICE = "from ods.t join ods.t v on t.a = v.b join ods.u on t.a = u.a and v.b = u.b"


@pytest.mark.parametrize(
    ("before", "after", "is_recorded"),
    [
        (f"select t.a, u.b {_JOIN}", f"select t.a, u.b {_TURNED}", True),
        (f"select t.a, u.b {_TWICE}",
         "select t.a, u.b from ods.u join (ods.t cross join ods.t v) on t.a = u.a and v.b = u.b and t.a = v.b", True),
        (f"select q.a, v.b from (select distinct t.a {_JOIN}) q join ods.u v on q.a = v.a",
         f"select q.a, v.b from ods.u v join (select distinct t.a {_TURNED}) q on q.a = v.a", True),
        ("select t.a from ods.t join (select a, max(b) as b from ods.t group by a) q on t.b = q.b",
         "select t.a from (select a, max(b) as b from ods.t group by a) q join ods.t on t.b = q.b", True),
        ("select t.a, v.b from ods.t join ods.t v on t.a = v.b",
         "select v.a, t.b from ods.t join ods.t v on t.a = v.b", False),
        (f"select t.a, count(*) as n {_JOIN} group by t.a", f"select t.a, count(*) as n {_TURNED} group by t.a", True),
        (f"select t.a, max(u.b) over (partition by t.a) as m {_JOIN}",
         f"select t.a, max(u.b) over (partition by t.a) as m {_TURNED}", True),
        ("select a from ods.t union all select a from ods.u",
         "select a from ods.u union all select a from ods.t", True),
        (f"select t.a, u.b {_JOIN}", f"select t.a, t.b {_TURNED}", False),
        (f"select t.a, u.b {_JOIN}", f"select t.a, u.b as c {_TURNED}", False),
        (f"select t.a, u.b {_TWICE}", f"select v.a, u.b {_TWICE}", False),
        (f"select t.a, u.b {_JOIN}", "select t.a, u.b from ods.u left join ods.t on t.a = u.a", False),
        (f"select t.a, u.b {_JOIN} order by t.a limit 2", f"select t.a, u.b {_TURNED} order by t.a limit 2", False),
        (f"select t.a, row_number() over (order by t.a) as n {_JOIN}",
         f"select t.a, row_number() over (order by t.a) as n {_TURNED}", False),
        (f"select t.a, first(u.b) as m {_JOIN} group by t.a", f"select t.a, first(u.b) as m {_TURNED} group by t.a",
         False),
    ],
)  # fmt: skip
def test_a_query_with_other_keys_goes_on_as_recorded(before: str, after: str, is_recorded: bool) -> None:
    old, new = of(before), of(after)
    record = TableRecord(
        "model.p.m", fingerprint(old), {}, "2024-01-01T00:00:00+00:00", "row_based", query=recorded_query(old)
    )
    used = as_recorded(record, new)
    assert (used is not new) == is_recorded == is_table_of(record, new)
    assert not is_recorded or fingerprint(used) == fingerprint(old)


@pytest.mark.parametrize("below", ["a as x, b as y", "b as y, a as x"])
def test_hidden_columns_that_are_numbered_as_written_have_no_meaning_but_their_text(below: str) -> None:
    """The two keep x and y in hidden columns of the same names, one in the other's place."""
    model = of(f"select s, rank() over (order by x, y) as r from (select s, {below} from ods.t)")
    assert len(model.table.state) == 2
    assert (meaning(model), stored_outline(model)) == ("", {})


@pytest.mark.parametrize("item", ["to_json(struct(a, b))", "raise_error(s)", "some_udf(a)", "named_struct('k', a)"])
def test_what_may_read_names_or_fail_has_no_meaning_but_its_text(item: str) -> None:
    assert meaning(of(f"select a, {item} as c from ods.t")) == ""


def test_the_place_of_a_filter_by_the_clock_decides_row_keys() -> None:
    assert meaning(of("select a from ods.t where ts > current_timestamp()")) == ""
