"""`sml explain`: the plan before spending. Owns its text form; `plan.explain` has the facts. Starts no JVM."""

from __future__ import annotations

import json

import click

from sqlmesh_like.classify.rules import Reason
from sqlmesh_like.cli.context import load
from sqlmesh_like.cli.lake import clock, open_lake
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.output import size
from sqlmesh_like.plan.builder import PlannedInput, PlannedModel
from sqlmesh_like.plan.cost import Estimate, Work
from sqlmesh_like.plan.explain import explained, program_text


@click.command("explain")
@click.argument("models", nargs=-1)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="Form of the plan.")
@click.option("--sql", "with_sql", is_flag=True, help="Print the delta program too.")
@shared_options
def command(flags: Flags, models: tuple[str, ...], output: str, with_sql: bool) -> int:
    """Show strategy, each aggregate's class, reasons, pending change and what a run would do."""
    loaded = load(Flags(**{**vars(flags), "select": (*flags.select, *models)}))
    selected = [node.unique_id for node in loaded.selected("model")]
    planner = open_lake(loaded, selected).planner(clock(None))
    tables = [planner.rendered.model(unique_id) for unique_id in selected]
    plans = planner.plan_ahead(model for model in tables if model.unique_id in planner.catalog.places)
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
        lines.append(
            f"{verdict.verdict:<10} {verdict.sql}  {_place(plan, verdict.reason)}{_why(plan, verdict.reason)}".rstrip()
        )
    lines += [_reason(plan, found) for found in compiled.classification.reasons if found not in told]
    for item in plan.inputs:
        lines.append(f"reads      {item.ref.table}: {_standing(item)}")
    if plan.estimate is not None:
        lines.append(f"estimate   {_cost(plan, plan.estimate)}")
    refused = " – refused by refresh: strict" if plan.is_refused else ""
    lines.append(f"next run   {plan.strategy}{refused}{_because(plan)}")
    return "\n".join([lines[0], *[f"├─ {line}" for line in lines[1:-1]], f"└─ {lines[-1]}", ""])


def _cost(plan: PlannedModel, found: Estimate) -> str:
    """What the next run costs and, where there was a choice, what the other way would."""
    if not plan.target.exists:
        return f"reads {size(found.full.read)}"  # how much the result holds is not known before
    work = _work(found.work(plan.strategy))
    change = f"{found.changed_rows:,} changed rows in {found.changed_files:,} file groups"
    if plan.strategy != "full_refresh":
        other = f"; {found.other[0]} {_work(found.other[1])}" if found.other else ""
        return f"{change}: {work}{other}; a full refresh {_work(found.full)}"
    is_chosen = any(reason.rule == "CST001" for reason in plan.reasons)
    return f"{change}: {work}; following them {_work(found.incremental)}" if is_chosen else work


def _work(work: Work) -> str:
    return f"reads {size(work.read)}, rewrites {size(work.rewritten)}"


def _standing(item: PlannedInput) -> str:
    if item.awaits:
        return "changes before, in the same run"
    if item.end is None:
        return "not there yet"
    if item.start is None:
        return "not read yet"
    return f"{item.change.rows} rows pending" if item.has_moved else "up to date"


def _reason(plan: PlannedModel, found: Reason) -> str:
    return f"{found.rule}     {found.message}  {_place(plan, found)}{_hint(plan, found)}".rstrip()


def _why(plan: PlannedModel, found: Reason) -> str:
    return f"{found.rule} {found.message}{_hint(plan, found)}" if found.rule != "AGG001" else ""


def _hint(plan: PlannedModel, found: Reason) -> str:
    """What would make it cheaper, where the whole table is at stake."""
    is_whole = plan.compiled.classification.strategy == "full_refresh"
    return f" ({found.hint})" if found.hint and is_whole else ""


def _because(plan: PlannedModel) -> str:
    if plan.reasons == plan.compiled.classification.reasons or not plan.reasons:
        return ""
    return ": " + "; ".join(f"{found.rule} {found.message}" for found in plan.reasons)


def _place(plan: PlannedModel, found: Reason) -> str:
    return f"{plan.compiled.model.path}:{found.line}:{found.column} " if found.line else ""
