"""`sml promote`: make an environment production. Owns the command and its output."""

from __future__ import annotations

from dataclasses import asdict

import click

from sqlmesh_like.app.operations.environments.promotion import promote_environment
from sqlmesh_like.app.operations.environments.promotion_checks import MovedError
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.writer import echo_json


@click.command("promote")
@click.argument("name")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="Form of the output.")
@shared_options
def command(flags: Flags, name: str, output: str) -> int:
    """Make the tables of an environment production's, without recomputing, and remove it. Starts no JVM.

    Refused where production's own tables have moved on since, or the environment is not up to date with the project.
    """
    loaded = open_project(flags)
    try:
        promotion = promote_environment(loaded, name)
    except MovedError as error:
        if output == "text":
            raise
        echo_json({"environment": name, "moved": [asdict(each) for each in error.moved]}, indent=2)
        return error.exit_code
    if output == "json":
        echo_json({"environment": name, **asdict(promotion)}, indent=2)
        return 0
    lines = make_output(flags)
    for step in promotion.steps:
        lines.line(f"{step.table} is at {step.commit}")
    count = len(promotion.steps)
    release = "" if promotion.release is None else f"; readers see release {promotion.release} now"
    lines.line(f"the environment {name} is production, {count} table{'s' * (count != 1)}{release}")
    return 0
