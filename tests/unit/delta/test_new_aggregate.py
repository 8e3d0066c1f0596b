"""What it takes to make an aggregate mergeable: a record of it, and what DuckDB is trusted with."""

from __future__ import annotations

import runpy
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from sqlglot import exp

from sqlmesh_like.analyze.functions.aggregates import AGGREGATES, AggregateFunction
from sqlmesh_like.analyze.functions.merging import KeptState, Merge, cast
from sqlmesh_like.analyze.spark_types.coercion import INTEGERS
from sqlmesh_like.duckdb.exact import form_registry
from sqlmesh_like.duckdb.exact.form import Form
from sqlmesh_like.duckdb.exact.values import Types, replace_by_cast
from sqlmesh_like.duckdb.exact_sql import Unproven, exact
from sqlmesh_like.duckdb.programs.memory_lake import MemoryLake
from sqlmesh_like.errors import SqlError
from tests.properties.lake import T, compare, compiled, schema, states

SQL = "select s, spread(a) as r from ods.t group by s"
COLUMNS = schema(a="int", s="string", f="double")
PATH = states(
    {"1": (1, "x", None), "2": (5, "x", None), "3": (None, "y", None)},
    {"2": None, "3": (7, "y", None)},
    {"4": (-3, "x", None), "5": (2, "y", None)},
    {"1": None, "4": None},
)


Spread = exp.HashAgg
"""A class that Spark has no function for stands for a new one: the largest value less the smallest."""


def _ends(argument: exp.Expr, type_: str | None) -> tuple[KeptState, ...]:
    return KeptState("max", argument, type_ or ""), KeptState("min", argument, type_ or "")


RECORD = AggregateFunction(
    "hash_agg=HashAgg spread: any -> $1", of_nothing="null",
    merge=Merge("keeps both ends", _ends, lambda type_, most, least: cast(exp.Sub(this=most, expression=least), type_),
                takes=lambda type_: type_ in INTEGERS),
)  # fmt: skip


def _proof(node: exp.Func, types: Types) -> str:
    given = types.of(node.this)
    ends = exp.Sub(this=exp.Max(this=node.this.copy()), expression=exp.Min(this=node.this.copy()))
    return replace_by_cast(node, given, of=exp.Paren(this=ends))


def test_one_record_makes_an_aggregate_typed_mergeable_compiled_exact_and_documented(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(SqlError, match="nor in an aggregate"):
        compiled(SQL, COLUMNS)
    monkeypatch.setitem(AGGREGATES, Spread, RECORD)
    plan = compiled(SQL, COLUMNS)
    assert [column.type for column in plan.facts.schema or ()] == ["string", "int"]
    assert plan.classification.strategy == "aggregate_merge"
    assert [(each.verdict, each.reason.message) for each in plan.classification.aggregates] == [
        ("mergeable", "HASH_AGG(a) keeps both ends")
    ]
    assert [column.name for column in plan.table.state][-2:] == ["_sml_max_0", "_sml_min_0"]
    assert "| HASH_AGG, SPREAD | merged: keeps both ends | int, bigint | NULL |" in _page()
    query = plan.facts.tree.copy()
    assert isinstance(query, exp.Query)
    with pytest.raises(Unproven, match="HASHAGG"):
        exact(query.copy(), lambda _: COLUMNS)
    monkeypatch.setitem(form_registry.FORMS, Spread, Form(_proof))
    assert [column.type for column in exact(query, lambda _: COLUMNS).columns] == ["string", "int"]


def test_what_a_new_aggregate_keeps_follows_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AGGREGATES, Spread, RECORD)
    plan = compiled(SQL, COLUMNS)
    with closing(MemoryLake({T: COLUMNS})) as lake:
        lake._db.execute("CREATE MACRO hash_agg(x) AS max(x) - min(x)")
        lake.build(plan, PATH[0])
        for number, (before, after) in enumerate(pairwise(PATH), 2):
            lake.apply(plan, before, after)
            compare(lake, plan, PATH[:number])
        assert sorted(row[-2:] for row in lake.rows()) == [("y", 5)]


def _page() -> str:
    docs = Path(__file__).resolve().parent.parent.parent.parent / "docs"
    page: str = runpy.run_path(str(docs / "generate_sql.py"))["aggregates"]()
    return page
