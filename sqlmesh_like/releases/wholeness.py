"""Which commits belong together after a run. Owns the rule; no file is read beyond what tables record.

A release is whole if each of its tables has read its inputs as the release names them. Whatever the run built or read
is named as it left or saw it, all else as the release before names it: one that has not read what moved below it
prevents the release.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from sqlmesh_like.errors import NodeError
from sqlmesh_like.names import NodeId
from sqlmesh_like.plan.catalog import Catalog
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.releases.release import ReleasedTable, Tables

Inputs = Callable[[str], Collection[str]]
"""The tables that a table reads, directly or through views, by unique id."""


class NotWholeError(NodeError):
    """The tables that a release would name do not belong together."""


@dataclass(frozen=True)
class TablesOfRun:
    """What a run without a failure knows: tables that it brought up to date, as they are, and what these read.

    `loose`: the built ones that may have read other commits than these: planned again meanwhile, among hooks, or by a
    template that asks the lake.
    """

    built: Mapping[str, TableState]
    read: Mapping[str, TableState]
    loose: frozenset[str] = field(default=frozenset())


def whole_tables(catalog: Catalog, inputs: Inputs, run: TablesOfRun, base: Tables) -> dict[str, ReleasedTable]:
    """Return the tables of a release after a run; `base`: those of the release before.

    Raises NotWholeError, which names a table that has not read what another one holds.
    """
    return _Cut(catalog, inputs, run, base).tables()


class _Cut:
    def __init__(self, catalog: Catalog, inputs: Inputs, run: TablesOfRun, base: Tables) -> None:
        self.catalog, self.inputs, self.run = catalog, inputs, run
        self.base = {
            name: each for name, each in base.items() if name in catalog.places and self._name(name) == each.table
        }
        moved = {name: state.frontier for name, state in {**run.read, **run.built}.items() if state.frontier}
        self.commits = {**{name: each.commit for name, each in self.base.items()}, **moved}
        self.fixed = set(moved)

    def tables(self) -> dict[str, ReleasedTable]:
        for name in [name for name in self.run.read if name in self.fixed]:
            self._take_inputs(name)
        for name in self.commits:
            self._require_read(name)
        return {name: ReleasedTable(self._name(name), commit) for name, commit in sorted(self.commits.items())}

    def _take_inputs(self, name: str) -> None:
        """Name what a table has read that the run did not build: its inputs' commits by its own record."""
        waiting = [name]
        while waiting:
            reader = waiting.pop()
            below = self.inputs(reader)
            if not below or self._is_as_before(reader):
                continue
            record = self._record(reader)
            for unique_id in below:
                if unique_id in self.fixed or unique_id not in record:
                    continue
                self.commits[unique_id] = record[unique_id]
                self.fixed.add(unique_id)
                waiting.append(unique_id)

    def _require_read(self, name: str) -> None:
        if name in self.run.built and name not in self.run.loose:
            return  # by this run, as it pinned them
        below = {*self.inputs(name)}
        if name in self.run.built:  # a template that asks the lake may have named others
            below |= self._record(name).keys() & self.catalog.places.keys()
        unread = sorted(each for each in below if not self._is_edge_as_before(name, each))
        if not unread:
            return
        record = self._record(name)
        for unique_id in unread:
            if record.get(unique_id) != self.commits.get(unique_id):
                node = self.catalog.places[unique_id].unique_id
                selector = f"source:{node.qualified_name}" if node.kind == "source" else node.short_name
                message = f"{self._name(name)} has not read {self._name(unique_id)} as this run leaves it"
                raise NotWholeError(message, hint=f"bring what reads it up to date: sml build -s {selector}+")

    def _record(self, name: str) -> Mapping[str, str]:
        """What a table says it has read, empty where it is no longer at the commit that the release would name."""
        state = self.run.built.get(name) or self.run.read.get(name) or self.catalog.state(name)
        return state.record.frontier if state.record and state.frontier == self.commits[name] else {}

    def _is_as_before(self, name: str) -> bool:
        return name in self.base and self.base[name].commit == self.commits.get(name)

    def _is_edge_as_before(self, name: str, unique_id: str) -> bool:
        return self._is_as_before(name) and self._is_as_before(unique_id)

    def _name(self, unique_id: str) -> str:
        return str(self.catalog.places[unique_id].table)


def pending_tests(
    changed: Iterable[str], tests: Mapping[NodeId, Collection[str]], passed: Collection[str]
) -> list[NodeId]:
    """Return the data tests, of those given with the tables they read, that have yet to pass for changed tables.

    >>> tests = {NodeId("test", "p", "x"): ["model.p.a"], NodeId("test", "p", "y"): ["model.p.b"]}
    >>> pending_tests(["model.p.a"], tests, [])
    ['test.p.x']
    """
    wanted = frozenset(changed)
    return [test for test, read in tests.items() if test not in passed and not wanted.isdisjoint(read)]
