"""`sml show`: rows of a table or of any SELECT. Owns the command; copy-on-write tables are read with no JVM."""

from __future__ import annotations

import click

from sqlmesh_like.cli.context import Loaded, load
from sqlmesh_like.cli.lake import Lake, clock, open_lake
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.rows import as_csv, as_json, as_table
from sqlmesh_like.errors import NodeError, UsageError
from sqlmesh_like.render.rendered import RenderedModel
from sqlmesh_like.run.ports import Rows


@click.command("show")
@click.argument("model", required=False)
@click.option("--inline", metavar="SQL", help="Any SELECT, with ref() and source(), instead of a model.")
@click.option("--output", type=click.Choice(["table", "json", "csv"]), default="table", help="Form of the rows.")
@click.option("--limit", type=int, default=20, help="Rows to show (-1: all).")
@shared_options
def command(flags: Flags, model: str | None, inline: str | None, output: str, limit: int) -> int:
    """Print the rows of a model, a seed or a source table, hidden columns left out."""
    name = model or (flags.select[0] if len(flags.select) == 1 else None)
    if (name is None) == (inline is None):
        raise UsageError("name one model, or give --inline SQL", hint="e.g. sml show user_agg")
    lake = open_lake(load(Flags(**{**vars(flags), "select": ()})))
    try:
        rows = _inline(lake, inline, limit) if inline is not None else _rows(lake, name or "", limit)
    finally:
        lake.engine.stop()
    forms = {"json": as_json, "csv": as_csv, "table": as_table}
    click.echo(forms[output](rows).rstrip("\n"))
    return 0


def _rows(lake: Lake, name: str, limit: int) -> Rows:
    if view := _view(lake.loaded, name):
        return _query(lake, view, limit)
    place = lake.catalog.find(name)
    state = lake.catalog.state(place.unique_id)
    if not state.exists:
        raise NodeError(f"the table {place.table} does not exist yet", hint="run `sml ingest` or `sml run` first")
    from sqlglot import exp

    from sqlmesh_like.engine.table_reader import read_rows

    whole = exp.select("*").from_(exp.table_(place.table.identifier, db=place.table.schema, quoted=True))
    return read_rows(state, limit) or lake.engine.query(whole, {place.table: state}, limit)


def _view(loaded: Loaded, name: str) -> RenderedModel | None:
    for model in loaded.rendered.models:
        is_named = name in (model.name, model.unique_id, str(model.table))
        if is_named and model.config.materialized in ("view", "ephemeral"):
            return model
    return None


def _inline(lake: Lake, sql: str, limit: int) -> Rows:
    from sqlmesh_like.render.renderer import render_inline

    return _query(lake, render_inline(lake.loaded.project, lake.loaded.target, sql), limit)


def _query(lake: Lake, model: RenderedModel, limit: int) -> Rows:
    planner = lake.planner(clock(None))
    states = lake.catalog.states(planner.inputs(model))
    facts = planner.compile(model, states).facts
    return lake.engine.query(facts.tree, {ref.table: states[ref.unique_id] for ref in facts.inputs}, limit)
