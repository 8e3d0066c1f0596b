"""`sml show`: rows of a table or of any SELECT. Owns the command; copy-on-write tables are read with no JVM,
as are those of a `duckdb` target."""

from __future__ import annotations

import shutil
import sys

import click

from sqlmesh_like.cli.completion import complete_names
from sqlmesh_like.cli.context import Loaded, load, make_output
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.rows import as_csv, as_json, as_table
from sqlmesh_like.cli.wiring.lake import Lake, built_table, clock
from sqlmesh_like.cli.wiring.read_session import read_session
from sqlmesh_like.control_characters import shown_lines
from sqlmesh_like.errors import UsageError
from sqlmesh_like.render.rendered import RenderedModel
from sqlmesh_like.render.renderer import render_inline
from sqlmesh_like.run.lake_query import LakeQuery
from sqlmesh_like.run.ports import Rows


@click.command("show")
@click.argument("model", required=False, shell_complete=complete_names)
@click.option("--inline", metavar="SQL", help="Any SELECT, with ref() and source(), instead of a model.")
@click.option("--output", type=click.Choice(["table", "json", "csv"]), default="table", help="Form of the rows.")
@click.option("--limit", type=int, default=20, help="Rows to show (-1: all).")
@click.option("--as-of", metavar="WHEN", help="As it was: a commit of `sml history`, or an ISO 8601 time (UTC).")
@shared_options
def command(flags: Flags, model: str | None, inline: str | None, output: str, limit: int, as_of: str | None) -> int:
    """Print the rows of a model, a seed or a source table, hidden columns left out."""
    name = model or (flags.select[0] if len(flags.select) == 1 else None)
    if (name is None) == (inline is None):
        raise UsageError("name one model, or give --inline SQL", hint="e.g. sml show user_agg")
    loaded = load(Flags(**{**vars(flags), "select": ()}))
    view = _view(loaded, name) if name is not None else None
    if inline is not None:
        view = render_inline(loaded.project, loaded.target, inline)
    if as_of is not None and (view is not None or loaded.target.type != "spark"):
        raise UsageError(
            "--as-of is for one table of a lake", hint="e.g. sml show user_agg --as-of 2024-05-01T00:00:00Z"
        )
    loaded = _with_failures(loaded, name or "")
    with read_session(loaded, lambda lake: _read(lake, view, name or "")) as lake:
        if inline is not None and view is not None and view.asks_lake:
            answers = LakeQuery(lake.planner(clock(None)), lake.engine)
            view = render_inline(loaded.project, loaded.target, inline, answers)
        rows = _query(lake, view, limit) if view is not None else _rows(lake, name or "", limit, as_of)
    print_rows(rows, output, limit, flags)
    return 0


def print_rows(rows: Rows, output: str, limit: int, flags: Flags) -> None:
    """Rows in a form of `--output`; a table that may have more of them says so."""
    forms = {"json": as_json, "csv": as_csv, "table": _table}
    text = forms[output](rows).rstrip("\n")
    # A file of CSV holds what the rows do; a terminal would act on it. `color`: nothing is cut out.
    click.echo(shown_lines(text) if sys.stdout.isatty() else text, color=True)
    if output == "table" and len(rows.rows) == limit:
        make_output(flags, sys.stderr).line(f"the first {limit} rows; --limit -1 shows all")


def _table(rows: Rows) -> str:
    """As wide as the terminal; in a pipe or file no cell is folded."""
    return as_table(rows, width=shutil.get_terminal_size().columns if sys.stdout.isatty() else 100_000)


def _rows(lake: Lake, name: str, limit: int, as_of: str | None) -> Rows:
    place, state = built_table(lake, name)
    from sqlglot import exp

    from sqlmesh_like.hudi.table_reader import read_table_rows
    from sqlmesh_like.hudi.time_travel import state_at

    state = state if as_of is None else state_at(state, as_of)
    whole = exp.select("*").from_(exp.table_(place.table.identifier, db=place.table.schema, quoted=True))
    return read_table_rows(state, limit) or lake.engine.query(whole, {place.table: state}, limit)


def _with_failures(loaded: Loaded, name: str) -> Loaded:
    """Tables of failures are known by their whole name only, whichever call stored them."""
    stored = loaded.storing_failures() if "." in name else loaded
    return stored if any(str(test.table) == name for test in stored.rendered.tests) else loaded


def _view(loaded: Loaded, name: str) -> RenderedModel | None:
    for model in loaded.rendered.models:
        is_named = name in (model.name, model.unique_id, str(model.table))
        if is_named and model.config.materialized in ("view", "ephemeral"):
            return model
    return None


def _read(lake: Lake, view: RenderedModel | None, name: str) -> list[str]:
    return [lake.catalog.find(name).unique_id] if view is None else [ref.unique_id for ref in view.inputs]


def _query(lake: Lake, model: RenderedModel, limit: int) -> Rows:
    planner = lake.planner(clock(None))
    model = planner.live(model)
    states = lake.catalog.states(planner.inputs(model))
    facts = planner.compile(model, states).facts
    return lake.engine.query(facts.tree, {ref.table: states[ref.unique_id] for ref in facts.inputs}, limit)
