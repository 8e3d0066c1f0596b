"""`sml explain`: the plan before spending. Owns its text form; `plan.explain` has the facts. Starts no JVM."""

from __future__ import annotations

import json

import click

from sqlmesh_like.classify.rules import Reason
from sqlmesh_like.cli.context import load
from sqlmesh_like.cli.lake import clock, open_lake
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.plan.builder import PlannedModel
from sqlmesh_like.plan.explain import explained, program_text


@click.command("explain")
@click.argument("models", nargs=-1)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="Form of the plan.")
@click.option("--sql", "with_sql", is_flag=True, help="Print the delta program too.")
@shared_options
def command(flags: Flags, models: tuple[str, ...], output: str, with_sql: bool) -> int:
    """Show strategy, each aggregate's class, reasons, pending change and what a run would do."""
    loaded = load(Flags(**{**vars(flags), "select": (*flags.select, *models)}))
    planner = open_lake(loaded).planner(clock(None))
    tables = [planner.rendered.model(node.unique_id) for node in loaded.selected("model")]
    plans = [planner.plan(model, {}) for model in tables if model.unique_id in planner.catalog.places]
    if output == "json":
        click.echo(json.dumps({"models": [explained(plan) for plan in plans]}, indent=2))
        return 0
    for plan in plans:
        click.echo(_text(plan))
        if with_sql:
            click.echo(program_text(plan.compiled.table) + "\n")
    return 0


def _text(plan: PlannedModel) -> str:
    compiled = plan.compiled
    lines = [f"{compiled.model.table}  {compiled.classification.strategy}"]
    aggregates = compiled.classification.aggregates
    told = {verdict.reason for verdict in aggregates}
    for verdict in aggregates:
        lines.append(f"{verdict.verdict:<10} {verdict.sql}  {_place(plan, verdict.reason)}{_why(verdict.reason)}")
    lines += [_reason(plan, found) for found in compiled.classification.reasons if found not in told]
    for item in plan.inputs:
        pending = f"{item.pending} rows pending" if item.has_moved and item.start else _standing(item.start, item.end)
        lines.append(f"reads      {item.ref.table}: {pending}")
    lines.append(f"next run   {plan.strategy}{_because(plan)}")
    return "\n".join([lines[0], *[f"├─ {line}" for line in lines[1:-1]], f"└─ {lines[-1]}", ""])


def _standing(start: str | None, end: str | None) -> str:
    if end is None:
        return "not there yet"
    return "not read yet" if start is None else "up to date"


def _reason(plan: PlannedModel, found: Reason) -> str:
    return f"{found.rule}     {found.message}  {_place(plan, found)}{f'({found.hint})' if found.hint else ''}".rstrip()


def _why(found: Reason) -> str:
    return f"{found.rule} {found.message}" + (f" ({found.hint})" if found.hint else "") if found.rule != "AGG001" else ""


def _because(plan: PlannedModel) -> str:
    if plan.reasons == plan.compiled.classification.reasons or not plan.reasons:
        return ""
    return ": " + "; ".join(f"{found.rule} {found.message}" for found in plan.reasons)


def _place(plan: PlannedModel, found: Reason) -> str:
    return f"{plan.compiled.model.path}:{found.line}:{found.column} " if found.line else ""
