"""`sml lineage`: where a model's columns come from. Owns the command's forms; `plan.lineage` traces. Starts no JVM."""

from __future__ import annotations

import json

import click

from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.preflight import input_schemas
from sqlmesh_like.cli.completion import complete_names
from sqlmesh_like.cli.context import load
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.errors import UsageError, nearest
from sqlmesh_like.plan.lineage import Lineage, TracedColumn
from sqlmesh_like.render.rendered import RenderedModel


@click.command("lineage")
@click.argument("name", metavar="MODEL[.COLUMN]", shell_complete=complete_names)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="Form of the lineage.")
@shared_options
def command(flags: Flags, name: str, output: str) -> int:
    """Show the columns that a model's columns are computed from, up to the sources. Starts no JVM."""
    loaded = load(flags)
    model, column = _find(loaded, name)
    lineage = Lineage(loaded.rendered, input_schemas(loaded, [model.unique_id]))
    traced_columns = lineage.columns(model) if column is None else (lineage.column(model, column),)
    if output == "json":
        columns = [_record(traced) for traced in traced_columns]
        click.echo(json.dumps({"unique_id": model.unique_id, "columns": columns}, indent=2))
        return 0
    names = _names(loaded)
    for traced in traced_columns:
        click.echo("\n".join([f"{model.table}.{traced.name}{_typed(traced)}", *_lines(traced, names), ""]))
    return 0


def _find(loaded: Loaded, name: str) -> tuple[RenderedModel, str | None]:
    """The model and, where one is named, the column. Raises UsageError with the nearest name."""
    models: dict[str, RenderedModel] = {}
    for model in loaded.rendered.models:
        for spelling in (model.unique_id, str(model.table), model.name):
            models.setdefault(spelling, model)
    if name in models:
        return models[name], None
    owner, _, column = name.rpartition(".")
    if owner in models:
        return models[owner], column
    known = [model.name for model in loaded.rendered.models]
    wanted = (owner or name).rpartition(".")[2]
    raise UsageError(f"no model {owner or name!r} in this project", hint=nearest(wanted, known) or "see `sml ls`")


def _lines(traced: TracedColumn, names: dict[str, str], indent: str = "") -> list[str]:
    """What is below a column: its origins, then what decides its rows."""
    entries: list[tuple[str, TracedColumn | None]] = [
        (f"{origin.how}  {_name(origin, names)}", origin) for origin in traced.origins
    ]
    if not traced.is_complete:
        entries.append(("not all of it is known: the query is outside the algebra, or columns are not known", None))
    elif not traced.origins and traced.how is None:
        entries.append(("a constant, or a count of rows", None))
    for role in ("filters", "joins", "groups"):
        deciding = [f"{names[o.input_id]}.{o.column}" for o, roles in traced.influences.items() if roles == role]
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


def _names(loaded: Loaded) -> dict[str, str]:
    """Tables by unique id, as people write them."""
    names: dict[str, str] = {
        table.unique_id: str(table.table) for source in loaded.project.sources for table in source.tables
    }
    names |= {seed.unique_id: str(seed.table) for seed in loaded.rendered.seeds}
    return names | {model.unique_id: str(model.table) for model in loaded.rendered.models}


def _name(traced: TracedColumn, names: dict[str, str]) -> str:
    return f"{names[traced.unique_id]}.{traced.name}{_typed(traced)}"


def _typed(traced: TracedColumn) -> str:
    return f"  {traced.type}" if traced.type else ""


def _record(traced: TracedColumn) -> dict[str, object]:
    """`origins` is the next step up, `sources` the columns at the end of all ways."""
    return {
        "unique_id": traced.unique_id,
        "column": traced.name,
        "type": traced.type,
        **({"how": traced.how} if traced.how else {}),
        "is_complete": traced.is_complete,
        "origins": [_record(origin) for origin in traced.origins],
        "influences": [
            {"unique_id": origin.input_id, "column": origin.column, "how": role}
            for origin, role in traced.influences.items()
        ],
        "sources": [
            {"unique_id": end.input_id, "column": end.column, "how": how} for end, how in traced.sources.items()
        ],
    }
