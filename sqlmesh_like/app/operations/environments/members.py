"""Which tables an environment has of its own. Owns the rule; no table is made.

A selected model or seed has one if production's table is not of its text as it is now, or if it reads a table that the
environment has. All others are read from production.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlmesh_like.app.lakes.environment_lake import in_environment
from sqlmesh_like.app.lakes.lake import HudiLake
from sqlmesh_like.environments.environment import Environment, EnvironmentTable
from sqlmesh_like.errors import SmlError, UsageError
from sqlmesh_like.hudi.cloning.clone import clone_refusal
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import NodeId
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.plan.edits.recorded_query import is_table_of
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.plan.planner import Planner
from sqlmesh_like.releases.released_history import GoneError
from sqlmesh_like.render.rendered import RenderedModel
from sqlmesh_like.run.seeds import SeedTable, is_loaded
from sqlmesh_like.run.tests import as_model


@dataclass(frozen=True)
class Members:
    """The tables of an environment, by unique id, as a run of the selected nodes needs them.

    `made`: those that are cloned, or made anew where production has none; `dropped`: names of tables that it has and
    that are production's again, or gone from the project.
    """

    environment: Environment
    made: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


def plan_members(
    lake: HudiLake, environment: Environment, selected: Sequence[str], seeds: Mapping[str, SeedTable], now: datetime
) -> Members:
    """Return the tables that the environment needs; `lake`: production's, `selected`: unique ids, inputs first.

    Raises UsageError for a table that an environment cannot have.
    """
    return _Membership(lake, environment, seeds, now).of(selected)


@dataclass
class _Membership:
    lake: HudiLake
    environment: Environment
    seeds: Mapping[str, SeedTable]
    now: datetime
    tables: dict[str, EnvironmentTable] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    planner: Planner | None = None  # over the tables as they are decided so far

    def of(self, selected: Sequence[str]) -> Members:
        places = self.lake.catalog.places
        shown = {unique_id: str(place.table) for unique_id, place in places.items()}
        gone = [name for name, entry in self.environment.tables.items() if shown.get(name) != entry.table]
        self.dropped = [self.environment.tables[name].table for name in gone]
        self.tables = {name: entry for name, entry in self.environment.tables.items() if name not in gone}
        models = {model.unique_id: model for model in self.lake.loaded.rendered.models}
        for unique_id in selected:
            place = places.get(unique_id)
            if place is not None and (unique_id in self.seeds or unique_id in models):
                self._decide(place, models.get(place.unique_id))
        return Members(replace(self.environment, tables=self.tables), tuple(self.made), tuple(self.dropped))

    def _decide(self, place: TablePlace, model: RenderedModel | None) -> None:
        unique_id, known = place.unique_id, self.tables.get(place.unique_id)
        state = production_state(self.lake, unique_id)
        below = frozenset(self._planner().inputs(model)) if model is not None else frozenset[str]()
        if below.isdisjoint(self.tables) and not self._differs(place.unique_id, model, state):
            if known is not None:
                self.dropped.append(known.table)
                self._set_entry(unique_id, None)
            return
        entry = EnvironmentTable(str(place.table), state.frontier, Timeline(place.uri).newest_commit)
        is_known = known is not None and replace(known, place="") == entry
        is_kept = is_known and below.isdisjoint(self.made) and self._planner().catalog.state(unique_id).exists
        if not is_kept:
            # An environment cannot have such a table, or make it from production's.
            if model is not None and model.config.table_type == "mor":
                raise UsageError(f"{place.table} is merge-on-read: an environment cannot have it", hint="leave it out")
            refusal = clone_refusal(Timeline(state.uri)) if state.exists else None
            if refusal is not None:
                raise UsageError(f"{place.table} cannot be cloned: {refusal}", hint="leave it out with --exclude")
            self.made.append(unique_id)
        self._set_entry(unique_id, known if is_kept else entry)

    def _set_entry(self, unique_id: str, entry: EnvironmentTable | None) -> None:
        others = {name: each for name, each in self.tables.items() if name != unique_id}
        self.tables = others if entry is None else {**others, unique_id: entry}
        self.planner = None

    def _differs(self, unique_id: NodeId, model: RenderedModel | None, state: TableState) -> bool:
        """Whether production's table is of another text than the node now; also where that is not known."""
        if model is None:
            return not is_loaded(self.seeds[unique_id], state)
        if state.record is None or model.asks_lake:
            return True
        planner = self._planner()
        try:
            return not is_table_of(state.record, planner.compile(model, planner.catalog.states(planner.inputs(model))))
        except SmlError:
            return True  # its run says what is wrong

    def _planner(self) -> Planner:
        if self.planner is None:
            lake = in_environment(self.lake, replace(self.environment, tables=self.tables))
            self.planner = lake.planner(self.now)
        return self.planner


def production_state(lake: HudiLake, unique_id: str) -> TableState:
    """The state of production's table as readers see it; `missing` also where its release does not have it."""
    try:
        return lake.catalog.state(unique_id)
    except GoneError:
        return TableState(lake.catalog.places[unique_id].uri, "missing")


def with_readers(lake: HudiLake, environment: Environment, selected: Sequence[str], now: datetime) -> Iterator[str]:
    """The selected nodes that a run in the environment executes: its tables, and views and tests that read them."""
    planner, rendered, own = in_environment(lake, environment).planner(now), lake.loaded.rendered, environment.tables
    views = [model for model in rendered.models if model.config.materialized == "view"]
    readers: dict[str, RenderedModel] = {view.unique_id: view for view in views}
    readers |= {test.unique_id: as_model(test) for test in rendered.tests}
    units: dict[str, str] = {unit.unique_id: unit.model.unique_id for unit in rendered.unit_tests}
    for unique_id in selected:
        reads = planner.inputs(readers[unique_id]) if unique_id in readers else ()
        if unique_id in own or units.get(unique_id) in own or not own.keys().isdisjoint(reads):
            yield unique_id
