"""Each rule of edits over rows that it could get wrong, and naive rules in its place, each of which is caught."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import pytest
from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Relation, UnionAll
from sqlmesh_like.delta.edits import (
    changed_rows,
    edited_columns,
    implied_conditions,
    joined_rows,
    key_parts,
    same_columns,
)
from sqlmesh_like.delta.edits.join_tree import JoinTree, Leaf
from sqlmesh_like.duckdb.programs.memory_lake import LakeSnapshot, MemoryLake
from tests.properties.case import require_equal
from tests.properties.edited_table import Way, apply_edit, way_of
from tests.properties.lake import T, U, compiled, schema

COLUMNS = schema(a="int", b="int", c="smallint", s="string")
ROWS: LakeSnapshot = {
    T: {
        "1": (1, 5, 32767, "x"), "N/2.:,%3A": (1, None, 2, "y"), "3": (2, 7, 3, None), "4": (None, 1, 4, "x"),
        "5": (3, 3, 5, "z"), "6": (2, 2, 6, "x"), "7": (5, 5, 7, "y"),
    },
    U: {"1": (1, 9, 1, "p"), "2": (2, None, 1, "q"), "3": (2, 4, 1, "r"), "4": (None, 4, 1, "r")},
}  # fmt: skip


def after_edit(before: str, after: str) -> Way:
    """Edit a table, and compare it with the edited query: rows, keys and hidden state."""
    old, new = compiled(before, COLUMNS), compiled(after, COLUMNS)
    with closing(MemoryLake({T: COLUMNS, U: COLUMNS})) as lake:
        lake.build(old, ROWS)
        way, _ = apply_edit(old, new, lake, ROWS)
        require_equal(lake, new, f"the edit of {before}")
    return way


_A, _JOIN = "select a, b from ods.t", "from ods.t join ods.u on t.a = u.a"
_SUM = "select a, sum(b) as n, max(b) as m from ods.t"
_UNION = f"{_A} union all select a, b from ods.u"
_LEFT = "from ods.t left join ods.u on t.a = u.a"
_LATER, _MEMBER = "from ods.t left join ods.t v on v.b = t.a", "exists (select 1 from ods.u where u.a = t.a)"
_TOP = "select a, b from ods.t order by b, s limit 3"


@pytest.mark.parametrize(
    ("before", "after", "way"),
    [
        pytest.param(f"{_A} where b > 4", f"{_A} where b > 2", "followed", id="wider"),
        pytest.param(f"{_A} where b > 4", f"{_A} where s = 'x'", "followed", id="other condition"),
        pytest.param(f"{_A} where b > 4", _A, "followed", id="condition removed"),
        pytest.param(_A, f"{_A} where s <> 'x'", "followed", id="narrower, of a column that is not stored"),
        pytest.param(f"{_SUM} where b > 2 group by a", f"{_SUM} where b > 4 group by a", "followed", id="aggregate"),
        pytest.param(f"select t.a, u.b {_JOIN} where t.b > 4", f"select t.a, u.b {_JOIN} where t.b > 1 and u.b = 4",
                     "followed", id="inner join"),
        pytest.param("select t.a, u.b from ods.t left join ods.u on t.a = u.a where t.b > 4",
                     "select t.a, u.b from ods.t left join ods.u on t.a = u.a", "followed", id="left join"),
        pytest.param("select distinct a from ods.t where b > 4", "select distinct a from ods.t where b > 2", "followed",
                     id="distinct"),
        pytest.param("select a, rank() over (partition by a order by b) as r from ods.t where b > 1",
                     "select a, rank() over (partition by a order by b) as r from ods.t", "followed", id="window"),
        pytest.param("select a, rank() over (order by b) as r from ods.t where s = 'x'",
                     "select a, rank() over (order by b) as r from ods.t", "followed", id="window over all"),
        pytest.param("select a, b from ods.t where b > 2 order by b, s limit 3", _TOP, "followed", id="limit"),
        pytest.param(_UNION,
                     f"{_A} union all select a, b from ods.u union all select b, a from ods.u where a > 1", "followed",
                     id="branch added"),
        pytest.param(f"{_A} union all select a, b from ods.u union all select b, a from ods.u",
                     _UNION, "followed", id="branch removed"),
        pytest.param(f"{_A} where b > 1", "select s, a, b, a + b as d from ods.t where b > 1", "columns computed",
                     id="column added"),
        pytest.param(f"{_A} where b > 4", "select b, s from ods.t where b > 2", "columns computed",
                     id="column and filter"),
        pytest.param(f"select t.a, u.b {_JOIN}", f"select t.a, u.b, t.s {_JOIN}", "columns computed",
                     id="column of a join"),
        pytest.param(f"{_SUM} group by a", "select a, min(b) as l, max(b) as m, avg(b) as n from ods.t group by a",
                     "columns computed", id="aggregate added"),
        pytest.param(f"{_SUM} group by a", "select a, max(b) as m from ods.t group by a", "derived",
                     id="aggregate removed"),
        pytest.param("select a, count(distinct b) as n from ods.t group by a",
                     "select a, count(distinct b) as n, count(distinct s) as o from ods.t group by a",
                     "columns computed", id="aggregate without state"),
        pytest.param("select a, rank() over (partition by a order by b) as r from ods.t",
                     "select a, rank() over (partition by a order by b) as r, lag(b) over (order by b) as l from ods.t",
                     "rewritten", id="window over all rows"),
        pytest.param(_TOP, "select cast(b as bigint) as b, a from ods.t order by b, s limit 3", "derived",
                     id="columns of a limit"),
        pytest.param(_UNION, "select b, a from ods.t union all select b, a from ods.u",
                     "derived", id="columns of UNION ALL"),
        pytest.param(_UNION, "select a, b from ods.t union all select b, a from ods.u",
                     "compared", id="columns of a branch"),
        pytest.param("select a, s from ods.t where b > 1", f"select t.s, t.a, u.b {_LEFT} and u.b > 4 where t.b > 1",
                     "columns computed", id="left join added, with a condition of its own"),
        pytest.param(_A, f"select t.b, u.s {_LEFT} where u.b = 4 or t.b > 4", "columns computed",
                     id="left join added and filtered", marks=pytest.mark.release),
        pytest.param("select b from ods.t", f"select t.b, u.s {_LEFT} and u.b < t.c", "columns computed",
                     id="left join added, by columns that are not stored"),
        pytest.param("select a, c from ods.t", "select t.a, t.c, u.s from ods.t left join ods.u on t.c = u.c",
                     "columns computed", id="left join added, by small integers", marks=pytest.mark.release),
        pytest.param(_A, "select a, t.b, u.b as d from ods.t left join ods.u using (a)", "columns computed",
                     id="left join added, by USING", marks=pytest.mark.release),
        pytest.param(_A, "select t.a, t.b, v.n from ods.t left join (select a, count(*) as n from ods.u group by a) v"
                     " on t.a <=> v.a", "columns computed", id="left join added, of groups", marks=pytest.mark.release),
        pytest.param(f"select t.a, t.b, u.b as d {_LEFT}",
                     "select t.a, t.b, u.b as d, v.s from ods.t left join ods.t v on v.b = t.b"
                     " left join ods.u on t.a = u.a", "columns computed", id="left join added before another one"),
        pytest.param(f"select t.a, t.b {_JOIN}",
                     "select t.a, t.b, v.s from ods.t left join ods.t v on v.b = t.b join ods.u on t.a = u.a",
                     "columns computed", id="left join added before an inner one", marks=pytest.mark.release),
        pytest.param(f"select t.a, t.b {_JOIN}", f"select t.a, t.b, v.s {_JOIN} join ods.t v on v.b = t.b",
                     "columns computed", id="inner join added"),
        pytest.param(f"{_SUM} group by a",
                     f"select q.a, q.n, u.s from ({_SUM} group by a) q left join ods.u on q.a = u.a",
                     "columns computed", id="left join added to groups"),
        pytest.param(_UNION, f"select q.a, q.b, v.s from ({_UNION}) q left join ods.t v on q.a = v.a",
                     "columns computed", id="left join added to UNION ALL", marks=pytest.mark.release),
        pytest.param(f"{_A} where {_MEMBER}", f"select t.a, t.b, v.s {_LATER} where {_MEMBER}", "columns computed",
                     id="left join added below EXISTS"),
        pytest.param(f"{_A} where not {_MEMBER}", f"select t.a, t.b, v.s {_LATER} where {_MEMBER}", "rewritten",
                     id="left join added, and another EXISTS", marks=pytest.mark.release),
        pytest.param(f"select t.a, t.b, v.s {_LATER} where not {_MEMBER}", f"{_A} where not {_MEMBER} and b > 1",
                     "derived", id="left join removed below NOT EXISTS", marks=pytest.mark.release),
        pytest.param(f"select t.a, t.b, v.s {_LATER} where {_MEMBER}", _A, "rewritten", id="EXISTS removed",
                     marks=pytest.mark.release),
        pytest.param(f"{_A} where b > 1", f"select t.a, t.b, u.s {_LEFT}", "rewritten",
                     id="left join added, and a wider filter", marks=pytest.mark.release),
        pytest.param(f"select t.b, t.a, u.s {_LEFT} and u.b > 4 where t.b > 1", "select a, b from ods.t where b > 2",
                     "derived", id="left join removed"),
        pytest.param("select t.a, u.s from ods.t left join ods.t v on v.b = t.b left join ods.u on t.a = u.a",
                     f"select t.a, u.s {_LEFT}", "derived", id="left join before another one removed"),
        pytest.param(f"select t.a, t.b, u.s {_LEFT} where u.b = 4", _A, "rewritten",
                     id="left join that filters removed", marks=pytest.mark.release),
        pytest.param(f"select t.a, t.b {_JOIN}", _A, "compared", id="inner join removed"),
        pytest.param(f"select t.a, u.b {_JOIN}", "select t.a, u.b from ods.u join ods.t on t.a = u.a", "derived",
                     id="joins in another order"),
        pytest.param(f"{_A} where current_date() > date '2020-01-01'", f"{_A} where a > 1", "compared", id="clock"),
        pytest.param(_A, _UNION, "compared", id="other keys"),
    ],
)  # fmt: skip
def test_a_table_becomes_that_of_the_edited_query(before: str, after: str, way: Way) -> None:
    assert after_edit(before, after) == way


_OF_ELEMENTS = "from ods.t lateral view explode(sequence(1, b)) v as e"


@pytest.mark.parametrize(
    ("before", "after", "way"),
    [
        (f"select t.a, u.b {_LEFT}", f"select t.a, u.b, t.s {_LEFT}", "columns computed"),
        (f"select t.a, u.b {_LEFT}", f"select t.a, u.b, t.s {_LEFT} and u.b > 3", "rewritten"),
        ("select t.a from ods.t cross join ods.u", "select t.a, u.b from ods.t cross join ods.u", "columns computed"),
        (f"select a, e {_OF_ELEMENTS}", f"select a, e, s {_OF_ELEMENTS}", "columns computed"),
        (f"select a, e {_OF_ELEMENTS}", f"select a, e, s {_OF_ELEMENTS.replace('1', '2')}", "rewritten"),
        ("select q.a from (select distinct a, b from ods.t) q",
         "select q.a, q.b from (select distinct a, b from ods.t) q", "columns computed"),
        ("select q.a from (select distinct a, b from ods.t) q",
         "select q.a, q.b from (select distinct b, a from ods.t) q", "rewritten"),
        ("select a, (select max(b) from ods.u) as m from ods.t",
         "select a, (select max(b) + 1 from ods.u) as m from ods.t", "columns computed"),
        (_TOP, "select a, b, s from ods.t order by b, s limit 3", "derived"),
        ("select a, b from ods.t limit 5", _A, "rebuilt"),
        (f"{_A} where s > 'w' and b > -1", f"{_A} where s > 'x' and b > -2", "followed"),
        (f"{_A} where a in (1, 2)", f"{_A} where a in (1, 2, 3)", "followed"),
        (f"{_UNION} where b > 1", f"{_A} where a > 1 union all select a, b from ods.u where b > 2", "followed"),
        (f"{_UNION} where b > 1", f"{_A} where a > 1 union all select a, b from ods.t where b > 2", "compared"),
        (f"select t.a {_JOIN}", "select t.a from ods.t join ods.u on t.b = u.b where u.s = 'p'", "followed"),
    ],
)  # fmt: skip
def test_so_it_does_above_other_operators(before: str, after: str, way: Way) -> None:
    assert after_edit(before, after) == way


_WIDE = schema(a="bigint", b="int", c="smallint", s="string", d="string")


@pytest.mark.parametrize(
    ("query", "way"),
    [
        pytest.param("select * from ods.t", "columns computed", id="all columns"),
        pytest.param("select a, b from ods.t where b > 1", "derived", id="the wider column"),
        pytest.param("select a, b from ods.t where a > 1", "columns computed", id="the wider column in a filter"),
        pytest.param("select b, s from ods.t where b > 1", "kept", id="other columns"),
        pytest.param("select a, count(*) as n from ods.t group by a", "rebuilt", id="groups"),
        pytest.param("select t.b, u.a from ods.t join ods.u on t.a = u.a", "columns computed", id="a join"),
        pytest.param("select a * 2 as d from ods.t", "rebuilt", id="arithmetic"),
    ],
)
def test_inputs_get_columns_and_wider_types(query: str, way: Way) -> None:
    """Rows that were read before have NULL in new columns, and a cast in wider ones."""
    old, new = compiled(query, COLUMNS), compiled(query, _WIDE)
    rows = {name: {key: (*row, None) for key, row in table.items()} for name, table in ROWS.items()}
    with closing(MemoryLake({T: _WIDE, U: _WIDE})) as lake:
        lake.build(old, rows)
        assert apply_edit(old, new, lake, rows)[0] == way
        require_equal(lake, new, f"wider types below {query}")


def test_small_integers_are_stored_as_others_and_so_not_computed_on() -> None:
    before, after = "select a, c from ods.t", "select a, c + cast(1 as smallint) as d from ods.t"
    assert way_of(compiled(before, COLUMNS), compiled(after, COLUMNS))[0] == "columns computed"


Patch = Callable[[pytest.MonkeyPatch], None]


def null_is_no_answer(patch: pytest.MonkeyPatch) -> None:
    """A row enters where the old conditions are false; a NULL is forgotten."""
    patch.setattr(
        changed_rows, "is_not_true", lambda conditions: exp.not_(exp.and_(*[each.copy() for each in conditions]))
    )


def nothing_leaves(patch: pytest.MonkeyPatch) -> None:
    changed = changed_rows.changed_conditions
    patch.setattr(changed_rows, "changed_conditions", lambda before, after: (changed(before, after)[0], []))


def nothing_enters(patch: pytest.MonkeyPatch) -> None:
    changed = edited_columns.changed_conditions
    patch.setattr(edited_columns, "changed_conditions", lambda before, after: ([], changed(before, after)[1]))


def every_range_includes_the_other(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(implied_conditions, "_is_within", lambda known, condition: True)


def open_ends_are_closed(patch: pytest.MonkeyPatch) -> None:
    within = implied_conditions._is_within
    closed = {exp.GT: exp.GTE, exp.LT: exp.LTE}

    def naive(known: exp.Expr, condition: exp.Expr) -> bool:
        kind = closed.get(type(condition), type(condition))
        return within(known, kind(this=condition.this.copy(), expression=condition.expression.copy()))

    patch.setattr(implied_conditions, "_is_within", naive)


def branches_have_other_numbers(patch: pytest.MonkeyPatch) -> None:
    """Added branches are numbered from 0 on, so that their rows have the keys of others."""
    rows = changed_rows.union_rows

    def naive(union: UnionAll, sources: dict[int, exp.Expr], **given: bool) -> exp.Select:
        branches = tuple(union.branches[number] for number in sources)
        return rows(replace(union, branches=branches), dict(enumerate(sources.values())), **given)

    patch.setattr(changed_rows, "union_rows", naive)


def any_groups_are_the_same(patch: pytest.MonkeyPatch) -> None:
    for module in (same_columns, edited_columns):
        patch.setattr(module, "require_same_keys", lambda before, after, same: None)


def any_order_is_the_same(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(same_columns, "_order_after", lambda before, after, below: same_columns._order(before, below))


def conditions_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(same_columns, "split_conditions", lambda predicates: {})


def states_by_their_kind(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(edited_columns, "_identity", lambda state, names: (state.kind, None, state.type))


def windows_of_stored_columns(patch: pytest.MonkeyPatch) -> None:
    """A window over columns that are stored is computed over the rows of the table."""

    def naive(value: exp.Expr, known: dict[exp.Expr, str]) -> exp.Expr:
        return value.copy().transform(lambda node: exp.column(known[node], "t") if node in known else node)

    patch.setattr(edited_columns, "_over_stored", naive)


def columns_by_place(patch: pytest.MonkeyPatch) -> None:
    """A branch's column is the old one at its place."""

    def naive(self: same_columns.Comparison, before: UnionAll, after: UnionAll) -> same_columns.Values:
        return same_columns.Values(same_columns._own(before), same_columns._own(after))

    patch.setattr(same_columns.Comparison, "_union", naive)


def added_columns_of_all_rows(patch: pytest.MonkeyPatch) -> None:
    """Stored rows without an added column stay."""
    joined = edited_columns._join_stored_and_added

    def naive(*given: object) -> exp.Select:
        query = joined(*given)  # type: ignore[arg-type]
        for join in query.args.get("joins") or []:
            join.set("kind", "")
            join.set("side", "LEFT")
        return query

    patch.setattr(edited_columns, "_join_stored_and_added", naive)


def left_joins_match_all_rows(patch: pytest.MonkeyPatch) -> None:
    """The conditions of a left join are those of all rows."""
    tree = joined_rows.join_tree

    def naive(relation: Relation) -> JoinTree:
        made = tree(relation)
        on = [each for leaf in made.leaves.values() for each in leaf.on]
        leaves = {number: Leaf(leaf.relation) for number, leaf in made.leaves.items()}
        return replace(made, leaves=leaves, conditions=(*made.conditions, *on))

    patch.setattr(joined_rows, "join_tree", naive)


def joins_of_one_relation_are_the_same(patch: pytest.MonkeyPatch) -> None:
    """However they are joined, and by which conditions."""
    patch.setattr(joined_rows, "_is_same", lambda old, new, numbers: old.relation == new.relation)


def conditions_of_removed_joins_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(joined_rows, "changed_conditions", lambda before, after: ([], []))
    patch.setattr(joined_rows, "leaves_of", lambda value: frozenset())


def matches_of_removed_joins_stay(patch: pytest.MonkeyPatch) -> None:
    def naive(rows: exp.Expr, names: list[exp.Expr], key: exp.Expr) -> exp.Select:
        return exp.select(*names, exp.alias_(key, "_sml_key", quoted=True)).from_(rows)

    patch.setattr(joined_rows, "_one_of_each", naive)


def wider_conditions_are_no_others(patch: pytest.MonkeyPatch) -> None:
    changed = joined_rows.changed_conditions
    patch.setattr(joined_rows, "changed_conditions", lambda before, after: ([], changed(before, after)[1]))


def key_parts_are_written_as_they_are(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(key_parts, "ESCAPES", ())


def no_key_part_is_null(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(key_parts, "_is_null", lambda rest: exp.false())


def joined_keys_are_nested(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(joined_rows, "_append_key_parts", joined_rows.encode)


MUTANTS: tuple[tuple[Patch, str, str], ...] = (
    (null_is_no_answer, f"{_A} where b > 4", f"{_A} where s = 'x'"),
    (nothing_leaves, f"{_A} where b > 2", f"{_A} where s = 'x'"),
    (nothing_enters, f"{_A} where b > 4", "select b, s from ods.t where b > 2"),
    (every_range_includes_the_other, f"{_A} where b > 2", f"{_A} where b > 4"),
    (open_ends_are_closed, f"{_A} where b >= 5", f"{_A} where b > 5"),
    (branches_have_other_numbers, _UNION,
     f"{_A} union all select a, b from ods.u union all select b, a from ods.u"),
    (any_groups_are_the_same, "select sum(b) as n from ods.t group by a", "select sum(b) as n from ods.t group by s"),
    (any_order_is_the_same, "select a, b from ods.t order by b limit 3",
     "select a, b, s from ods.t order by s, a limit 3"),
    (conditions_are_not_compared, "select max(n) as n from (select a, count(*) as n from ods.t group by a) where n > 1",
     "select min(n) as n, max(n) as o from (select a, count(*) as n from ods.t group by a) where n > 2"),
    (states_by_their_kind, f"{_SUM} group by a", "select a, max(a) as t, sum(b) as n from ods.t group by a"),
    (windows_of_stored_columns, "select a, b, sum(b) over (partition by a) as n from ods.t order by b, s limit 3",
     "select a, b, sum(a) over (partition by a) as n from ods.t order by b, s limit 3"),
    (columns_by_place, _UNION,
     "select b as a, a as b from ods.t union all select a, b from ods.u"),
    (left_joins_match_all_rows, _A, f"select t.a, t.b, u.s {_LEFT}"),
    (joins_of_one_relation_are_the_same, f"select t.a, u.b {_LEFT}",
     "select t.a, u.b, v.s from ods.t left join ods.u on t.b = u.a left join ods.t v on v.b = t.a"),
    (joins_of_one_relation_are_the_same, f"{_A} where not {_MEMBER}",
     f"select t.a, t.b, v.s {_LATER} where {_MEMBER}"),
    (conditions_of_removed_joins_are_forgotten, f"select t.a, t.b, u.s {_LEFT} where u.b = 4", _A),
    (matches_of_removed_joins_stay, f"select t.a, t.b, u.s {_LEFT}", _A),
    (wider_conditions_are_no_others, f"{_A} where b > 1", f"select t.a, t.b, u.s {_LEFT}"),
    (key_parts_are_written_as_they_are, f"select t.a, t.b, u.s {_LEFT}", _A),
    (no_key_part_is_null, "select t.a, u.s from ods.t left join ods.t v on v.b = t.a left join ods.u on t.a = u.a",
     "select t.a, u.s, w.s as x from ods.t left join ods.t v on v.b = t.a left join ods.t w on w.b = t.a"
     " left join ods.u on t.a = u.a"),
    (joined_keys_are_nested, f"select t.a, t.b {_JOIN}", f"select t.a, t.b, v.s {_JOIN} join ods.t v on v.b = t.b"),
    (added_columns_of_all_rows, f"{_A} where b > 2", "select a, b, s from ods.t where b > 2 and s = 'x'"),
)  # fmt: skip


@pytest.mark.parametrize(("patch", "before", "after"), [pytest.param(*each, id=each[0].__name__) for each in MUTANTS])
def test_a_naive_rule_is_caught(patch: Patch, before: str, after: str, monkeypatch: pytest.MonkeyPatch) -> None:
    after_edit(before, after)  # it is the rule that is caught, not the case
    patch(monkeypatch)
    with pytest.raises(Exception):  # noqa: B017, PT011 - other rows, or a query that no engine binds
        after_edit(before, after)
