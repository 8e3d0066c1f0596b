"""`sml explain`: the plan of the next run. Owns the command; `app.operations.planning` plans. Starts no JVM."""

from __future__ import annotations

from dataclasses import replace

import click

from sqlmesh_like.app.operations.planning import plan_models
from sqlmesh_like.cli.completion import complete_names
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, in_environment, shared_options
from sqlmesh_like.cli.printing.plan_tree import plan_summary, plan_tree, write_costs_text
from sqlmesh_like.cli.printing.writer import echo_json, echo_sql, echo_styled


@click.command("explain")
@click.argument("models", nargs=-1, shell_complete=complete_names)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="Form of the plan.")
@click.option("--sql", "with_sql", is_flag=True, help="Also print the delta program.")
@in_environment
@shared_options
def command(flags: Flags, models: tuple[str, ...], output: str, with_sql: bool) -> int:
    """Show strategy, each aggregate's class, reasons, pending change and what a run would do."""
    plan = plan_models(open_project(replace(flags, select=(*flags.select, *models))))
    if output == "json":
        echo_json(plan.to_dict(), indent=2)
        return 0
    color = None if make_output(flags).color else False
    for model in plan.models:
        echo_styled(plan_tree(model.planned, model.route), color=color)
        if with_sql:
            echo_sql(model.program + "\n")
    if plan.writes:
        echo_styled(write_costs_text(plan.catalog, plan.writes), color=color)
    if len(plan.models) != 1:
        echo_styled(plan_summary(model.planned for model in plan.models), color=color)
    return 0
