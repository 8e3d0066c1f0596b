"""What each command that may take long says it does, and whose time the start of an engine is."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from sqlmesh_like.app.lakes import spark_session
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.cdc.stream import continuous
from sqlmesh_like.cli.app import main
from sqlmesh_like.cli.context import TerminalReporter
from sqlmesh_like.cli.options import Flags
from sqlmesh_like.cli.printing.activity import Activity
from sqlmesh_like.run import executor, ports
from tests.local_lake import make_table
from tests.projects import enter_project

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\n',
    "profiles.yml": """
lake:
  target: a
  outputs:
    a: {type: spark, schema: dws, warehouse: w}
    test: {type: duckdb, schema: dws}
""",
    "models/s.yml": """
version: 2
sources:
  - name: shop
    schema: ods
    freshness: {warn_after: {count: 1, period: day}}
    tables: [{name: orders, columns: [{name: id, data_type: int, data_tests: [unique]}]}]
  - name: log
    schema: ods
    ingest: {format: debezium, files: {path: landing}}
    tables: [{name: events, ingest: {primary_key: id}, columns: [{name: id, data_type: int}]}]
""",
    "models/m.sql": "{{ config(materialized='view') }} select id from {{ source('shop', 'orders') }}",
    "macros/done.sql": "{% macro done() %}{% endmacro %}",
    "fixtures/shop/orders.csv": "id\n1\n",
}


@pytest.fixture(autouse=True)
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter_project(tmp_path, monkeypatch, FILES)
    make_table(tmp_path / "w/ods/orders", pa.table({"id": pa.array([1, 2], pa.int32())}))


@pytest.mark.parametrize(
    ("words", "phase"),
    [
        ("compile", "checking the SQL of 1 models"),
        ("lint", "compiling the models"),
        ("test", "planning"),
        ("build -t test", "planning"),
        ("show orders", "reading tables"),
        ("changes ods.orders --since {first}", "comparing the commits of ods.orders"),
        ("freshness", "asking source 1 of 1, ods.orders"),
        ("docs generate", "reading the tables' history"),
        ("docs generate", "compiling the models"),
        ("ingest", "asking the brokers"),
        ("watch", "asking the brokers"),
        ("run-operation done", "calling done"),
        ("deps -t test", "fetching packages"),
    ],
)
def test_a_command_names_what_it_does(monkeypatch: pytest.MonkeyPatch, words: str, phase: str, tmp_path: Path) -> None:
    phases: list[str] = []
    monkeypatch.setattr(Activity, "phase", lambda _, name: phases.append(name))
    monkeypatch.setattr(continuous, "run_until_stopped", lambda *_, **__: [])  # `watch` has nothing to wait for
    (commit,) = (path.name for path in (tmp_path / "w/ods/orders/.hoodie").rglob("*.commit"))
    main(words.replace("{first}", commit.partition("_")[0].partition(".")[0]).split())
    assert [name for name in phases if name.startswith(phase)], phases


def test_the_start_of_spark_has_a_line_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    class Jvm:
        @staticmethod
        def start_session(*_: object, **__: object) -> str:
            return "a session"

    monkeypatch.setitem(sys.modules, "sqlmesh_like.spark.jvm.session", Jvm)
    from sqlmesh_like.app.loading.loaded import load

    loaded: Loaded = load(Flags(), reporter=TerminalReporter(Flags()))
    assert spark_session.start_spark(loaded) == "a session"
    assert re.search(r"Started Spark in \d+\.\ds\n", capsys.readouterr().err)


def test_an_engine_that_starts_is_no_time_of_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    for module in (executor, ports):
        monkeypatch.setattr(module, "perf_counter", lambda: now[0])
    before = datetime.now(UTC)
    watch = executor._Stopwatch()
    with ports.starting():
        now[0] += 30
    now[0] += 2
    assert watch.seconds == 2 and watch.started >= before
