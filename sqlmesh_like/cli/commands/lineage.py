"""`sml lineage`: where a model's columns come from. Owns the command and its output."""

from __future__ import annotations

from collections.abc import Mapping

import click

from sqlmesh_like.app.operations.column_trace import trace_columns
from sqlmesh_like.cli.completion import complete_names
from sqlmesh_like.cli.context import open_project
from sqlmesh_like.cli.options import Flags, shared_options, within_limits
from sqlmesh_like.cli.printing.writer import echo, echo_json
from sqlmesh_like.control_characters import escape_line
from sqlmesh_like.plan.lineage import TracedColumn


@click.command("lineage")
@within_limits
@click.argument("name", metavar="MODEL[.COLUMN]", shell_complete=complete_names)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="Form of the lineage.")
@shared_options
def command(flags: Flags, name: str, output: str) -> int:
    """Show the columns that a model's columns are computed from, up to the sources. Starts no JVM."""
    traced = trace_columns(open_project(flags), name)
    if output == "json":
        echo_json({"unique_id": traced.model.unique_id, "columns": list(map(_record, traced.columns))}, indent=2)
        return 0
    for column in traced.columns:
        lines = _lines(column, traced.names)
        echo(f"{traced.model.table}.{escape_line(column.name)}{_type_suffix(column)}")
        for line in (*map(escape_line, lines), ""):
            echo(line)
    return 0


def _lines(traced: TracedColumn, names: Mapping[str, str], indent: str = "") -> list[str]:
    """Return the lines below a column: its origins, then the columns that determine its rows."""
    entries: list[tuple[str, TracedColumn | None]] = [
        (f"{origin.how}  {names[origin.unique_id]}.{origin.name}{_type_suffix(origin)}", origin)
        for origin in traced.origins
    ]
    if not traced.is_complete:
        entries.append(("not all of it is known: the query is outside the algebra, or columns are not known", None))
    elif not traced.origins and traced.how is None:
        entries.append(("a constant, or a count of rows", None))
    for role in ("filters", "joins", "groups"):
        deciding = [f"{names[o.input_id]}.{o.column}" for o, roles in traced.influences.items() if role in roles]
        if deciding:
            entries.append((f"{_ROLES[role]} {', '.join(deciding)}", None))
    lines: list[str] = []
    for number, (text, origin) in enumerate(entries, 1):
        is_last = number == len(entries)
        lines.append(f"{indent}{'└─' if is_last else '├─'} {text}")
        if origin is not None:
            lines += _lines(origin, names, indent + ("   " if is_last else "│  "))
    return lines


_ROLES = {"filters": "filtered by", "joins": "joined on", "groups": "grouped by"}


def _type_suffix(traced: TracedColumn) -> str:
    return f"  {traced.type}" if traced.type else ""


def _record(traced: TracedColumn) -> dict[str, object]:
    """Return a column as JSON: `origins` are its direct inputs, `sources` the columns at the end of all paths."""
    return {
        "unique_id": traced.unique_id,
        "column": traced.name,
        "type": traced.type,
        **({"how": traced.how} if traced.how else {}),
        "is_complete": traced.is_complete,
        "origins": [_record(origin) for origin in traced.origins],
        "influences": [
            {"unique_id": origin.input_id, "column": origin.column, "how": role}
            for origin, roles in traced.influences.items()
            for role in roles
        ],
        "sources": [
            {"unique_id": end.input_id, "column": end.column, "how": how} for end, how in traced.sources.items()
        ],
    }
