"""A snapshot's table on DuckDB, brought up to date day by day by the shipped program. No JVM."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import sqlglot

from sqlmesh_like.delta.snapshot import SOURCE, STORED, added_columns, snapshot_program
from sqlmesh_like.duckdb.dialect import duck_text
from sqlmesh_like.names import KEY, Column, Schema
from sqlmesh_like.project.snapshots import SnapshotConfig

COLUMNS = (Column("id", "int"), Column("v", "string"), Column("ts", "timestamp"))
Row = tuple[object, ...]


def day(number: int) -> str:
    return f"2024-01-{number:02d} 00:00:00"


class Kept:
    """A snapshot's table, brought up to date day by day."""

    def __init__(self, how: SnapshotConfig, columns: Schema = COLUMNS) -> None:
        self.how = how
        self.columns = columns
        self.stored: Schema | None = None
        self.db = duckdb.connect(":memory:")

    def take(self, today: int, *rows: Sequence[object], columns: Schema | None = None) -> int:
        """How many rows are written for the query's rows of this day."""
        self.columns = columns or self.columns
        types = ", ".join(f"{c.name} {'text' if c.type == 'string' else c.type}" for c in self.columns)
        self.db.execute(f"create or replace table {SOURCE} ({types})")
        for row in rows:
            self.db.execute(f"insert into {SOURCE} values ({', '.join('?' * len(row))})", list(row))
        program = snapshot_program(self.how, self.columns, self.stored, day(today))
        if self.stored is None:
            self.db.execute(f"create table kept as {self.text(program.first)}")
            self.stored = (*self.columns, *added_columns(self.how))
            return len(rows)
        self.db.execute(f"create or replace view {STORED} as select * from kept")
        self.db.execute(f"create or replace temp table written as {self.text(program.changes)}")
        ((count, distinct),) = self.db.execute(f"select count(*), count(distinct {KEY}) from written").fetchall()
        assert count == distinct, "two versions of one key in a commit"
        new = [c for c in self.columns if c.name not in {known.name for known in self.stored}]
        for column in new:
            self.db.execute(f"alter table kept add column {column.name} {column.type}")
        self.stored = (*self.stored, *new)
        self.db.execute(f"delete from kept where {KEY} in (select {KEY} from written)")
        self.db.execute("insert into kept by name select * from written")
        return int(count)

    def text(self, sql: str) -> str:
        return duck_text(sqlglot.parse_one(sql, dialect="spark"))

    def versions(self, *names: str) -> list[Row]:
        """Values, first and end day of each version (None: it is valid), and other columns asked for."""
        more = "".join(f", {name}" for name in names)
        rows = self.db.execute(f"select id, v, day(dbt_valid_from), day(dbt_valid_to){more} from kept").fetchall()
        return sorted(rows, key=lambda row: (row[0], row[2], row[3] or 99))
