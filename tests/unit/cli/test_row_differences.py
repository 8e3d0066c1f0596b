"""`sml diff -e NAME MODEL`: how two tables differ, for people."""

from __future__ import annotations

from sqlmesh_like.app.operations.environments.environment_diff import EnvironmentDiff
from sqlmesh_like.cli.printing.row_differences import difference_lines
from sqlmesh_like.duckdb.table_comparison import ChangedCell, RowsByKey
from sqlmesh_like.names import TableName

SAME = RowsByKey(("id",), (), 3, 3, 0, 0, 0, {}, (), (), ())


def lines(rows: RowsByKey) -> list[str]:
    return list(difference_lines(EnvironmentDiff("feature", TableName("dws", "a"), "1", "2", rows)))


def test_tables_that_are_equal_are_said_in_two_lines() -> None:
    assert lines(SAME) == [
        "dws.a: 3 rows in production, 3 in feature, matched by id",
        "  0 added, 0 removed, 0 changed",
    ]


def test_rows_and_cells_are_shown_and_the_others_counted() -> None:
    cells = (ChangedCell({"id": 1}, "name", "a\x1b[2J", None), ChangedCell({}, "n", 1.5, "x"))
    rows = RowsByKey(
        (), ("b is new",), 2000, 1999, 2, 1, 2, {"name": 1200, "n": 1}, ({"id": 7, "name": "new"},), ({"id": 9},), cells
    )
    shown = lines(rows)
    assert shown[0] == "dws.a: 2,000 rows in production, 1,999 in feature, matched by the hidden key of each row"
    assert shown[1:4] == ["  2 added, 1 removed, 2 changed", "  columns: b is new", "  changed cells: name 1,200, n 1"]
    assert shown[4].startswith("+ ") and "7" in shown[4] and shown[5] == "+ … and 1 more"
    assert shown[6].startswith("- ") and "9" in shown[6]
    assert shown[7].startswith("~ name of ") and shown[8].startswith("~ n: 1.5 → ")
    assert shown[9:] == ["~ … and 1,199 more cells"]
    assert "\x1b" not in "".join(shown)
