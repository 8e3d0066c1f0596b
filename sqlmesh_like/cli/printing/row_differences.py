"""How the rows of an environment's table differ from production's, for people and programs. Owns both forms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlmesh_like.app.operations.environments.environment_diff import EnvironmentDiff
from sqlmesh_like.control_characters import escape_line
from sqlmesh_like.duckdb.table_comparison import ChangedCell
from sqlmesh_like.run.plain_values import flat, plain

_COUNTS = ("before", "after", "added", "removed", "changed")


def difference_entry(diff: EnvironmentDiff) -> dict[str, object]:
    """Return the content of `sml diff -e NAME MODEL --output json`."""
    rows = diff.rows
    return {
        "environment": diff.environment, "table": str(diff.table), "production": diff.production, "own": diff.own,
        "key": list(rows.key), "columns": list(rows.columns),
        "rows": {name: getattr(rows, name) for name in _COUNTS}, "changed_cells": rows.cells,
        "samples": {
            "added": [_plain(row) for row in rows.added_rows],
            "removed": [_plain(row) for row in rows.removed_rows],
            "changed": [_cell(each) for each in rows.changed_cells],
        },
    }  # fmt: skip


def difference_lines(diff: EnvironmentDiff) -> Iterator[str]:
    """Return the lines of the same for people."""
    rows = diff.rows
    key = f"by {', '.join(rows.key)}" if rows.key else "by the hidden key of each row"
    yield f"{diff.table}: {rows.before:,} rows in production, {rows.after:,} in {diff.environment}, matched {key}"
    yield f"  {rows.added:,} added, {rows.removed:,} removed, {rows.changed:,} changed"
    if rows.columns:
        yield f"  columns: {'; '.join(map(escape_line, rows.columns))}"
    if rows.cells:
        yield f"  changed cells: {', '.join(f'{escape_line(name)} {count:,}' for name, count in rows.cells.items())}"
    for sign, samples, count in (("+", rows.added_rows, rows.added), ("-", rows.removed_rows, rows.removed)):
        yield from (f"{sign} {_row_text(row)}" for row in samples)
        if count > len(samples):
            yield f"{sign} … and {count - len(samples):,} more"
    for cell in rows.changed_cells:
        where = f" of {_row_text(cell.key)}" if cell.key else ""
        yield f"~ {escape_line(cell.column)}{where}: {_value(cell.before)} → {_value(cell.after)}"
    left = sum(rows.cells.values()) - len(rows.changed_cells)
    if left > 0:
        yield f"~ … and {left:,} more cells"


def _cell(cell: ChangedCell) -> dict[str, object]:
    return {
        "key": _plain(cell.key), "column": cell.column, "before": plain(cell.before), "after": plain(cell.after)
    }  # fmt: skip


def _plain(row: Mapping[str, object]) -> dict[str, object]:
    return {name: plain(value) for name, value in row.items()}


def _row_text(row: Mapping[str, object]) -> str:
    return ", ".join(f"{escape_line(name)}={_value(value)}" for name, value in row.items())


def _value(value: object) -> str:
    return "NULL" if value is None else escape_line(flat(value))
