"""`sml retry`: runs what failed or was skipped last time. Owns reading that call back; `run_service` repeats it."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import fields, replace
from pathlib import Path

import click

from sqlmesh_like.app.loading.loaded import load_parsed
from sqlmesh_like.app.operations.run_nodes import COMMAND_TYPES
from sqlmesh_like.artifacts.json_objects import mapping_of
from sqlmesh_like.artifacts.state import MANIFEST, RESULTS, read_artifact, statuses
from sqlmesh_like.cli.context import load, make_output
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.run_service import run_selected
from sqlmesh_like.errors import UsageError
from sqlmesh_like.plan.graph import Graph

_AGAIN = frozenset({"error", "fail", "skipped", "runtime error"})
_CHOICE = ("select", "exclude", "selector")
_TESTS = ("test", "unit_test")
_PATHS = ("project_dir", "profiles_dir", "state")


@click.command("retry")
@shared_options
def command(flags: Flags) -> int:
    """Run again what failed or was skipped in the last seed, run, test or build, with the flags of that call.

    After a build those are taken along that test these nodes now, and a test that was changed replaces the old one.
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
    last_statuses = statuses(last)
    unique_ids = {unique_id for unique_id, status in last_statuses.items() if status in _AGAIN}
    if not unique_ids:
        make_output(flags).line(f"Nothing to retry: nothing failed in the last `sml {which}`")
        return 0
    again = _flags(args, replace(flags, state=None))
    graph = load(replace(again, quiet=True), broken=True).graph
    tests = _tests_now(graph, which, unique_ids, last_statuses.keys(), read_artifact(folder / MANIFEST) or {})
    moment, chosen = None if now is None else str(now), _present(again, graph, unique_ids, tests)
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


def _tests_now(graph: Graph, which: str, failed: Set[str], known: Set[str], manifest: Mapping[str, object]) -> set[str]:
    """Tests of what is built again; and those that the last call did not know, of what tests read that are gone.

    A test's id holds what it is called with: whoever repairs one makes another.
    """
    if which not in ("build", "test"):
        return set()
    entries = mapping_of(manifest.get("nodes"))
    read: set[object] = set()
    for unique_id in failed - graph.nodes.keys():
        inputs = mapping_of(mapping_of(entries.get(unique_id)).get("depends_on")).get("nodes")
        read.update(inputs if isinstance(inputs, list) else ())
    tests = [node.unique_id for node in graph.nodes.values() if node.resource_type in _TESTS]
    return {
        test
        for test in tests
        for parent in graph.parents(test)
        if (parent in failed and which == "build") or (parent in read and test not in known)
    }


def _present(flags: Flags, graph: Graph, unique_ids: set[str], tests: set[str]) -> list[str]:
    """Those that the project still has, and the tests. Raises UsageError where there are none."""
    known = graph.nodes
    gone = sorted(unique_ids - known.keys())
    if len(gone) == len(unique_ids) and not tests:
        raise UsageError(f"the project no longer has what failed: {', '.join(gone)}", hint="run anew: sml run")
    for unique_id in gone:
        make_output(flags).line(f"warning: {unique_id} failed in the last call and is no longer there", "warn")
    return sorted((unique_ids & known.keys()) | tests)
