"""Rows for people and programs. Owns their forms: a table, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json

from sqlmesh_like.control_characters import escape_json, escape_line
from sqlmesh_like.run.plain_values import flat, plain
from sqlmesh_like.run.ports import Rows


def as_json(rows: Rows) -> str:
    """Return rows as a JSON list of objects: numbers as numbers, decimals as text, times in ISO 8601 and UTC.

    >>> from decimal import Decimal
    >>> from sqlmesh_like.names import Column
    >>> as_json(Rows((Column("a", "decimal(3,1)"),), ((Decimal("1.5"),),)))
    '[{"a": "1.5"}]'
    """
    names = [column.name for column in rows.schema]
    objects = [dict(zip(names, map(plain, row), strict=True)) for row in rows.rows]
    return escape_json(json.dumps(objects, ensure_ascii=False))


def as_csv(rows: Rows) -> str:
    """Return a header and one line per row; NULL is an empty field."""
    lines = [_csv_line([column.name for column in rows.schema])]
    lines += [_csv_line(["" if value is None else flat(value) for value in row]) for row in rows.rows]
    return "".join(lines)


def _csv_line(values: list[str]) -> str:
    """Return a line of CSV. Python's writer quotes a carriage return only if the line terminator contains one."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(values)
    return text.getvalue().removesuffix("\r\n") + "\n"


_NUMBERS = ("int", "bigint", "smallint", "tinyint", "double", "float", "decimal")


def as_table(rows: Rows, title: str | None = None, width: int = 200) -> str:
    """Return a table with lines of at most `width` characters; NULL and control characters are made visible."""
    from rich.console import Console  # a run that prints no rows need not import it
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for column in rows.schema:
        table.add_column(
            escape_line(column.name),
            justify="right" if (column.type or "").startswith(_NUMBERS) else "left",
            overflow="fold",
        )
    for row in rows.rows:
        table.add_row(*["NULL" if value is None else escape_line(flat(value)) for value in row])
    console = Console(file=io.StringIO(), width=width, color_system=None, markup=False, highlight=False)
    console.print(table)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in str(text).splitlines())
