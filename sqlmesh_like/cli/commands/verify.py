"""`sml verify`: compare tables with a full recompute of their query. Owns the command; the engine compares."""

from __future__ import annotations

from time import perf_counter
from typing import Literal

import click

from sqlmesh_like.app.lakes.lake import clock, open_lake
from sqlmesh_like.cli.context import load, make_output
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.output import DisplayStatus, LogStep, Output
from sqlmesh_like.errors import NodeError, SmlError
from sqlmesh_like.plan.fingerprint import fingerprint
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.plan.planner import Planner
from sqlmesh_like.render.rendered import RenderedModel
from sqlmesh_like.run.plain_values import plain
from sqlmesh_like.run.ports import Engine, RowDifference


@click.command("verify")
@click.argument("models", nargs=-1)
@click.option("--limit", type=int, default=20, help="Differing rows to print of each table.")
@shared_options
def command(flags: Flags, models: tuple[str, ...], limit: int) -> int:
    """Compare maintained tables with a full recompute at each table's own frontier and clock.

    Of models that are brought up to date by their author's incremental SQL it shows what that lost.
    """
    loaded = load(Flags(**{**vars(flags), "select": (*flags.select, *models)}))
    selected = [node.unique_id for node in loaded.selected("model")]
    lake = open_lake(loaded, selected)
    planner = lake.planner(clock(None))
    tables = [planner.rendered.model(unique_id) for unique_id in selected if unique_id in lake.catalog.places]
    output = make_output(flags)
    try:
        statuses = [_verify(n, len(tables), m, planner, lake.engine, output, limit) for n, m in enumerate(tables, 1)]
    finally:
        lake.engine.stop()
    output.end(statuses)
    return 0 if all(status == "pass" for status in statuses) else 1


def _verify(
    number: int, total: int, model: RenderedModel, planner: Planner, engine: Engine, output: Output, limit: int
) -> DisplayStatus:
    step = LogStep(number, total, "table", f"table {model.table}")
    started = perf_counter()
    try:
        difference = engine.verify(_verifiable(planner.plan(model, {}, whole=True)), limit)
    except SmlError as error:
        output.tested(step, "error", 0, perf_counter() - started)
        output.line(f"  {error}", "error")
        return "error"
    status: Literal["pass", "fail"] = "pass" if difference.total == 0 else "fail"
    output.tested(step, status, difference.total, perf_counter() - started)
    for line in _lines(difference):
        output.line(line, "error")
    return status


def _verifiable(planned: PlannedModel) -> PlannedModel:
    name = planned.compiled.model.table
    record = planned.target.record
    if record is None:
        raise NodeError(f"{name} has not been built by a run", hint="run it first: sml run")
    if record.fingerprint.partition(":")[0] != fingerprint(planned.compiled):
        raise NodeError(f"the query of {name} changed since its last run", hint="run it first: sml run")
    return planned


def _lines(difference: RowDifference) -> list[str]:
    """`-` is only in the table, `+` only in the recompute."""
    lines = []
    for sign, row in difference.rows:
        values = ", ".join(f"{name}={plain(value)!r}" for name, value in row.items())
        lines.append(f"  {'-' if sign < 0 else '+'} {values}")
    if difference.total > len(difference.rows):
        lines.append(f"  … and {difference.total - len(difference.rows)} more")
    return [*lines, "  (- only in the table, + only in the recompute)"] if lines else []
