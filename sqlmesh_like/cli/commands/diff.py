"""`sml diff`: what changed since `--state`, before spending. Owns its forms; `artifacts.effect` has the facts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import click

from sqlmesh_like.artifacts.change_impact import AffectedNode, ChangedNode, ImpactAnalysis
from sqlmesh_like.artifacts.state import MANIFEST
from sqlmesh_like.cli.context import load
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.errors import UsageError

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
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="Form of the list.")
@shared_options
def command(flags: Flags, output: str) -> int:
    """Show nodes that changed since --state, how, which changes force a rebuild, and what they touch downstream."""
    if flags.state is None:
        hint = "give the folder of an earlier manifest.json, such as a copy of target/"
        raise UsageError("diff needs --state PATH to compare with", hint=hint)
    loaded = load(flags)
    if loaded.state is None or loaded.state.manifest is None:
        raise UsageError(f"there is no {MANIFEST} in {flags.state}", hint="`sml compile` writes it")
    effects = ImpactAnalysis(loaded.state.manifest, loaded.manifest)
    is_chosen = bool(flags.select or flags.exclude or flags.selector)
    chosen = {node.unique_id for node in loaded.selected()} if is_chosen else None
    changes = tuple(found for found in effects.changes() if chosen is None or found.unique_id in chosen)
    touched = effects.touched(changes)
    if output == "json":
        data = {"state": str(flags.state), "changes": list(map(asdict, changes)), "touched": list(map(asdict, touched))}
        click.echo(json.dumps(data, indent=2))
    else:
        click.echo("\n".join(_text(changes, touched)))
    return 0


def _text(changes: Sequence[ChangedNode], touched: Sequence[AffectedNode]) -> list[str]:
    if not changes:
        return ["nothing changed"]
    lines = [_changed(found) for found in changes]
    lines += ["", "downstream, itself unchanged:"] if touched else []
    lines += [_touched(found) for found in touched]
    effects = [*(found.effect for found in changes), *(found.effect for found in touched)]
    rebuilt = sum(effect in ("rebuild", "first_build") for effect in effects)
    return [
        *lines,
        "",
        f"{_count(len(changes), 'change')}, {_count(len(touched), 'model')} downstream, {rebuilt} to build whole",
    ]


def _changed(found: ChangedNode) -> str:
    how = f" ({', '.join(found.differences)})" if found.differences else ""
    is_told = found.resource_type != "test" and (found.why or found.effect != "none")
    effect = f": {_WORDS[found.effect]}" if is_told and found.resource_type != "source" else ""
    why = f" – {found.why}" if found.why and found.why != found.change else ""
    return f"{_MARKS[found.change]} {found.resource_type} {found.name}{how}{effect}{why}  {found.path}"


def _touched(found: AffectedNode) -> str:
    names = ", ".join(unique_id.rpartition(".")[2] for unique_id in found.because)
    return f"  {found.unique_id.rpartition('.')[2]}: {_WORDS[found.effect]}, reads {names}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
