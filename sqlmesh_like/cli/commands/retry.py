"""`sml retry`: runs what failed or was skipped last time. Owns reading that call back; `run_service` repeats it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

import click

from sqlmesh_like.app.loading.loaded import load_parsed
from sqlmesh_like.app.operations.run_nodes import COMMAND_TYPES
from sqlmesh_like.artifacts.state import RESULTS, read_artifact, statuses
from sqlmesh_like.cli.context import load, make_output
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.run_service import run_selected
from sqlmesh_like.errors import UsageError

_AGAIN = frozenset({"error", "fail", "skipped", "runtime error"})
_CHOICE = ("select", "exclude", "selector")
_PATHS = ("project_dir", "profiles_dir", "state")


@click.command("retry")
@shared_options
def command(flags: Flags) -> int:
    """Run again what failed or was skipped in the last seed, run, test or build, with the flags of that call.

    The call is that of run_results.json in the target folder, or in --state; flags given here win.
    """
    _refuse_choice(flags)
    folder = flags.state or _target_folder(flags)
    last = read_artifact(folder / RESULTS)
    if last is None:
        raise UsageError(f"there is no {RESULTS} in {folder}", hint="`sml retry` repeats an earlier call: run first")
    given = last.get("args")
    args: Mapping[str, object] = given if isinstance(given, Mapping) else {}
    which, now = str(args.get("which")), args.get("now")
    if which not in COMMAND_TYPES:
        raise UsageError(
            f"{folder / RESULTS} is not of a call that can be repeated", hint=f"one of {', '.join(COMMAND_TYPES)}"
        )
    unique_ids = {unique_id for unique_id, status in statuses(last).items() if status in _AGAIN}
    if not unique_ids:
        make_output(flags).line(f"Nothing to retry: nothing failed in the last `sml {which}`")
        return 0
    again = _flags(args, replace(flags, state=None))
    moment, chosen = None if now is None else str(now), _present(again, unique_ids)
    stores, units_on = bool(args.get("store_failures")), str(args.get("engine") or "duckdb")
    return run_selected(again, which, moment, chosen, store_failures=stores, units_on=units_on)


def _refuse_choice(flags: Flags) -> None:
    for name in _CHOICE:
        if getattr(flags, name):
            hint = f"choose nodes anew: sml run --{name} …"
            raise UsageError(f"retry takes what failed in the last call; --{name} has no meaning here", hint=hint)


def _target_folder(flags: Flags) -> Path:
    project = load_parsed(flags)
    return project.root / project.target_path


def _flags(args: Mapping[str, object], given: Flags) -> Flags:
    """The flags of the earlier call, but for what is given now. Raises UsageError where its --vars are needed."""
    default = Flags()
    if args.get("has_vars") and given.vars == default.vars:
        hint = "give the same --vars again"
        raise UsageError("the last call had --vars, which are not kept: they may hold secrets", hint=hint)
    kept = {
        field.name: _value(field.name, args[field.name])
        for field in fields(Flags)
        if field.name in args and field.name not in (*_CHOICE, "vars")
    }
    now_given = {name: value for name, value in vars(given).items() if value != getattr(default, name)}
    return Flags(**{**kept, **now_given})


def _value(name: str, value: object) -> object:
    return Path(str(value)) if name in _PATHS and value is not None else value


def _present(flags: Flags, unique_ids: set[str]) -> list[str]:
    """Those that the project still has. Raises UsageError where it has none."""
    known = load(replace(flags, quiet=True), broken=True).graph.nodes
    gone = sorted(unique_ids - known.keys())
    if len(gone) == len(unique_ids):
        raise UsageError(f"the project no longer has what failed: {', '.join(gone)}", hint="run anew: sml run")
    for unique_id in gone:
        make_output(flags).line(f"warning: {unique_id} failed in the last call and is no longer there", "warn")
    return sorted(unique_ids & known.keys())
