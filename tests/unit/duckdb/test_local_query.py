"""Queries over a lake's tables without a JVM: what DuckDB cannot read is left to Spark, which reports why."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import sqlglot

from sqlmesh_like.duckdb.local_query import local_rows
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.names import TableName
from sqlmesh_like.run.ports import Rows
from tests.written_table import WrittenTable

TABLE = TableName("dws", "t")


def asked(table: WrittenTable) -> Rows | None:
    tree = sqlglot.parse_one("select sum(v) as v from dws.t", dialect="spark")
    states = {TABLE: LakeHistory().state(str(table.root))}
    return local_rows(tree, states, None, -1, datetime(2024, 1, 1, tzinfo=UTC))


def test_a_file_that_is_gone_is_left_to_spark(tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t", {"v": "long"}).create()
    table.upsert([("a", 1), ("b", 2)])
    rows = asked(table)
    assert rows is not None and [tuple(map(int, row)) for row in rows.rows] == [(3,)]
    for path in table.timeline.data_files:
        (table.root / path).unlink()
    assert asked(table) is None
