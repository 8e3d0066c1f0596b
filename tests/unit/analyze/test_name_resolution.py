"""Names of queries that are not turned into algebra: a mistake is named, a valid or a doubtful query is let through."""

from __future__ import annotations

import pytest
import sqlglot

from sqlmesh_like.analyze.name_resolution import first_unresolved
from sqlmesh_like.dialects import SPARK

COLUMNS = {"t": ("a", "b", "st"), "u": ("a", "c")}
"""Of the tables of `ods`; of `ods.other` none are known."""
WRONG = {
    "select x.a from ods.t": ("x.a", "unknown table or alias 'x' in x.a", "known: t"),
    "select day.a from ods.t": ("day.a", "unknown table or alias 'day' in day.a", "known: t"),
    "select t.zz from ods.t": ("t.zz", "unknown column 'zz' of 't'", "known: a, b, st"),
    "select nope from ods.t": ("nope", "unknown column 'nope'", "known: a, b, st"),
    "select a from ods.t join ods.u on true": ("a", "the column 'a' is ambiguous", "write t.a or u.a"),
    "select t.a from ods.t join ods.u on true where q > 2": ("q", "unknown column 'q'", "known: a, b, st, a, c"),
    "select a from ods.t as v(p, q, r)": ("a", "unknown column 'a'", "known: p, q, r"),
    "select a from ods.t as v(p, q)": ("p", "ods.t AS v(p, q) names 2 columns of 3", "its columns: a, b, st"),
    "select b, (select max(c) from ods.u where u.a = t.a and zz > 1) as m from ods.t":
        ("zz", "unknown column 'zz'", "known: a, b, st, a, c"),
    "select b from ods.t where a in (select bb from ods.u)": ("bb", "unknown column 'bb'", "did you mean 'b'?"),
    "select b from ods.t where exists (select 1 from ods.u where u.a = tt.a)":
        ("tt.a", "unknown table or alias 'tt' in tt.a", "did you mean 't'?"),
    "with w as (select a as x from ods.t) select x, a from w": ("a", "unknown column 'a'", "known: x"),
    "with w as (select * from ods.t) select a, zz from w": ("zz", "unknown column 'zz'", "known: a, b, st"),
    "select a as x from ods.t order by x, zz": ("zz", "unknown column 'zz'", "known: a, b, st"),
    "select a as x, sum(x) over (partition by b) as s from ods.t":
        ("x", "the alias 'x' of the same SELECT cannot be used within a window function",
         "write its expression in its place, or compute it in a CTE"),
    "select q.y from (select a as x from ods.t union all select c from ods.u) as q":
        ("q.y", "unknown column 'y' of 'q'", "known: x"),
}  # fmt: skip
VALID = (
    "select st.field, t.st.field from ods.t",
    "select ods.t.a, ods.t.st.field from ods.t tablesample (10 percent)",
    "select _metadata.file_name as f, a from ods.t",
    "select b from ods.t where exists (select 1 from ods.u where u.a = ods.t.a)",
    "select a, window.start, window.end as e from ods.t group by a, window(b, '5 minutes')",
    "select session_window.start from ods.t group by session_window(b, '5 minutes')",
    "select nope, x.nope from ods.other as x",
    "select x.nope from ods.other as y",
    "select p from ods.t as v(p, q, r)",
    "select p from ods.other as v(p, q)",
    "select a, c from ods.t join ods.u using (a)",
    "select a, c from ods.t natural join ods.u",
    "select b from ods.t where a in (select a from ods.u)",
    "with w as (select * from ods.other) select a, zz from w",
    "select e, zz from ods.t lateral view explode(st) v as e",
    "select a as x, x + 1 as y, count(*) as n from ods.t group by x",
    "select current_date, month from ods.t",
    "select q.x from (select a as x from ods.t union all select c from ods.u) as q",
    "select l.k from ods.t, lateral (select c as k from ods.u where u.a = t.a) l",
    "select p1 from (select a, b from ods.t) pivot (sum(a) for b in (1 as p1))",
)


def columns_of(schema: str, table: str) -> tuple[str, ...] | None:
    return COLUMNS.get(table) if schema == "ods" else None


@pytest.mark.parametrize("sql", WRONG)
def test_a_name_without_a_meaning_is_shown_where_it_is(sql: str) -> None:
    unresolved = first_unresolved(sqlglot.parse_one(sql, dialect=SPARK), columns_of)
    assert unresolved is not None
    assert (unresolved.node.sql(SPARK), unresolved.message, unresolved.hint) == WRONG[sql]


@pytest.mark.parametrize("sql", VALID)
def test_what_spark_resolves_or_may_resolve_is_no_mistake(sql: str) -> None:
    assert first_unresolved(sqlglot.parse_one(sql, dialect=SPARK), columns_of) is None
