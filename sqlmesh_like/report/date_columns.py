"""Timestamps that are days. Owns recognizing them: the page shows `2024-05-01` rather than its midnight."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, time

from sqlmesh_like.names import Column
from sqlmesh_like.run.ports import Rows


def days_as_dates(rows: Rows) -> Rows:
    """Return the rows with timestamp columns, in which every value is midnight (UTC), as date columns.

    >>> days_as_dates(Rows((Column("at", "timestamp"),), ((datetime(2024, 5, 1),), (None,)))).rows
    ((datetime.date(2024, 5, 1),), (None,))
    """
    days = {number for number, column in enumerate(rows.schema) if _are_days(rows, number, column)}
    if not days:
        return rows
    schema = tuple(Column(column.name, "date") if n in days else column for n, column in enumerate(rows.schema))
    dated = tuple(
        tuple(value.date() if n in days and isinstance(value, datetime) else value for n, value in enumerate(row))
        for row in rows.rows
    )
    return replace(rows, schema=schema, rows=dated)


def _are_days(rows: Rows, number: int, column: Column) -> bool:
    values = [row[number] for row in rows.rows if row[number] is not None]
    is_timestamp = (column.type or "").startswith("timestamp")
    return is_timestamp and bool(values) and all(isinstance(v, datetime) and v.time() == time.min for v in values)
