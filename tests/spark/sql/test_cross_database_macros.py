"""dbt's cross-database macros: values and types that dbt-spark's own have on Spark, in one query for each table."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.render.renderer import render_inline
from tests.cross_database import MacroCase, macro_cases, macro_tables
from tests.projects import enter_project

FILES = {
    "profiles.yml": "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
    "dbt_project.yml": "name: shop\n",
}


@pytest.mark.release
def test_values_and_types_are_those_of_dbt_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter_project(tmp_path, monkeypatch, FILES)
    loaded = load(Invocation())
    session = spark.newSession()
    for name, table in macro_tables().items():
        session.createDataFrame(table.typed_rows(), table.columns).createOrReplaceTempView(name)
    of_rows = sorted((case for case in macro_cases() if case.over), key=_table)
    for (table_name, grouped), group in groupby(of_rows, key=_table):
        cases = list(group)
        key = "h" if grouped == "True" else "n"
        items = ", ".join(f"{{{{ {case.call} }}}} as y{number}" for number, case in enumerate(cases))
        by = f"group by {key} order by {key}" if grouped == "True" else f"order by {key}"
        query = f"select {items} from {table_name} {by}"
        frame = session.sql(render_inline(loaded.project, loaded.target, query).sql)
        rows = frame.collect()
        _compare(cases, frame, ([[row[number]] for row in rows] for number in range(len(cases))))

    queries = [case for case in macro_cases() if not case.over]
    rendered = render_inline(loaded.project, loaded.target, "\n;;\n".join(case.template for case in queries)).sql
    union = " union all ".join(
        f"select {number} as c, cast(v as string) as v, typeof(v) as t from ({text}) as q(v)"
        for number, text in enumerate(rendered.split("\n;;\n"))
    )
    records = session.sql(union).collect()
    for number, case in enumerate(queries):
        values = sorted(str(row.v) for row in records if row.c == number)
        assert values == sorted(map(str, case.values)), case.call
        assert {row.t for row in records if row.c == number} == {case.type}, case.call


def _table(case: MacroCase) -> tuple[str, str]:
    return str(case.over), str(case.grouped)


def _compare(cases: list[MacroCase], frame: DataFrame, columns: Iterable[list[list[object]]]) -> None:
    for case, values, (_, type_) in zip(cases, columns, frame.dtypes, strict=True):
        assert (case.outcome(values), type_) == (case.values, case.type), case.call
