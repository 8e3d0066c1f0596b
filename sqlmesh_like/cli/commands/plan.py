"""`sml plan`: what a run in an environment would do. Owns the command and its output."""

from __future__ import annotations

import sys

import click

from sqlmesh_like.app.operations.environments.environment_plan import (
    EnvironmentPlan,
    PlannedTable,
    plan_environment,
)
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, in_environment, shared_options
from sqlmesh_like.cli.printing.output import size
from sqlmesh_like.cli.printing.plan_tree import plan_summary, plan_tree
from sqlmesh_like.cli.printing.question import confirm
from sqlmesh_like.cli.printing.writer import echo, echo_json, echo_styled
from sqlmesh_like.cli.run_service import run_selected
from sqlmesh_like.errors import UsageError


@click.command("plan")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="Form of the plan.")
@click.option("--yes", is_flag=True, help="Make these tables without asking.")
@in_environment
@shared_options
def command(flags: Flags, output: str, yes: bool) -> int:
    """Show what `sml run` with the same -e would make beside production, and at what cost; then ask whether to make it.

    Without a terminal, and as JSON, it is only shown, unless --yes is given. To show it starts no JVM, changes nothing.
    """
    name = flags.environment
    if name is None:
        raise UsageError("name an environment: sml plan -e NAME", hint="`sml explain` shows the next run of production")
    plan = plan_environment(open_project(flags), name)
    if output == "json":
        echo_json(plan.to_dict(), indent=2)
        return run_selected(flags, "run") if yes and _has_work(plan) else 0
    color = None if make_output(flags).color else False
    for each in plan.tables:
        echo(_origin(each))
        echo(_cost(each))
        echo_styled(plan_tree(each.plan.planned, each.plan.route), color=color)
    if plan.tables:
        echo_styled(plan_summary(each.plan.planned for each in plan.tables), color=color)
    lines = [f"nothing differs from production: {plan.name} needs no table"] if not plan.tables else []
    for words, tables in (("read from production", plan.read), ("production's again, or gone: removed", plan.leaving)):
        if tables:
            lines.append(f"{words}: {', '.join(map(str, tables))}")
    echo("\n".join(lines))
    if not _has_work(plan):
        return 0
    if yes or (sys.stdin.isatty() and confirm(f"Make this in {name}?", "", "")):
        return run_selected(flags, "run")
    echo("Nothing was changed; add --yes to make it")
    return 0


def _has_work(plan: EnvironmentPlan) -> bool:
    return bool(plan.leaving) or any(each.origin != "kept" or each.plan.next_run != "no_op" for each in plan.tables)


def _origin(each: PlannedTable) -> str:
    match each.origin:
        case "new":
            return f"{each.table}: production has none"
        case "kept":
            return f"{each.table}: as the last run of the environment left it"
        case "cloned":
            files = f"{each.shared.files} file{'s' * (each.shared.files != 1)} ({size(each.shared.bytes)})"
            how = "copied by the store" if each.is_copied else "shared with production"
            return f"{each.table}: cloned at {each.base}, {files} {how}"


def _cost(each: PlannedTable) -> str:
    cost = each.cost
    if each.origin == "new":
        return f"  reads {size(cost.read)}"  # the size of the result is not known yet
    at_most = "at most " if cost.is_bound else ""
    read, rewritten = size(cost.read), size(cost.rewritten)
    return f"  reads {at_most}{read}, rewrites {at_most}{rewritten}; built anew it would read {size(cost.rebuild)}"
