"""`sml publish`: tables of models to where people look. Owns the command; `publish` does it."""

from __future__ import annotations

from time import perf_counter

import click

from sqlmesh_like.app.lakes.lake import lake_lock, open_lake
from sqlmesh_like.app.operations.publish_setup import publisher_of
from sqlmesh_like.cli.context import load, make_output
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.output import DisplayStatus, LogStep, Output
from sqlmesh_like.errors import SelectionError, SmlError
from sqlmesh_like.publish.publisher import LakePublisher
from sqlmesh_like.render.rendered import RenderedModel


@click.command("publish")
@shared_options
def command(flags: Flags) -> int:
    """Send the changed rows of published models to their destinations, as `sml run` does after each model.

    For tables that are there: after a failure, or where another destination was declared. What is up to date costs a
    look. With --full-refresh tables are sent whole.
    """
    loaded = load(flags)
    selected = [node.unique_id for node in loaded.selected("model", "snapshot")]
    lake = open_lake(loaded)
    publisher = publisher_of(lake, selected, afresh=flags.full_refresh)
    if publisher is None:
        hint = "set config(publish=true) in a model, or +publish: true in the project's settings"
        raise SelectionError("no selected model is published", hint=hint)
    models = [model for model in loaded.rendered.models if model.unique_id in publisher.chosen]
    output = make_output(flags, bar=True)
    problems: list[str] = []
    with lake_lock(loaded, "run"):
        try:
            statuses = [
                _publish(n, len(models), model, publisher, output, problems) for n, model in enumerate(models, 1)
            ]
        finally:
            publisher.close()
            lake.engine.stop()
    output.end(statuses, problems)
    return 0 if not problems else 1


def _publish(
    number: int, total: int, model: RenderedModel, publisher: LakePublisher, output: Output, problems: list[str]
) -> DisplayStatus:
    step = LogStep(number, total, "table", f"published {model.table}")
    output.start(step)
    started = perf_counter()
    try:
        sent = publisher.publish(model)
    except SmlError as error:
        problems.append(f"{model.name}: {error}")
        output.checked(step, "ERROR", "error", perf_counter() - started)
        return "error"
    rows = [f"{each.rows} rows to {each.destination}" for each in sent if each.rows is not None]
    if not rows:
        output.no_op(step, perf_counter() - started)
        return "no-op"
    output.checked(step, f"OK {' and '.join(rows)}", "success", perf_counter() - started)
    return "success"
