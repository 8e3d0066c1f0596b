"""Two items of FROM under one name, which Spark allows: their rows, and the columns that both have."""

from __future__ import annotations

import pytest
import sqlglot

from sqlmesh_like.duckdb.allow_list import first_unproven
from sqlmesh_like.errors import SqlError
from tests.properties.lake import T, U, compiled, final_rows, schema

COLUMNS = schema(p="string", v="int")
PATH = [
    {T: {"1": ("a", 1), "2": ("b", 2)}, U: {"1": ("a", 1)}},
    {T: {"1": ("a", 1), "3": ("c", 1), "4": ("d", 2)}, U: {"1": ("a", 2), "2": ("b", 1)}},
]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("select 1 as x from ods.t, ods.t", [(1,)] * 9),
        ("select count(*) as n from ods.t cross join ods.t", [(9,)]),
        ("select a.p, a.w from ods.t a join (select v as w from ods.u) a on v = w", [("a", 1), ("c", 1), ("d", 2)]),
        ("select u.p, count(*) as n from ods.t, ods.t, ods.u group by u.p", [("a", 9), ("b", 9)]),
    ],
)
def test_their_rows_are_followed(sql: str, rows: list[tuple[object, ...]]) -> None:
    plan = compiled(sql, COLUMNS)
    assert plan.classification.strategy in ("row_based", "aggregate_merge"), plan.classification.reasons
    assert final_rows(plan, COLUMNS, PATH) == rows


@pytest.mark.parametrize(
    "sql",
    [
        "select t.p from ods.t, ods.t",
        "select p from ods.t, ods.t",
        "select a.p from ods.t a join ods.u a on true",
        "select 1 as x from ods.t join ods.t on t.p = t.p",
    ],
)
def test_a_column_that_both_have_is_ambiguous(sql: str) -> None:
    with pytest.raises(SqlError, match="the column 'p' is ambiguous") as caught:
        compiled(sql, COLUMNS)
    assert "two items of FROM have one name: give each an alias of its own" in str(caught.value)


def test_beside_using_the_model_is_rebuilt() -> None:
    (reason,) = compiled("select t.p from ods.t join ods.t using (p)", COLUMNS).classification.reasons
    assert (reason.rule, reason.message) == ("QRY009", "two items of FROM with the name 't'")


@pytest.mark.parametrize(
    ("join", "rows"),
    [
        ("full join (select p, v as w from ods.u) using (p)", [("a", 1), ("b", None), ("c", 1), ("d", 2)]),
        ("natural right join (select p, v as w from ods.u)", [("a", 1), ("b", None)]),
    ],
)
def test_items_without_a_name_may_be_joined_by_using(join: str, rows: list[tuple[object, ...]]) -> None:
    plan = compiled(f"select p, v from (select p, v from ods.t) {join}", COLUMNS)
    assert plan.classification.strategy == "group_recompute", plan.classification.reasons
    assert final_rows(plan, COLUMNS, PATH) == rows


def test_a_column_of_items_without_a_name_is_ambiguous() -> None:
    with pytest.raises(SqlError, match="the column 'p' is ambiguous\n  an item of FROM has no name: give it an alias"):
        compiled("select p from (select p from ods.t) join ods.u on true", COLUMNS)


def test_duckdb_refuses_them() -> None:
    tree = sqlglot.parse_one("select 1 as x from t, u as T", dialect="spark")
    assert first_unproven(tree) == "two items of FROM with one name"
