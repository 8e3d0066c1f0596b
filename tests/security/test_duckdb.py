"""What a stranger's pull request can do where DuckDB runs its text: compute, and nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import duckdb
import pytest

from sqlmesh_like.cli.app import main
from sqlmesh_like.duckdb import duck_connection
from sqlmesh_like.duckdb.duck_connection import database, file_worker, reader, sandbox, time_limit, workspace
from sqlmesh_like.errors import NodeError
from tests.levels import sample
from tests.projects import enter_project

SECRET = "planted-in-a-file"
SOURCES = Path(__file__).parents[2] / "sqlmesh_like"

REACHING_OUT = (
    "select * from read_text('{file}')",
    "select * from read_blob('{file}')",
    "select * from read_csv('{file}')",
    "select * from read_csv_auto('{file}')",
    "select * from read_json('{file}')",
    "select * from read_json_objects('{file}')",
    "select * from read_ndjson('{file}')",
    "select * from read_parquet('{file}')",
    "select * from parquet_metadata('{file}')",
    "select * from parquet_schema('{file}')",
    "select * from sniff_csv('{file}')",
    "select * from glob('{folder}/*')",
    "select * from '{file}'",
    'select * from "{file}"',
    "select * from query('select * from read_text(''{file}'')')",
    "select * from query_table('{file}')",
    "copy (select 1) to '{folder}/out.csv'",
    "copy (select 1) to '{folder}/out.parquet' (format parquet)",
    "export database '{folder}/out'",
    "attach '{folder}/out.db'",
    "attach 'https://127.0.0.1:9/x.db' as remote",
    "install httpfs",
    "load httpfs",
    "load '{file}'",
    "install sqlite from community",
    "select * from read_csv('https://127.0.0.1:9/x.csv')",
    "select * from 's3://bucket/x.parquet'",
    "create persistent secret s (type s3, key_id 'a', secret 'b')",
    "set enable_external_access = true",
    "set allowed_directories = ['/']",
    "set lock_configuration = false",
    "set memory_limit = '100GB'",
    "set temp_directory = '{folder}'",
    "set home_directory = '{folder}'",
    "set autoload_known_extensions = true",
    "set python_enable_replacements = true",
    "set threads = 64",
    "reset memory_limit",
    "pragma enable_external_access",
    "set log_query_path = '{folder}/log'",
    "set profiling_output = '{folder}/profile'",
    "select * from frame_of_python",
    "select getenv('HOME')",
)


@contextmanager
def reading(files: Sequence[str]) -> Iterator[duckdb.DuckDBPyConnection]:
    with closing(reader(files)) as space:
        yield space.connection


@sample("statement", REACHING_OUT, every=3)
@pytest.mark.parametrize("kind", ["sandbox", "workspace", "reader"])
def test_no_statement_leaves_a_connection_for_strangers(statement: str, kind: str, tmp_path: Path) -> None:
    frame_of_python = duckdb.values([1])
    assert frame_of_python is not None
    file = tmp_path / "secret.csv"
    file.write_text(f"a\n{SECRET}\n")
    other = tmp_path / "other.csv"
    other.write_text("a\n1\n")
    opened: dict[str, Callable[[], AbstractContextManager[duckdb.DuckDBPyConnection]]]
    opened = {"sandbox": sandbox, "workspace": workspace, "reader": lambda: reading([str(other)])}
    with opened[kind]() as db:
        with pytest.raises(duckdb.Error) as failed:
            db.cursor().execute(statement.format(file=file, folder=tmp_path)).fetchall()
        assert SECRET not in str(failed.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.csv", "secret.csv"]


def test_a_reader_reads_its_files(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a\n1\n")
    with reading([str(file)]) as db:
        assert db.execute(f"select * from read_csv('{file}')").fetchall() == [(1,)]


def test_readers_of_the_same_files_share_nothing_else(tmp_path: Path) -> None:
    file, other = tmp_path / "a.csv", tmp_path / "b.csv"
    file.write_text("a\n1\n")
    other.write_text(f"a\n{SECRET}\n")
    query = f"select * from read_csv('{file}')"
    with reading([str(file)]) as one, reading([str(file)]) as two, reading([str(other)]) as third:
        one.execute(
            f"create schema s; create view s.v as {query}; create macro m() as 1; create temp table t as {query}"
        )
        assert one.execute("select * from s.v").fetchall() == [(1,)]
        for statement in ("select * from s.v", "select m()", "select * from t"):
            with pytest.raises(duckdb.Error):
                two.execute(statement)
        two.execute("create schema s; create view s.v as select 2 as a")
        assert [db.execute("select a from s.v").fetchall() for db in (one, two)] == [[(1,)], [(2,)]]
        with pytest.raises(duckdb.Error):
            third.execute(query)
        with pytest.raises(duckdb.Error):
            two.execute(f"select * from read_csv('{other}')")
        file.write_text("a\n3\n")
        assert [db.execute(query).fetchall() for db in (one, two)] == [[(3,)], [(3,)]]
    space = reader([str(file)])
    space.connection.execute("create schema s; create table s.t as select 5 as a")
    assert space.cursor().execute("select a from s.t").fetchall() == [(5,)]
    space.close()
    with reading([str(file)]) as db:
        held = "select count(*) from duckdb_databases() where database_name like 'workspace%'"
        assert db.execute(held).fetchall() == [(1,)]


@pytest.mark.parametrize("open_", [sandbox, lambda: file_worker(), lambda: database(":memory:")])
def test_no_connection_changes_its_configuration_loads_extensions_or_reads_variables_of_python(
    open_: Callable[[], duckdb.DuckDBPyConnection],
) -> None:
    hidden = duckdb.values([1])
    assert hidden is not None
    with open_() as db:
        for statement in ("set threads = 3", "select * from hidden"):
            with pytest.raises(duckdb.Error):
                db.execute(statement)
        select = (
            "select current_setting('autoload_known_extensions') or current_setting('autoinstall_known_extensions')"
        )
        assert db.execute(select).fetchall() == [(False,)]


@pytest.mark.parametrize("open_", [sandbox, lambda: reading([]), workspace, file_worker, lambda: database(":memory:")])
def test_every_cursor_reads_timestamps_in_utc(
    open_: Callable[[], AbstractContextManager[duckdb.DuckDBPyConnection]],
) -> None:
    with open_() as db:
        zones = [each.execute("select current_setting('TimeZone')").fetchall() for each in (db, db.cursor())]
    assert zones == [[("UTC",)], [("UTC",)]], "a cursor has the global settings, not its connection's"


def test_a_workspace_starts_empty_and_does_not_see_another() -> None:
    with workspace() as one, workspace() as other:
        one.execute("create table t as select 1 as a")
        for sql in ("select * from t", "select * from main.t"):
            with pytest.raises(duckdb.CatalogException):
                other.execute(sql)
    with workspace() as db:
        databases = db.execute("select count(*) from duckdb_databases() where not internal").fetchall()
        assert databases == [(2,)], "the instance's own and this one"


def test_a_workspace_that_was_broken_is_followed_by_a_whole_one() -> None:
    with workspace() as db:
        db.execute("begin")
        with pytest.raises(duckdb.Error):
            db.execute("select error('x')")
    duck_connection._instance(1, os.getpid()).close()  # as DuckDB is after an internal error
    with workspace() as db:
        assert db.execute("select 1").fetchall() == [(1,)]


def test_a_process_that_is_forked_lives_on() -> None:
    with workspace() as db:
        db.execute("create table t as select 1 as a")
    assert subprocess.run([sys.executable, "-c", ""], preexec_fn=lambda: None, check=False).returncode == 0
    if (child := os.fork()) == 0:
        with workspace() as db:
            os._exit(0 if db.execute("select 1").fetchall() == [(1,)] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_memory_is_bounded() -> None:
    with sandbox(memory_limit="100MB") as db, pytest.raises(duckdb.Error, match="Out of Memory"):
        db.execute("create table t as select repeat('x', 1000) || i as a from range(10000000) t(i)")


def test_time_is_bounded() -> None:
    started = time.monotonic()
    with sandbox() as db, pytest.raises(NodeError, match="takes longer than"), time_limit(db, 0.3):
        db.execute("select count(*) from range(100000000) a, range(100000) b where a.range <> b.range").fetchall()
    assert time.monotonic() - started < 120


def test_the_factory_makes_every_connection() -> None:
    opened = [p.name for p in SOURCES.rglob("*.py") if re.search(r"duckdb\s*\.\s*connect\(", p.read_text())]
    assert opened == ["duck_connection.py"]


PROJECT = {
    "dbt_project.yml": "name: shop\n",
    "profiles.yml": "shop: {target: t, outputs: {t: {type: duckdb, schema: dws}}}\n",
    "models/s.yml": "sources: [{name: ods, tables: [{name: orders, columns: [{name: id, data_type: string}]}]}]\n",
    "models/m.sql": "select id from {{ source('ods', 'orders') }}",
    "fixtures/ods/orders.csv": "id\nx\n",
}
UNIT_TEST = """
unit_tests:
  - name: t
    model: m
    given:
      - input: source('ods', 'orders')
        format: sql
        rows: |
          {sql}
    expect: {{rows: [{{id: x}}]}}
"""


@pytest.mark.parametrize(
    "sql",
    [
        "select content as id from read_text('{file}')",
        "select * from `{file}`",
        "copy (select 'x' as id) to '{folder}/out.csv'",
        "select 'x' as id; copy (select 1) to '{folder}/out.csv'",
        "select 'x' as id; select 'y' as id",
        "create table t as select 'x' as id",
        "attach '{folder}/out.db'",
        "insert into t select 1",
        "set memory_limit = '1TB'",
        "drop table x",
        "select * from csv.`{file}`",
    ],
)
def test_a_fixture_in_sql_is_one_query_that_reads_no_file(
    sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.csv").write_text(f"id\n{SECRET}\n")
    text = UNIT_TEST.format(sql=sql.format(file=outside / "secret.csv", folder=outside))
    enter_project(tmp_path / "shop", monkeypatch, {**PROJECT, "models/u.yml": text})
    code = main(["test"])
    shown = "".join(capsys.readouterr())
    assert code in (1, 2) and SECRET not in shown and "Traceback" not in shown, shown
    assert [path.name for path in outside.iterdir()] == ["secret.csv"]


def test_a_fixture_in_sql_gives_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    enter_project(tmp_path, monkeypatch, {**PROJECT, "models/u.yml": UNIT_TEST.format(sql="select 'x' as id")})
    assert main(["test"]) == 0, capsys.readouterr()


@pytest.mark.parametrize("command", ["test", "build", "compile", "show"])
@pytest.mark.parametrize(
    "query",
    [
        "select id from `{file}`",
        "select id, soundex(id) as s from `{file}`",
        "select id from csv.`{file}`",
        "select content as id from read_text('{file}')",
        "select a.id from {{{{ source('ods', 'orders') }}}} a join `{file}` b on a.id = b.id",
    ],
)
def test_a_path_as_a_table_of_a_model_is_not_read(
    query: str,
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "secret.csv"
    file.write_text(f"id\n{SECRET}\n")
    unit_test = "unit_tests: [{name: t, model: m, given: [], expect: {rows: [{id: x}]}}]\n"
    files = {**PROJECT, "models/m.sql": query.format(file=file), "models/u.yml": unit_test}
    if "source" in query:
        rows = "[{input: \"source('ods', 'orders')\", rows: [{id: x}]}]"
        files["models/u.yml"] = unit_test.replace("given: []", f"given: {rows}")
    enter_project(tmp_path / "shop", monkeypatch, files)
    code = main([command, *(["m"] if command == "show" else [])])
    shown = "".join(capsys.readouterr())
    assert SECRET not in shown and "Traceback" not in shown, shown
    assert code in (1, 2) or command == "compile", shown  # which runs nothing
