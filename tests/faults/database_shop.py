"""A project that reads a database, with calls of `sml` for it. Owns its tables, changes, and what both sides have."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sqlmesh_like.cdc.sources.database.engine import engine_jars
from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.hudi.table_reader import read_table_rows
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.project.nodes import DatabaseKind
from sqlmesh_like.spark.jvm.jars import ensure_jars
from tests.faults.calls import finished, start
from tests.services import mariadb, postgres
from tests.services.wanted import need

Rows = list[tuple[int, ...]]
COLUMNS = {"item": ("id", "n"), "ranked": ("id", "n", "at"), "entry": ("n",)}
"""The columns of each table. `entry` has no primary key: an event that comes twice is a row too many."""
NAMES = {"mysql": "MariaDB", "postgresql": "PostgreSQL"}
_SOURCES = """
version: 2
sources:
- name: shop
  schema: ods
  ingest: {{format: debezium, database: {{url: '{url}'{settings}}}}}
  tables:
  - {{name: item, ingest: {{primary_key: [id]}}}}
  - {{name: ranked, ingest: {{primary_key: [id], order_by: [at]}}}}
  - {{name: entry, ingest: {{primary_key: []}}}}
"""
_PROFILES = (
    "lake: {target: local, outputs: {local: {type: spark, master: 'local[2]', warehouse: warehouse, schema: dws}}}"
)


@dataclass(frozen=True)
class DatabaseShop:
    """A database `shop` on a server of its own, and the project in `root` that reads it.

    `run` executes statements, each a transaction of its own, and returns the rows of the last one.
    """

    root: Path
    kind: DatabaseKind
    url: str
    run: Callable[..., Rows]

    @cached_property
    def dice(self) -> random.Random:
        return random.Random(20240501)

    def write_project(self, settings: str = "") -> None:
        """Write the project. `settings`: further keys of `database:`."""
        for path, text in (
            ("pyproject.toml", '[tool.sqlmesh_like]\nname = "shop"\nprofile = "lake"\n'),
            ("profiles.yml", _PROFILES),
            ("models/sources.yml", _SOURCES.format(url=self.url, settings=settings and f", {settings}")),
            ("models/n_by_id.sql", "select id, sum(n) as n from {{ source('shop', 'item') }} group by id\n"),
        ):
            (self.root / path).parent.mkdir(exist_ok=True, parents=True)
            (self.root / path).write_text(text, encoding="utf-8")

    def create_tables(self, rows: int) -> None:
        # PostgreSQL refuses changes of rows without a key; a delete of a table with `order_by` needs the row's order.
        whole = [f"alter table {name} replica identity full" for name in ("entry", "ranked")]
        full = whole if self.kind == "postgresql" else []
        number = f"seq from seq_1_to_{rows}" if self.kind == "mysql" else f"seq from generate_series(1, {rows}) as seq"
        self.run(
            "create table item (id int primary key, n int)",
            "create table ranked (id int primary key, n int, at int)",
            "create table entry (n int)",
            *full,
            f"insert into item select seq, {number}",
            f"insert into ranked select seq, 0, {number}",
            f"insert into entry select {number}",
        )

    def change(self, transactions: int = 10) -> None:
        """Inserts, updates and deletes of all tables."""
        statements = []
        for _ in range(transactions):
            key, n = self.dice.randrange(1, 40), self.dice.randrange(10**6)
            statements += [
                f"delete from item where id = {key}",
                f"insert into item values ({key}, {n})",
                f"update item set n = n + 1 where id = {self.dice.randrange(1, 40)}",
                f"update ranked set n = {n}, at = at + 1 where id = {self.dice.randrange(1, 40)}",
                f"delete from ranked where id = {self.dice.randrange(1, 1000)}",
                f"insert into entry values ({n})",
            ]
        self.run(*statements)

    def change_unlogged(self, *statements: str) -> None:
        """Change rows of MariaDB so that the log has nothing of it."""
        self.run("set sql_log_bin = 0", *statements, "set sql_log_bin = 1")

    def call(self, *words: str, code: int = 0) -> str:
        """The output of a call that ends with this exit code."""
        ended_with, output = finished(start(self.root, *words))
        assert ended_with == code, output
        return output

    def in_database(self, name: str) -> Rows:
        return sorted(self.run(f"select {', '.join(COLUMNS[name])} from {name}"))

    def in_lake(self, name: str) -> Rows:
        timeline = Timeline(str(self.root / "warehouse" / "ods" / name))
        if timeline.frontier is None:
            return []
        read = read_table_rows(table_state(timeline), -1)
        assert read is not None
        names = [column.name for column in read.schema]
        return sorted(tuple(row[names.index(column)] for column in COLUMNS[name]) for row in read.rows)

    def types(self, name: str) -> dict[str, str | None]:
        """The types of a table's columns."""
        schema = table_state(Timeline(str(self.root / "warehouse" / "ods" / name))).schema or ()
        return {column.name: column.type for column in schema if column.name in COLUMNS[name]}

    def forget_lake(self) -> None:
        """Begin anew, with an empty warehouse."""
        shutil.rmtree(self.root / "warehouse", ignore_errors=True)


@contextmanager
def database_shop(kind: DatabaseKind, root: Path) -> Iterator[DatabaseShop]:
    """A server with the database, and the project, while the context is open."""
    need(lambda: ensure_jars(engine_jars(kind)), mariadb.find_server if kind == "mysql" else postgres.find_server)
    folder, project = root / "server", root / "project"
    folder.mkdir()
    project.mkdir()
    if kind == "mysql":
        with mariadb.mariadb(folder) as server, server.connect() as connection:

            def run(*statements: str) -> Rows:
                with connection.cursor() as cursor:
                    for statement in statements:
                        cursor.execute(statement)
                    return list(cursor.fetchall())

            run("create database shop", "use shop")
            yield DatabaseShop(project, kind, f"mysql://{server.user}@127.0.0.1:{server.port}/shop", run)
        return
    with postgres.postgres(folder) as service:
        service.run("create database shop")

        def run_there(*statements: str) -> Rows:
            answer = service.run("\\c shop", *statements)
            return [tuple(map(int, line.split("|"))) for line in answer.splitlines() if line[:1].isdigit()]

        yield DatabaseShop(project, kind, f"postgresql://{service.user}@127.0.0.1:{service.port}/shop", run_there)
