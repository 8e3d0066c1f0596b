"""The call that wrote `run_results.json`. Owns reading back its request, and which of its nodes are run again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.loading.loaded import Loaded, load_parsed
from sqlmesh_like.app.loading.own_calls import is_own_call
from sqlmesh_like.artifacts.json_objects import mapping_of
from sqlmesh_like.artifacts.state import MANIFEST, RESULTS, read_artifact, statuses
from sqlmesh_like.errors import UsageError
from sqlmesh_like.plan.graph import Graph

AnyInvocation = TypeVar("AnyInvocation", bound=Invocation)
_AGAIN = frozenset({"error", "fail", "skipped", "runtime error"})
_CHOICE = ("select", "exclude", "selector")
_TESTS = ("test", "unit_test")
_PLACES = ("profile", "target", "target_path")
_PATHS = ("project_dir", "profiles_dir", "state", "defer_state")


@dataclass(frozen=True)
class LastCall:
    """A call of `run`, `build` and the like that ended. `unfinished`: ids of nodes that failed or were skipped.

    `known`: ids of all nodes in its results; `entries`: the nodes of its manifest.
    """

    command: str
    args: Mapping[str, object]
    unfinished: frozenset[str]
    known: frozenset[str]
    entries: Mapping[str, object]

    def merge_flags(self, given: AnyInvocation) -> AnyInvocation:
        """Return its flags, overridden by those given now. Raises UsageError where its --vars are needed."""
        default = type(given)()
        if self.args.get("has_vars") and given.vars == default.vars:
            hint = "give the same --vars again"
            raise UsageError("the last call had --vars, which are not kept: they may hold secrets", hint=hint)
        kept: dict[str, Any] = {
            field.name: _flag(field.name, self.args[field.name])
            for field in fields(given)
            if field.name in self.args and field.name not in (*_CHOICE, "vars")
        }
        given_now = {name: value for name, value in vars(given).items() if value != getattr(default, name)}
        return replace(default, **{**kept, **given_now, "state": kept.get("state")})

    @property
    def now(self) -> str | None:
        """The time given with its `--now`, ISO 8601; None: the machine's time."""
        now = self.args.get("now")
        return None if now is None else str(now)

    @property
    def store_failures(self) -> bool:
        return bool(self.args.get("store_failures"))

    @property
    def units_on(self) -> str:
        """The engine of unit tests."""
        return str(self.args.get("engine") or "duckdb")

    @property
    def slices(self) -> int | None:
        slices = self.args.get("slices")
        return None if slices is None else int(str(slices))

    @property
    def backfill(self) -> str | None:
        backfill = self.args.get("backfill")
        return None if backfill is None else str(backfill)

    def present(self, loaded: Loaded) -> list[str]:
        """Return the unfinished nodes that are still in the project, and their tests, sorted by id.

        Raises UsageError where there are none.
        """
        present = (self.unfinished & loaded.graph.nodes.keys()) | self._tests_now(loaded.graph)
        if not present:
            gone = ", ".join(sorted(self.unfinished))
            raise UsageError(f"the project no longer has what failed: {gone}", hint="run anew: sml run")
        return sorted(present)

    def _tests_now(self, graph: Graph) -> set[str]:
        """Return the tests of nodes that are built again, and new tests of the inputs of failed tests that are gone.

        A test's id contains its arguments, so a test that was fixed has another id.
        """
        if self.command not in ("build", "test"):
            return set()
        read: set[object] = set()
        for unique_id in self.unfinished - graph.nodes.keys():
            inputs = mapping_of(mapping_of(self.entries.get(unique_id)).get("depends_on")).get("nodes")
            read.update(inputs if isinstance(inputs, list) else ())
        tests = [node.unique_id for node in graph.nodes.values() if node.resource_type in _TESTS]
        return {
            test
            for test in tests
            for parent in graph.parents(test)
            if (parent in self.unfinished and self.command == "build") or (parent in read and test not in self.known)
        }


def last_call(given: Invocation, commands: Collection[str]) -> LastCall:
    """Return the call, of one of these commands, that wrote the results in the target folder, or in `given.state`.

    Raises UsageError where there is none, or where `given` selects nodes.
    """
    for name in _CHOICE:
        if getattr(given, name):
            hint = f"choose nodes anew: sml run --{name} …"
            raise UsageError(f"retry takes what failed in the last call; --{name} has no meaning here", hint=hint)
    folder = given.state or _target_folder(given)
    results = read_artifact(folder / RESULTS)
    if results is None:
        raise UsageError(f"there is no {RESULTS} in {folder}", hint="`sml retry` repeats an earlier call: run first")
    written = results.get("args")
    args: Mapping[str, object] = written if isinstance(written, Mapping) else {}
    # Flags of that call that choose where a call works and with whose secrets, and that are not given now.
    chosen = (name for name in (*_PLACES, *_PATHS) if args.get(name) and not getattr(given, name))
    if given.state is None and (flag := next(chosen, None)) and not is_own_call(folder / RESULTS):
        hint = f"give --{flag.replace('_', '-')} again: no call of yours on this machine wrote that file"
        raise UsageError(f"{folder / RESULTS} says --{flag.replace('_', '-')} {args[flag]}", hint=hint)
    command = str(args.get("which"))
    if command not in commands:
        hint = f"one of {', '.join(commands)}"
        raise UsageError(f"{folder / RESULTS} is not of a call that can be repeated", hint=hint)
    ended = statuses(results)
    unfinished = frozenset(unique_id for unique_id, status in ended.items() if status in _AGAIN)
    entries = mapping_of((read_artifact(folder / MANIFEST) or {}).get("nodes"))
    return LastCall(command, args, unfinished, frozenset(ended), entries)


def _target_folder(given: Invocation) -> Path:
    project = load_parsed(given)
    return project.root / project.target_path


def _flag(name: str, value: object) -> object:
    return Path(str(value)) if name in _PATHS and value is not None else value
