"""The queries of a benchmark become models: columns get names of their own, tables become relations, the rest stays."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from sqlmesh_like.compiler import declared_schema
from sqlmesh_like.project.loader import load_project
from sqlmesh_like.project.profile import load_target
from sqlmesh_like.render.renderer import render_project
from tests.tpc.query_text import model_text
from tests.tpc.suites import write_project
from tests.tpc.tables import TABLES, parse_tables

SHOP = parse_tables("item: i_id* bigint, name string\nsale: s_id* i_id bigint, price decimal(7,2)")


@pytest.mark.parametrize(
    ("query", "model"),
    [
        pytest.param("select name, i_id from item", "select name, i_id from <item>", id="names-stay"),
        pytest.param("select (name) from item", "select (name) from <item>", id="a-name-in-parentheses"),
        pytest.param(
            "select name, -- first\n count(*) -- second\nfrom item group by name",
            "select name, -- first\n count(*) AS column_2 -- second\nfrom <item> group by name",
            id="an-alias-stands-before-a-comment",
        ),
        pytest.param(
            "select round(i_id, 2), (select max(s_id) from sale) from item",
            "select round(i_id, 2) AS column_1, (select max(s_id) from <sale>) AS column_2 from <item>",
            id="commas-and-from-in-parentheses",
        ),
        pytest.param(
            "select 1, column_1 from (select i_id column_1 from item) x",
            "select 1 AS column_1_2, column_1 from (select i_id column_1 from <item>) x",
            id="a-new-name-hides-none",
        ),
        pytest.param(
            "select a.name, b.Name, b.i_id id, a.i_id as ID from item a, item b",
            "select a.name, b.Name AS Name_2, b.i_id id, a.i_id as ID_2 from <item> a, <item> b",
            id="repeated-names",
        ),
        pytest.param(
            "select count(*) as `2 - 3 items ` from item order by `2 - 3 items `",
            "select count(*) as column_2_3_items from <item> order by column_2_3_items",
            id="names-that-are-no-words",
        ),
        pytest.param(
            "with x as (select count(*) from item) (select sum(i_id) from item) union all select 2 from sale",
            "with x as (select count(*) from <item>) (select sum(i_id) AS column_1 from <item>)"
            " union all select 2 from <sale>",
            id="the-first-of-a-union-names-columns",
        ),
        pytest.param(
            "select 1 as `n n`, 2 as `n n` from item",
            "select 1 as n_n, 2 as n_n_2 from <item>",
            id="repeated-names-that-are-no-words",
        ),
        pytest.param("select * from item, (select 1 as n) x", "select * from <item>, (select 1 as n) x", id="star"),
        pytest.param(
            "select * from item i, sale where i.i_id = sale.i_id",
            "select i.i_id, i.name, sale.s_id, sale.i_id AS i_id_2, sale.price from <item> i, <sale>"
            " where i.i_id = sale.i_id",
            id="star-with-repeated-names",
        ),
        pytest.param(
            "with sale as (select * from SALE where price > 1), x as (select * from sale)\n"
            "select name from item where exists (select 1 from x join sale s where s.i_id = item.i_id)",
            "with sale as (select * from <sale> where price > 1), x as (select * from sale)\n"
            "select name from <item> where exists (select 1 from x join sale s where s.i_id = item.i_id)",
            id="a-cte-with-the-name-of-a-table",
        ),
    ],
)
def test_a_query_becomes_a_model(query: str, model: str) -> None:
    assert model_text(query, SHOP, lambda table: f"<{table}>") == model


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("select a from elsewhere", "elsewhere is neither a table of the suite nor a CTE"),
        ("select a.*, b.* from item a, item b", "two columns of"),
    ],
)
def test_what_cannot_be_a_model_is_refused(query: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        model_text(query, SHOP, str)


def test_a_project_reads_the_source_that_it_was_written_for(tmp_path: Path) -> None:
    write_project("h", tmp_path, source="warehouse", schema="raw", without_limit=True)
    project = load_project(tmp_path, {})
    rendered = render_project(project, load_target(project, tmp_path, None, None, {}))
    models = {model.name: model for model in rendered.models}
    assert list(models) == [f"q{number:02d}" for number in range(1, 23)]
    assert "`raw`.`orders`" in models["q18"].sql
    assert "limit" not in models["q18"].sql.lower()
    orders = next(ref for ref in models["q18"].inputs if ref.unique_id == "source.warehouse.warehouse.orders")
    assert {column.name: column.type for column in declared_schema(orders) or ()} == TABLES["h"]["orders"].columns


@pytest.mark.parametrize("suite", TABLES)
def test_every_table_has_a_primary_key(suite: str) -> None:
    for name, table in TABLES[suite].items():
        assert table.primary_key and set(table.primary_key) <= set(table.columns), name


@pytest.mark.parametrize("name", ["query_text", "suites", "tables"])
def test_examples_in_docstrings_are_true(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(f"tests.tpc.{name}"))
    assert outcome.attempted and not outcome.failed
