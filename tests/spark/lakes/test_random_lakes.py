"""Random queries follow random changes through real Spark and Hudi, on both types of table, with services in between.

After each batch every model's table, as any reader of Hudi sees it, equals its SELECT over the rows that were written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sqlmesh_like.classify.rules import TIED
from sqlmesh_like.duckdb.local_sample import local_difference
from sqlmesh_like.run.ports import Sample
from sqlmesh_like.spark.frames.comparison import difference
from sqlmesh_like.spark.tables.cleaner import clean_history
from tests.levels import IS_DEEP
from tests.properties.case import Case, Row
from tests.spark.lake import Lake, Table
from tests.spark.world import World, world

WORLDS = range(12) if IS_DEEP else range(2)
MODELS = 10 if IS_DEEP else 3
BATCHES = 6 if IS_DEEP else 3
SIMPLE = {"hoodie__index__type": "SIMPLE"}
"""Of the table that is clustered: the bucket index knows no clustering."""

_TABLE = r"\bods[.]([tuw])\b"
States = Mapping[str, Mapping[str, Row]]


@pytest.mark.release
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("number", WORLDS)
def test_every_model_equals_its_query_after_every_batch(lake: Lake, number: int) -> None:
    drawn = world(number, MODELS, BATCHES)
    tables = _tables(lake, drawn, number)
    _declare(lake, drawn)
    taken = set()
    for batch, (before, after) in enumerate(drawn.states()):
        for name, table in tables.items():
            _write(table, before[name], after[name], drawn.batches[batch].get(name, {}))
        _serve(lake, tables, batch)
        strategies = lake.run_well()
        _require_equal(lake, drawn, tables, after, f"batch {batch}")
        if batch:
            rebuilt = {name for name, strategy in strategies.items() if strategy == "full_refresh"}
            by_design = {name for name in drawn.models if drawn.plan(name).classification.strategy == "full_refresh"}
            # A model that no change reached stays where it was, and cleaning may leave it behind.
            unexplained = {name for name in rebuilt - by_design if lake.rules(name) != {"HIS003"}}
            assert not unexplained, {name: lake.results[name].reasons for name in unexplained}
            taken |= set(strategies.values())
    commits = [lake.commits(name) for name in drawn.models]
    lake.run_well()
    assert [lake.commits(name) for name in drawn.models] == commits, "a run with nothing new commits nothing"
    assert len(taken - {"full_refresh", "no_op"}) >= 2, taken


def _tables(lake: Lake, drawn: World, number: int) -> dict[str, Table]:
    """`t` is partitioned by a column that models do not see, `u` by one that they do, `w` by none."""
    partitions = {"t": "_sml_part", "u": drawn.tables["u"][0][0], "w": None}
    sources = {}
    for place, (name, columns) in enumerate(drawn.tables.items()):
        kept = (("_sml_row", "string"), ("_sml_part", "string"), *columns)
        ddl = ", ".join(f"`{column}` {type_}" for column, type_ in kept)
        sources[name] = lake.source(
            name, ddl, ("_sml_row",), partitions[name], table_type="mor" if (place + number) % 2 else "cow"
        )
    return sources


def _declare(lake: Lake, drawn: World) -> None:
    for place, (name, case) in enumerate(drawn.models.items()):
        type_ = "mor" if place % 2 else "cow"
        config = f"refresh='incremental', table_type='{type_}', partition_by={list(case.partition_by)}"
        sql = re.sub(_TABLE, r"@\1", case.sql)
        lake.model(name, f"{{{{ config({config}) }}}} {sql}")


def _write(table: Table, before: Mapping[str, Row], after: Mapping[str, Row], batch: Mapping[str, Row | None]) -> None:
    """One commit: a row whose partition changes leaves the old one. What was never there is not deleted."""
    rows = [_stored(key, after[key]) for key in batch if key in after]
    gone = [_stored(key, before[key]) for key in batch if key in before and _moves(table, before[key], after.get(key))]
    if rows or gone or not table.timeline.exists:
        table.upsert(*rows, delete=gone, **(SIMPLE if table.layout.partition_field is None else {}))


def _stored(key: str, row: Row) -> Row:
    return (f"k{key}", _part(row), *row)


def _part(row: Row) -> str:
    return f"p{row[0]}"


def _moves(table: Table, old: Row, new: Row | None) -> bool:
    return new is None or (table.layout.partition_field is not None and old[0] != new[0])


def _serve(lake: Lake, tables: Mapping[str, Table], batch: int) -> None:
    """A service of each kind comes by in turn; a compaction is scheduled before one batch and runs after the next."""
    for table in tables.values():
        if table.layout.table_type == "mor" and batch % 3 != 0:
            lake.compaction(table.uri, "schedule" if batch % 3 == 1 else "run")
        if batch and batch % 3 == 0:
            clean_history(lake.spark, table.uri, retain=4)
    if batch % 3 == 2:  # nothing of a pending compaction is clustered
        options = "hoodie.metadata.enable=false"
        lake.spark.sql(f"call run_clustering(path => '{tables['w'].uri}', options => '{options}')").collect()
        assert any(commit.operation == "CLUSTER" for commit in tables["w"].timeline.commits)


def _require_equal(lake: Lake, drawn: World, tables: Mapping[str, Table], rows: States, when: str) -> None:
    pairs = {}
    for name, columns in drawn.tables.items():
        _view(lake, name, [f"`{column}` {type_}" for column, type_ in columns], list(rows[name].values()))
        read = tables[name].feed().current(tables[name].frontier()).drop("_sml_key")
        pairs[name] = read, lake.spark.table(f"truth_{name}")
    tied = {name for name, case in drawn.models.items() if _is_tied(case)}
    for name in drawn.models.keys() - tied:
        expected = lake.spark.sql(re.sub(_TABLE, r"truth_\1", drawn.models[name].sql))
        pairs[name] = lake.hudi(name).select(*[f"`{column}`" for column in expected.columns]), expected
    for name in sorted(_unequal(pairs)):
        mismatch = difference(*pairs[name], 5)  # which forgives the last digits of doubles
        assert mismatch.total == 0, f"{name} after {when}: {mismatch.rows}\nTo have it again:\n{drawn.models.get(name)}"
    for name in sorted(tied):
        assert lake.verify(name).total == 0, f"{name} after {when}\nTo have it again:\n{drawn.models[name]}"
    for name in sorted(drawn.models):
        sampled = local_difference(lake.plan(name).as_recorded(), 5, Sample(keys=3, seed=len(when)))
        assert sampled is None or not sampled.total, f"{name} after {when}, in DuckDB: {sampled}\n{drawn.models[name]}"


def _is_tied(case: Case) -> bool:
    """Whether tied rows are ordered by their keys, which the query alone does not know."""
    return any(reason.rule in TIED for reason in case.plan.classification.reasons)


def _unequal(pairs: Mapping[str, tuple[DataFrame, DataFrame]]) -> set[str]:
    """Names of tables that are another multiset of rows than expected: one job for all of them."""
    differences = []
    for name, (stored, expected) in pairs.items():
        alike = expected.select(*[F.col(f"`{f.name}`").cast(f.dataType) for f in stored.schema.fields])
        signed = stored.withColumn("_sign", F.lit(1)).unionByName(alike.withColumn("_sign", F.lit(-1)))
        grouped = signed.groupBy(*[f"`{column}`" for column in stored.columns]).agg(F.sum("_sign").alias("_sum"))
        differences.append(grouped.where("_sum <> 0").select(F.lit(name).alias("name")))
    return {row[0] for row in reduce(DataFrame.union, differences).collect()}


def _view(lake: Lake, name: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
    lake.spark.createDataFrame(list(rows), ", ".join(columns)).createOrReplaceTempView(f"truth_{name}")
