"""Programs on a cluster's driver, for which executors look rows up, or compute steps, in tables too large for it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal as D
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.duckdb.local_files import LocalTable
from sqlmesh_like.duckdb.merge_on_read_files import local_table
from sqlmesh_like.duckdb.merged_slices import MergedSlices
from sqlmesh_like.duckdb.programs import local_steps, read_limit
from sqlmesh_like.duckdb.programs.executor_rows import ExecutorRows
from sqlmesh_like.hudi import change_log
from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.plan import frontier_advance, model_plan, router
from sqlmesh_like.run.remote_reader import KeyedRows, RemoteQuery, RemoteRows
from sqlmesh_like.spark.change_feed.keyed_rows import keyed_rows
from sqlmesh_like.spark.spark_engine import SparkEngine
from tests import remote_steps
from tests.spark.lake import Lake, Row
from tests.spark.sql.test_local_program import MODELS, NEVER_HERE, sources, stored, written

pytestmark = pytest.mark.release

MOST_JOBS = 4
"""Of a query: the tables that it broadcasts or shuffles, and its result; each step that is sent along is broadcast."""
CITIES = ("x", "y", "", "ü", None)
CLUSTER = """lake:
  target: cluster
  outputs:
    cluster: {type: spark, master: yarn, warehouse: warehouse, schema: dws}
"""


Asked = list[tuple[KeyedRows | RemoteQuery, RemoteRows]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What executors were asked for. Inputs count as too large for the driver, however small they are."""
    for module in (model_plan, frontier_advance, local_steps, router):
        monkeypatch.setattr(module, "SMALL_INPUT", 0)
    monkeypatch.setattr(change_log, "LOGGED_FROM_BYTES", 0)
    size = read_limit._bytes_of
    large = 2_000_000_000  # the bound, which the change itself is part of
    monkeypatch.setattr(read_limit, "_bytes_of", lambda t, at: large if "/ods/" in t.uri else size(t, at))
    noted: Asked = []
    look_up, run_query = SparkEngine.look_up, SparkEngine.run_query

    def note_lookup(engine: SparkEngine, wanted: KeyedRows) -> RemoteRows:
        noted.append((wanted, look_up(engine, wanted)))
        return noted[-1][1]

    def note_query(engine: SparkEngine, wanted: RemoteQuery) -> RemoteRows:
        noted.append((wanted, run_query(engine, wanted)))
        return noted[-1][1]

    monkeypatch.setattr(SparkEngine, "look_up", note_lookup)
    monkeypatch.setattr(SparkEngine, "run_query", note_query)
    return noted


def batches(dice: random.Random) -> Iterator[tuple[list[Row], list[int], list[Row], list[int]]]:
    """Rows of orders and buyers that come, change, go, and come again late; some orders name nobody."""
    there: set[int] = set()
    for number in range(4):
        ids = dice.sample(range(40), 20 if number == 0 else 6)
        gone = dice.sample(sorted(there - set(ids)), 2) if there else []
        there = (there | set(ids)) - set(gone)
        rows: list[Row] = [
            (id, dice.choice((None, 7, 8, 9, 10)), D(dice.randint(0, 900)) / 100, dice.choice((None, -0.0, 0.5, 1e10)),
             dice.choice(CITIES), f"{dice.choice((1969, 2024))}-0{dice.randint(1, 3)}-1{dice.randint(0, 9)}")
            for id in ids
        ]  # fmt: skip
        people: list[Row] = [(id, dice.choice(("ann", "", "bob")), D(dice.randint(-200, 200)) / 100) for id in (7, 8)]
        yield rows, gone, people, [9] if number == 2 else []


def test_programs_over_rows_that_executors_look_up_bring_tables_to_the_same_rows(
    spark: SparkSession, tmp_path: Path, asked: Asked
) -> None:
    lakes = [Lake(spark, tmp_path / "driver"), Lake(spark, tmp_path / "executors", delta_engine="spark")]
    lakes[0]._put("profiles.yml", CLUSTER)
    tables = [sources(lake) for lake in lakes]
    for lake in lakes:
        for name, sql in (MODELS | NEVER_HERE).items():
            lake.model(name, sql)
    engines: dict[str, set[str]] = {name: set() for name in MODELS}
    for batch in batches(random.Random(39)):
        asked.clear()
        for lake, (orders, buyers) in zip(lakes, tables, strict=True):
            written(lake, orders, buyers, batch)
            lake.run_well()
        lakes[0].assert_maintained()
        for name in MODELS:
            assert stored(lakes[0], name) == stored(lakes[1], name), name
            result = lakes[0].results[name]
            if result.strategy not in ("full_refresh", "no_op"):
                engines[name].add(str(result.engine))
        assert_asked_once(asked)
    assert {name for name, used in engines.items() if used != {"duckdb"}} == set()
    assert_few_jobs(lakes[0], asked)
    assert any(isinstance(wanted, KeyedRows) for wanted, _ in asked)


def test_steps_that_executors_compute_maintain_tables(spark: SparkSession, tmp_path: Path, asked: Asked) -> None:
    """Aggregates of all rows, keys of each type, predicates over expressions, joins without equalities."""
    lake, models = Lake(spark, tmp_path), remote_steps.BY_KEYS | remote_steps.OTHERS
    lake._put("profiles.yml", CLUSTER)
    for name, sql in (models | {"signs": remote_steps.SIGNS}).items():
        lake.model(name, sql)
    lake.source("marks", "id int").upsert((9,), (20,))
    columns = "id int, grp int, x double, city string, amount decimal(12,2), day date, seen timestamp"
    facts, dims = lake.source("facts", columns, buckets=2), lake.source("dims", "id int, name string")
    dice, there, followed, queried = random.Random(7), set[int](), set[str](), set[str]()
    for number in range(3):
        asked.clear()
        chosen = dice.sample(range(30), 6 if there else 20)
        gone = dice.sample(sorted(there - set(chosen)), 2) if there else []
        there = (there | set(chosen)) - set(gone)
        rows = [remote_steps.fact(each, dice)[1:] for each in chosen]
        dims.upsert(*[(each, dice.choice("xyz")) for each in (1, 2, 3)])
        if number < 2:
            facts.upsert(*rows, delete=[(each, *[None] * 6) for each in gone])
        lake.run_well()
        lake.assert_maintained()
        engines = {
            name: result.engine
            for name, result in lake.results.items()
            if result.strategy not in ("full_refresh", "no_op")
        }
        assert engines.pop("signs", "spark") == "spark", "it shows the sign of zeros"
        assert set(engines.values()) <= {"duckdb"}
        followed |= set(engines)
        queried |= {wanted.planned.compiled.model.name for wanted, _ in asked if isinstance(wanted, RemoteQuery)}
        assert_few_jobs(lake, asked)
    assert followed == set(models)
    assert queried >= {"of_decimals", "of_texts", "best", "below", "lacking"}


def assert_asked_once(asked: Asked) -> None:
    """No key of a table was looked up twice in the run, for one choice of columns."""
    lookups = [wanted for wanted, _ in asked if isinstance(wanted, KeyedRows)]
    keys = Counter(
        (wanted.uri, *wanted.keys.column_names, *row.values()) for wanted in lookups for row in wanted.keys.to_pylist()
    )
    assert set(keys.values()) <= {1}


def assert_few_jobs(lake: Lake, asked: Asked) -> None:
    """All jobs of models that the driver computes are those of its questions, which are few for each."""
    jobs = [each.spark.jobs for each in lake.results.values() if each.engine == "duckdb" and each.spark]
    counts = [(wanted, rows.spark.jobs) for wanted, rows in asked if rows.spark]
    assert sum(jobs) == sum(count for _, count in counts)
    for wanted, count in counts:
        if isinstance(wanted, KeyedRows):
            assert count <= 2, "one that reads the table, one that broadcasts the keys"
        else:
            assert count <= MOST_JOBS + len(wanted.steps), wanted.query.sql("spark")


NASTY: list[Row] = [
    (1, 1, "a", D("0.10"), -0.0, 1.5, True, date(1969, 12, 31), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)),
    (2, 2, "", D("-99999999.99"), float("nan"), -0.0, False, date(1900, 1, 1), datetime(2024, 2, 29, tzinfo=UTC)),
    (3, None, None, None, None, None, None, None, None),
    (
        4,
        2**62,
        "ü\n",
        D("1.00"),
        float("inf"),
        float("nan"),
        None,
        date(9999, 12, 31),
        datetime(2100, 1, 1, tzinfo=UTC),
    ),
    (5, -1, "a", D("0.00"), 1e-300, 3.4e38, True, date(2024, 3, 1), datetime(1900, 1, 1, tzinfo=UTC)),
]


@pytest.mark.parametrize("key", ["big", "text", "flag", "day", "moment"])
def test_values_are_those_that_duckdb_reads_in_the_same_files(spark: SparkSession, tmp_path: Path, key: str) -> None:
    lake = Lake(spark, tmp_path)
    columns = "id int, big bigint, text string, price decimal(10,2), x double, y float, flag boolean, day date"
    columns += ", moment timestamp"
    things = lake.source("things", columns, buckets=2)
    things.upsert(*NASTY)
    state = table_state(things.timeline)
    table = local_table(state, MergedSlices(), hidden=False)
    assert type(table) is LocalTable and state.frontier is not None
    db = duckdb.connect()
    shown = [column.name for column in table.schema]
    for condition in ("true", f"{key} IS NULL", f"{key} IS NOT NULL", "false"):
        of_files = f"SELECT {', '.join(shown)} FROM ({table.rows(state.frontier)})"
        db.execute(f"CREATE OR REPLACE TABLE keys AS SELECT DISTINCT {key} AS k0 FROM ({of_files}) WHERE {condition}")
        executors = ExecutorRows(partial(keyed_rows, spark), table, state.frontier, 100)
        arrived = executors.rows(db, "keys", [key], shown)
        assert arrived is not None
        same = f"t.{key} IS NOT DISTINCT FROM keys.k0"
        expected = f"{of_files} AS t SEMI JOIN keys ON {same}"
        assert described(db, arrived) == described(db, expected), condition


def test_too_many_rows_are_none(spark: SparkSession, tmp_path: Path) -> None:
    things = Lake(spark, tmp_path).source("things", "id int, city string")
    things.upsert(*[(id, "x") for id in range(10)])
    keys = pa.table({"city": ["x"]})
    for most, is_there in ((10, True), (9, False)):
        frontier = things.timeline.frontier
        assert frontier is not None
        wanted = KeyedRows(things.uri, frontier, keys, table_state(things.timeline).schema or (), most)
        assert (keyed_rows(spark, wanted) is not None) == is_there


def test_a_look_up_is_one_job_and_the_broadcast_of_its_keys(spark: SparkSession, tmp_path: Path) -> None:
    things = Lake(spark, tmp_path).source("things", "id int, city string", buckets=4)
    things.upsert(*[(id, "x") for id in range(100)])
    frontier, schema = things.timeline.frontier, table_state(things.timeline).schema or ()
    assert frontier is not None
    keys = pa.table({"id": pa.array(range(0, 100, 7), pa.int32())})
    spark.sparkContext.setJobGroup("look-up", "one look-up")
    rows = keyed_rows(spark, KeyedRows(things.uri, frontier, keys, schema, 1000))
    assert rows is not None and sorted(rows["id"].to_pylist()) == list(range(0, 100, 7))
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup("look-up")
    assert len(jobs) == 2


def described(db: duckdb.DuckDBPyConnection, query: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Columns with types, and rows as text: NaN and negative zero can be told apart."""
    columns = [(name, type_) for name, type_, *_ in db.execute(f"DESCRIBE {query}").fetchall()]
    return columns, sorted(map(repr, db.execute(query).fetchall()))
