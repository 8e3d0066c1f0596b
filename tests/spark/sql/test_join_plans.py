"""How Spark joins in the delta programs of TPC-H and TPC-DS: no product of tables that the author did not write."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sqlglot import exp

from sqlmesh_like.compiled_model import CompiledModel
from tests.tpc.join_blocks import TABLE, blocks
from tests.tpc.plans import compiled_suite

PRODUCT = re.compile("CartesianProduct|BroadcastNestedLoopJoin")
ONE_ROW = {
    ("h", "q22"): "each customer is compared with one average",
    ("ds", "q09"): "each reason meets fifteen counts and averages, one row each",
}
"""Queries whose scalar subqueries become joins with one row, which Spark's own plan does not show as a join."""
AUTHORS = {("ds", "q28"), ("ds", "q61"), ("ds", "q77"), ("ds", "q88"), ("ds", "q90")}
"""Queries that are written as a product, of single rows each."""
AT_ONCE = 20
"""Plans are asked for together: each by itself spends as long on Spark's optimizer starting as on the joins."""


@pytest.mark.release
@pytest.mark.timeout(600)
def test_no_delta_program_multiplies_what_its_author_joins(spark: SparkSession) -> None:
    programs = {(suite, name): compiled for suite in ("h", "ds") for name, compiled in maintained(suite)}
    assert len(programs) > 100
    users: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for query, compiled in programs.items():
        assert compiled.table.program is not None
        for step in compiled.table.program.steps:
            for block in blocks(step.query):
                users[block].add(query)
    session = spark.newSession()
    # What Spark infers from several equalities could only make more joins of them, and takes most of its time.
    session.conf.set("spark.sql.constraintPropagation.enabled", "false")
    listed = AUTHORS | ONE_ROW.keys()
    awaited = sorted((block for block, queries in users.items() if queries - listed), key=width)
    assert len(awaited) > 300
    assert {query for block in products(session, awaited) for query in users[block]} <= listed
    # And they are seen where there are some.
    assert all(PRODUCT.search(authors_plan(session, programs[query])) for query in AUTHORS)
    assert not any(PRODUCT.search(authors_plan(session, programs[query])) for query in ONE_ROW)


def maintained(suite: str) -> Iterator[tuple[str, CompiledModel]]:
    """The queries that are followed incrementally."""
    for name, compiled in compiled_suite(suite):
        if compiled.classification.strategy != "full_refresh":
            yield name, compiled


def products(session: SparkSession, texts: Sequence[str]) -> Iterator[str]:
    """Blocks that Spark plans as a product; they are given in the order of their widths."""
    for start in range(0, len(texts), AT_ONCE):
        some = texts[start : start + AT_ONCE]
        make_table(session, TABLE, {f"c{number}": "string" for number in range(width(some[-1]))})
        if PRODUCT.search(plan(session, " union all ".join(some))):
            yield from (block for block in some if PRODUCT.search(plan(session, block)))


def width(block: str) -> int:
    """How many columns a table must have for it."""
    return max((int(number) + 1 for number in re.findall(r"\bc(\d+)\b", block)), default=1)


def authors_plan(session: SparkSession, compiled: CompiledModel) -> str:
    views = {}
    for ref in compiled.facts.inputs:
        name = views[ref.table.schema.lower(), ref.table.identifier.lower()] = f"input_{ref.table.identifier}"
        make_table(session, name, {column.name: column.type or "" for column in ref.declared})

    def bind(node: exp.Expr) -> exp.Expr:
        view = views.get((node.db.lower(), node.name.lower())) if isinstance(node, exp.Table) else None
        return node if view is None else exp.table_(view, alias=node.alias or node.name)

    return plan(session, compiled.facts.tree.copy().transform(bind).sql("spark"))


def make_table(session: SparkSession, name: str, columns: Mapping[str, str]) -> None:
    """A table of unknown size: Spark must not see that it is empty."""
    context: Any = session.sparkContext
    types = context._jvm.org.apache.spark.sql.types.StructType
    schema = types.fromDDL(", ".join(f"`{column}` {type_}" for column, type_ in columns.items()))
    java = session._jsparkSession
    java.createDataFrame(context._jsc.emptyRDD(), schema).createOrReplaceTempView(name)


def plan(session: SparkSession, query: str) -> str:
    """The physical plan; nothing is executed."""
    return str(session._jsparkSession.sql(query).queryExecution().sparkPlan().toString())
