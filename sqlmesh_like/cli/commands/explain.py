"""`sml explain`: the plan before spending. Owns the command; `plan.explain` has the facts. Starts no JVM."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import click

from sqlmesh_like.app.lakes.lake import Lake, clock, hudi_options, open_lake
from sqlmesh_like.cli.completion import complete_names
from sqlmesh_like.cli.context import load, make_output
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.plan_tree import plan_summary, plan_tree, write_costs_text
from sqlmesh_like.hudi.write_cost import write_cost_of
from sqlmesh_like.names import Schema
from sqlmesh_like.plan.explain import explain_model, program_text
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.plan.write_cost import WriteCost, describe_cost
from sqlmesh_like.run.seeds import seed_schemas


@click.command("explain")
@click.argument("models", nargs=-1, shell_complete=complete_names)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="Form of the plan.")
@click.option("--sql", "with_sql", is_flag=True, help="Print the delta program too.")
@shared_options
def command(flags: Flags, models: tuple[str, ...], output: str, with_sql: bool) -> int:
    """Show strategy, each aggregate's class, reasons, pending change and what a run would do."""
    loaded = load(Flags(**{**vars(flags), "select": (*flags.select, *models)}))
    selected = [node.unique_id for node in loaded.selected("model")]
    lake = open_lake(loaded, selected)
    planner = replace(lake.planner(clock(None)), foreseen=_of_seeds(lake, selected))
    tables = [planner.rendered.model(unique_id) for unique_id in selected]
    plans = planner.plan_ahead(model for model in tables if model.unique_id in planner.catalog.places)
    costs = _write_costs(lake, plans)
    if output == "json":
        explained = {
            "models": [explain_model(plan) for plan in plans],
            "writes": [describe_cost(cost) for cost in costs],
        }
        click.echo(json.dumps(explained, indent=2))
        return 0
    color = None if make_output(flags).color else False
    for plan in plans:
        click.echo(plan_tree(plan), color=color)
        if with_sql:
            click.echo(program_text(plan.compiled.table) + "\n")
    if costs:
        click.echo(write_costs_text(lake.catalog, costs), color=color)
    if len(plans) != 1:
        click.echo(plan_summary(plans), color=color)
    return 0


def _write_costs(lake: Lake, plans: Iterable[PlannedModel]) -> list[WriteCost]:
    """What commits to the tables of these plans, and to those that they read, rewrite for what they change."""
    read = (item.ref.unique_id for plan in plans for item in plan.inputs)
    named = dict.fromkeys([*read, *(plan.compiled.model.unique_id for plan in plans)])
    tables = [unique_id for unique_id in named if unique_id in lake.catalog.places]
    known = (write_cost_of(lake.catalog, unique_id, hudi_options(lake.loaded, unique_id)) for unique_id in tables)
    return [cost for cost in known if cost is not None]


def _of_seeds(lake: Lake, selected: Collection[str]) -> Mapping[str, Schema]:
    """Columns of seeds that are not loaded yet: a plan need not wait for them."""
    above = lake.loaded.graph.above(selected)
    seeds = [seed for seed in lake.loaded.rendered.seeds if seed.unique_id in above]
    missing = [seed for seed in seeds if not lake.catalog.state(seed.unique_id).exists]
    return seed_schemas(missing, lake.loaded.project.root)
