"""Programs of groups: which DuckDB is proven to compute, so that no Spark is needed, and why not the others."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pytest
import sqlglot

from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.compiler import Compiler
from sqlmesh_like.duckdb import dialect
from sqlmesh_like.duckdb.exact_sql import Unproven, exact
from sqlmesh_like.names import WEIGHT, Column, Schema
from sqlmesh_like.plan.fingerprint import fingerprint
from sqlmesh_like.project.nodes import ModelConfig
from tests.properties.lake import T, compiled, model, schema

COLUMNS = schema(
    g="string", v="int", m="decimal(10,2)", b="boolean", d="date", f="double", s="string", arr="array<int>"
)


def proven(sql: str, model: CompiledModel | None = None) -> list[str]:
    """Each step of the program as DuckDB's text. Raises Unproven."""
    model = model or compiled(sql, COLUMNS)
    program, build = model.table.program, model.table.build
    assert program is not None and build is not None
    known: dict[str, Schema] = {"current": (*COLUMNS, Column("_sml_key", "string"))}
    known["changes"] = (*known["current"], Column(WEIGHT, "bigint"))
    known["target"] = exact(build.copy(), lambda table: known[table.db]).columns
    texts = []
    for step in program.steps:
        query = exact(step.query.copy(), lambda table: known[table.db or table.name])
        known[step.name] = query.columns
        texts.append(query.sql)
    return texts


@pytest.mark.parametrize(
    "sql",
    [
        "select g, max_by(v, d) as r, min_by(s, v) filter (where b) as q, max(d) as m from ods.t group by g",
        "select first(v) as a, last(s, true) as l, any_value(f) as n, first_value(v) ignore nulls as x from ods.t",
        "select g, max_by(v, f) as r, count(distinct s) as n, first(b) as z from ods.t group by g",
        "select g, max_by(struct(v, d), d) as r, count(distinct v, d) as n from ods.t group by g",
        "select g, s, grouping(s) as l, sum(v) as n from ods.t group by cube(g, s) having grouping(g) = 0 or s is null",
        "select g, stack(2, 'v', v, 'n', v + 1) as (name, number) from ods.t",
        "select g, max_by(arr, d) as r, collect_list(struct(arr, d)) as l, sort_array(collect_set(v)) as s"
        " from ods.t group by g",
        "select g, pos, element from ods.t lateral view outer posexplode(arr) l as pos, element where size(arr) > 1",
        "select g, percentile(v, 0.9) as p, median(m) as m, percentile_cont(0.5) within group (order by v desc) as c"
        " from ods.t group by g",
        "select g, avg(v) as m, avg(m) as a from ods.t group by g having avg(v) > 1",
        "select g, stddev(v) as r, var_pop(m) filter (where b) as q, regr_syy(m, v) as y from ods.t group by g",
    ],
)
def test_no_spark_is_needed(sql: str) -> None:
    assert len(proven(sql)) > 1


def test_sums_of_doubles_are_merged_without_spark() -> None:
    sql = "select g, sum(f) as s, avg(f / 3) filter (where b) as a, min(v) as m from ods.t group by g"
    tolerant = replace(model(sql), config=ModelConfig(floating=1e-9))
    plan = Compiler({T: COLUMNS}).compile(tolerant)
    assert plan.classification.strategy == "aggregate_merge"
    assert any("_sml_magnitude_" in text for text in proven(sql, plan))
    coarser = Compiler({T: COLUMNS}).compile(replace(tolerant, config=ModelConfig(floating=1e-6)))
    assert fingerprint(coarser) != fingerprint(plan)


@pytest.mark.parametrize(
    "sql",
    [
        "select g, max(arr) as r from ods.t group by g",
        "select g, max(struct(v, d)) as r from ods.t group by g",
        "select g, collect_set(f) as r from ods.t group by g",
    ],
)
def test_values_of_other_types_are_left_to_spark(sql: str) -> None:
    with pytest.raises(Unproven):
        proven(sql)


@pytest.mark.parametrize("call", ["corr", "covar_pop", "covar_samp", "regr_slope", "regr_sxy", "regr_r2"])
def test_explain_and_the_proof_say_why_distances_from_running_means_are_not_merged(call: str) -> None:
    sql = f"select g, {call}(m, v) as r from ods.t group by g"
    classification = compiled(sql, COLUMNS).classification
    assert classification.strategy == "group_recompute"
    assert "doubles, each by its distance from the mean of the rows before" in classification.reasons[0].message
    with pytest.raises(Unproven, match=f"{call.upper()}, which depends on the order in which doubles are added"):
        proven(sql)


CHOSEN = "select {}(v, case when not s is null then struct(s as o, _sml_k as k) end) as x from t"
ROWS = "('b', '1', 5), ('a', '2', 7), ('b', '3', NULL), (NULL, '9', 8), ('a', '0', NULL), ('Z', '4', 1)"


def chosen(name: str, rows: str) -> object:
    query = sqlglot.parse_one(CHOSEN.format(name), dialect="spark")
    columns = schema(s="string", _sml_k="string", v="int")
    text = exact(query, lambda _: columns).sql  # type: ignore[arg-type]
    with duckdb.connect(":memory:") as db:
        db.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {rows}) AS r(s, _sml_k, v)")
        return db.execute(text).fetchall()


@pytest.mark.parametrize("name", ["max_by", "min_by"])
def test_the_order_is_by_bytes_then_by_key_and_a_value_may_be_null(name: str) -> None:
    assert chosen(name, ROWS) == [(None if name == "max_by" else 1,)]
    assert chosen(name, ROWS.replace(", ('Z', '4', 1)", "")) == [(None,)]
    assert chosen(name, "(NULL, '1', 5), (NULL, '2', 6)") == [(None,)]


def test_without_the_rule_for_null_another_row_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialect, "_with_chosen_nulls", lambda tree: None)
    assert chosen("max_by", ROWS) == [(5,)]
