"""What is sent to executors along with a step that they compute, and what is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal as D
from time import sleep
from typing import cast

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from sqlmesh_like.delta.machine import ReadyStep
from sqlmesh_like.delta.program import Prune
from sqlmesh_like.duckdb.exact_sql import Unproven
from sqlmesh_like.duckdb.programs.read_limit import ReadLimit
from sqlmesh_like.duckdb.programs.remote_steps import RemoteSteps
from sqlmesh_like.names import Column, Schema
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.run.ports import SparkWork, starting
from sqlmesh_like.run.remote_reader import KeyedRows, RemoteQuery, RemoteRows

FACTS = (Column("id", "int"), Column("x", "double"), Column("name", "string"))


class Noted:
    """Executors that return two rows whatever they are asked."""

    def __init__(self) -> None:
        self.asked: list[RemoteQuery] = []

    def look_up(self, wanted: KeyedRows) -> RemoteRows:
        raise AssertionError(wanted)

    def run_query(self, wanted: RemoteQuery) -> RemoteRows:
        self.asked.append(wanted)
        rows = pa.table({"x": [-0.0, float("nan")], "at": pa.array([0, None], pa.timestamp("us", "UTC"))})
        return RemoteRows(rows, (Column("x", "double"), Column("at", "timestamp")))


@pytest.fixture
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as db:
        yield db


def remote_steps(db: duckdb.DuckDBPyConnection, noted: Noted, schemas: dict[str, Schema]) -> RemoteSteps:
    def schema_of(name: str) -> Schema:
        return FACTS if name == "current.facts" else schemas[name]

    limit = ReadLimit(1_000_000, noted)
    return RemoteSteps(db, cast(PlannedModel, None), limit, schemas, schema_of)


def step(text: str, *prunes: Prune) -> ReadyStep:
    query = sqlglot.parse_one(text, dialect="spark")
    assert isinstance(query, exp.Query)
    return ReadyStep("step", query, prunes)


def test_steps_that_a_query_reads_are_sent_in_the_types_that_spark_gives_them(db: duckdb.DuckDBPyConnection) -> None:
    noted = Noted()
    values = "CAST(1 AS HUGEINT) AS d, TIMESTAMP '1969-12-31 23:59:59.999999' AS at, DATE '1900-01-01' AS day, '' AS t"
    db.execute(f"CREATE TABLE keys AS SELECT {values} UNION ALL SELECT NULL, NULL, NULL, NULL")
    db.execute("CREATE TABLE others AS SELECT 1 AS k; CREATE TABLE pruning AS SELECT 2 AS p")
    typed = {"d": "decimal(20,2)", "at": "timestamp", "day": "date", "t": "string"}
    schemas: dict[str, Schema] = {
        "keys": tuple(Column(*each) for each in typed.items()),
        "others": (Column("k", "int"),),
        "pruning": (Column("p", "int"),),
    }
    prunes = (Prune("pruning", {"facts": (("id", "p"),)}), Prune("skipped", {"facts": (("id", "p"),)}))
    text = "select f.* from current.facts f where exists (select 1 from keys k where k.t = f.name)"
    found = remote_steps(db, noted, schemas).computed(step(text, *prunes))
    assert repr(db.execute(found.sql).fetchall()) == "[(0.0, datetime.datetime(1970, 1, 1, 0, 0)), (nan, None)]"
    [wanted] = noted.asked
    assert set(wanted.steps) == {"keys", "pruning"} and wanted.prunes == prunes[:1]
    assert wanted.steps["keys"].schema.field("d").type == pa.decimal128(20, 2)
    moment = datetime(1969, 12, 31, 23, 59, 59, 999999)
    assert list(map(tuple, (row.values() for row in wanted.steps["keys"].to_pylist()))) == [
        (D("1.00"), moment, date(1900, 1, 1), ""), (None, None, None, None)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("type_", "shown", "is_asked"),
    [("double", "cast(k.x as string)", False), ("double", "k.x", True), ("int", "cast(k.x as string)", True)],
)
def test_zeros_that_have_lost_their_sign_are_not_sent_to_a_query_that_shows_it(
    db: duckdb.DuckDBPyConnection, type_: str, shown: str, is_asked: bool
) -> None:
    noted = Noted()
    db.execute("CREATE TABLE keys AS SELECT 0 AS x, 'a' AS name")
    steps = remote_steps(db, noted, {"keys": (Column("x", type_), Column("name", "string"))})
    wanted = step(f"select {shown} as x from keys as k join current.facts as f on f.name = k.name")
    if is_asked:
        steps.computed(wanted)
    else:
        with pytest.raises(Unproven):
            steps.computed(wanted)
    assert len(noted.asked) == is_asked


def test_steps_with_nested_columns_or_too_many_rows_are_not_sent(
    db: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = Noted()
    db.execute("CREATE TABLE keys AS SELECT [1] AS k")
    read = step("select f.id from current.facts f where exists (select 1 from keys)")
    with pytest.raises(Unproven, match=r"a column of array<int> that executors have to read"):
        remote_steps(db, noted, {"keys": (Column("k", "array<int>"),)}).computed(read)
    monkeypatch.setattr("sqlmesh_like.duckdb.programs.remote_steps._MOST_SENT", 10)
    db.execute("CREATE OR REPLACE TABLE keys AS SELECT 1::BIGINT AS k FROM range(2)")
    with pytest.raises(Unproven, match="executors do not return its rows"):
        remote_steps(db, noted, {"keys": (Column("k", "bigint"),)}).computed(read)
    assert not noted.asked


class Working(Noted):
    """Executors that start for a tenth of a second and then have two jobs for each question."""

    def run_query(self, wanted: RemoteQuery) -> RemoteRows:
        if not self.asked:
            with starting():
                sleep(0.1)
        return replace(super().run_query(wanted), spark=SparkWork(2, 3, 100_000_000, 7))


def test_jobs_of_a_program_are_counted_with_their_time_which_the_start_of_a_session_is_no_part_of(
    db: duckdb.DuckDBPyConnection,
) -> None:
    steps = remote_steps(db, Working(), {})
    assert steps.limit.done is None
    for _ in range(2):
        steps.computed(step("select x from current.facts"))
    done = steps.limit.done
    assert done is not None and (done.jobs, done.bytes) == (4, 200_000_014)
    assert steps.limit.starting_seconds >= 0.1
    assert done.seconds == steps.limit.seconds - steps.limit.starting_seconds
