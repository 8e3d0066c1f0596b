"""`sml diff`: changes since `--state`, before a run, or rows of an environment. Owns the command and its output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from sqlmesh_like.app.operations.environments.environment_diff import diff_environment
from sqlmesh_like.app.operations.state_diff import require_state, state_diff
from sqlmesh_like.artifacts.change_impact import AffectedNode, ChangedNode
from sqlmesh_like.cli.completion import complete_names
from sqlmesh_like.cli.context import open_project
from sqlmesh_like.cli.options import Flags, in_environment, shared_options, within_limits
from sqlmesh_like.cli.printing.row_differences import difference_entry, difference_lines
from sqlmesh_like.cli.printing.writer import echo, echo_json
from sqlmesh_like.errors import UsageError
from sqlmesh_like.names import NodeId

_MARKS = {"new": "+", "modified": "~", "removed": "-"}
_WORDS = {
    "rebuild": "rebuild",
    "first_build": "first build",
    "reload": "reload",
    "follow": "no rebuild",
    "none": "no table",
    "left": "left behind",
}


@click.command("diff")
@within_limits
@click.argument("model", required=False, shell_complete=complete_names)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="Form of the list.")
@click.option("--limit", type=click.IntRange(min=0), default=10, help="With -e: samples of each kind to print.")
@in_environment
@shared_options
def command(flags: Flags, model: str | None, output: str, limit: int) -> int:
    """Show which nodes changed since --state and how, what forces a rebuild, and what is affected downstream.

    With -e NAME MODEL: compare the rows of an environment's table with production's, by key, with samples of rows that
    are added and removed, and of changed cells. Starts no JVM.
    """
    if flags.environment is not None:
        if model is None:
            raise UsageError("name a model to compare", hint=f"sml diff -e {flags.environment} MODEL")
        compared = diff_environment(open_project(flags), flags.environment, model, limit)
        if output == "json":
            echo_json(difference_entry(compared), indent=2)
        else:
            echo("\n".join(difference_lines(compared)))
        return 0
    if model is not None:
        raise UsageError(f"{model}: a model is compared in an environment", hint="sml diff -e NAME MODEL, or -s MODEL")
    require_state(flags)
    diff = state_diff(open_project(flags))
    if output == "json":
        echo_json({"state": str(flags.state), **asdict(diff)}, indent=2)
    else:
        echo("\n".join(_text(diff.changes, diff.touched)))
    return 0


def _text(changes: Sequence[ChangedNode], touched: Sequence[AffectedNode]) -> list[str]:
    if not changes:
        return ["nothing changed"]
    lines = [_change_line(node) for node in changes]
    lines += ["", "downstream, itself unchanged:"] if touched else []
    lines += [_affected_line(node) for node in touched]
    effects = [*(node.effect for node in changes), *(node.effect for node in touched)]
    rebuilt = sum(effect in ("rebuild", "first_build") for effect in effects)
    return [
        *lines,
        "",
        f"{_count(len(changes), 'change')}, {_count(len(touched), 'model')} downstream, {rebuilt} to build whole",
    ]


def _change_line(change: ChangedNode) -> str:
    how = f" ({', '.join(change.differences)})" if change.differences else ""
    is_told = change.resource_type != "test" and (change.why or change.effect != "none")
    effect = f": {_WORDS[change.effect]}" if is_told and change.resource_type != "source" else ""
    why = f" – {change.why}" if change.why and change.why != change.change else ""
    return f"{_MARKS[change.change]} {change.resource_type} {change.name}{how}{effect}{why}  {change.path}"


def _affected_line(node: AffectedNode) -> str:
    names = ", ".join(NodeId.parse(unique_id).short_name for unique_id in node.because)
    return f"  {NodeId.parse(node.unique_id).short_name}: {_WORDS[node.effect]}, reads {names}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
