"""What connections to DuckDB leave out because it gives wrong rows."""

from __future__ import annotations

from contextlib import closing

from sqlmesh_like.duckdb.programs.memory_lake import MemoryLake
from tests.properties.lake import T, U, compiled, schema

COLUMNS = schema(a="int", b="int", s="string")
SQL = (
    "select s, sum(cast(a in (select b from ods.u) as int)) as f, sum(case when a in (select b from ods.u) then b end)"
    " as x from ods.t group by s"
)


def test_equal_subqueries_of_no_rows_do_not_share_statistics() -> None:
    plan = compiled(SQL, COLUMNS)
    with closing(MemoryLake({T: COLUMNS, U: COLUMNS})) as lake:
        lake.build(plan, {T: {"1": (None, 0, "x"), "2": (None, 1, "y")}, U: {}})
        assert sorted(lake.rows()) == [("x", 0, None), ("y", 0, None)]
