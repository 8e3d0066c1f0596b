"""Whether an environment may be made production, and by which steps. Owns what is refused; changes nothing.

What interrupted calls left of production's tables is put right first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sqlmesh_like.app.lakes.environment_lake import in_environment
from sqlmesh_like.app.lakes.lake_tables import LakeTables
from sqlmesh_like.app.operations.environments.environment_list import MovedTable, moved_tables
from sqlmesh_like.app.operations.environments.promotion_release import require_tested
from sqlmesh_like.app.operations.environments.text_comparison import TextComparison
from sqlmesh_like.environments.environment import Environment, PromotionStep
from sqlmesh_like.errors import UsageError
from sqlmesh_like.hudi.cloning.newer_commits import newer_commits
from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.hudi.recovery.table_swap import has_remains, recover
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.open_commit import settled_timeline
from sqlmesh_like.names import NodeId, is_local
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.plan.history import TableRecord, TableState
from sqlmesh_like.render.rendered import RenderedModel

if TYPE_CHECKING:
    from sqlmesh_like.plan.planner import Planner


class MovedError(UsageError):
    """Production has other commits than when the environment was cloned. `moved`: in which tables."""

    def __init__(self, name: str, moved: tuple[MovedTable, ...]) -> None:
        tables = "; ".join(
            f"{each.table} was at {each.cloned or 'nothing'}, is at {each.now or 'nothing'}" for each in moved
        )
        command = "build" if any(NodeId.parse(each.unique_id).kind == "seed" for each in moved) else "run"
        hint = f"`sml {command} -e {name}` brings it up to date"
        super().__init__(f"production has moved on since {name!r} was cloned: {tables}", hint=hint)
        self.moved = moved


@dataclass(frozen=True)
class PlannedPromotion:
    """The steps, inputs first, and the environment's own tables by unique id, as they are while its lock is held."""

    steps: tuple[PromotionStep, ...]
    own: Mapping[str, Timeline]


@dataclass(frozen=True)
class _Table:
    """A table of an environment beside production's: each read once, while the locks of both are held."""

    place: TablePlace
    production: Timeline
    own: Timeline
    state: TableState


def plan_promotion(
    lake: LakeTables, environment: Environment, make_planner: Callable[[LakeTables], Planner]
) -> PlannedPromotion:
    """Return the steps of promoting an environment; `lake`: production at its newest commits.

    `make_planner` is called where a model has to be compiled. Raises UsageError where the environment is not up to date
    with its project, or has nothing; MovedError where production moved on.
    """
    name, places = environment.name, lake.catalog.places
    if not environment.tables:
        hint = "an environment has tables where the project differs from production"
        raise UsageError(f"the environment {name!r} has no tables: there is nothing to promote", hint=hint)
    production: dict[str, Timeline] = {}
    for unique_id, entry in environment.tables.items():
        if unique_id not in places or str(places[unique_id].table) != entry.table:
            hint = f"`sml run -e {name}` removes it from the environment"
            raise UsageError(f"the project no longer has {entry.table}, which the environment has", hint=hint)
        production[unique_id] = _recover_table(places[unique_id])
    if moved := moved_tables(environment, production):
        raise MovedError(name, moved)
    own = in_environment(lake, environment)
    tables: dict[str, _Table] = {}
    for unique_id, timeline in production.items():
        clone = Timeline(own.catalog.places[unique_id].uri)
        tables[unique_id] = _Table(places[unique_id], timeline, clone, table_state(clone))
    states = {unique_id: table.state for unique_id, table in tables.items()}
    _CurrencyCheck(own, environment, tables, make_planner).require()
    steps = tuple(_step(unique_id, tables[unique_id]) for unique_id in lake.loaded.graph.order(environment.tables))
    require_tested(lake, environment, states)
    return PlannedPromotion(steps, {unique_id: table.own for unique_id, table in tables.items()})


def _recover_table(place: TablePlace) -> Timeline:
    """Remove what interrupted calls left of production's table. Raises UsageError where only Hudi's writer may."""
    if is_local(place.uri) and has_remains(place.uri):
        recover(place.uri)
    timeline = settled_timeline(place.uri)
    if unfinished := timeline.unfinished:
        hint = f"a run of production removes it: sml run -s {place.unique_id.short_name}"
        raise UsageError(f"{place.table} has the commit {unfinished[0]}, which was interrupted", hint=hint)
    return timeline


@dataclass(frozen=True)
class _CurrencyCheck:
    """Whether an environment's tables are of the project as it is now; `own`: the lake with these tables."""

    own: LakeTables
    environment: Environment
    tables: Mapping[str, _Table]
    make_planner: Callable[[LakeTables], Planner]

    def require(self) -> None:
        """Raises UsageError where a table is not of the project's text, or has not read what others of these hold."""
        reads, states = self.own.reads, {unique_id: table.state for unique_id, table in self.tables.items()}
        below = {each for unique_id in states for each in reads.of_table(unique_id)}
        states = {**self.own.catalog.states(below.difference(states)), **states}
        texts = TextComparison(self.own, self.environment.compared, lambda: self.make_planner(self.own))
        hint = f"run it again: sml run -e {self.environment.name}"
        for unique_id, table in self.tables.items():
            record = table.state.record
            if record is None or table.own.unfinished:
                raise UsageError(f"{table.place.table} was not completed in the environment", hint=hint)
            model = reads.models.get(unique_id)
            if model is None:
                self._require_loaded(unique_id, table, hint)
                continue
            inputs = {each: states[each] for each in reads.of(model)}
            if not model.asks_lake and not texts.is_of_text(model, record, inputs):
                raise UsageError(f"{table.place.table} was edited since", hint=hint)
            for each in inputs.keys() & self.tables.keys():
                if self._has_moved(model, record, each):
                    name = self.tables[each].place.table
                    raise UsageError(f"{table.place.table} has not read {name} as it is now", hint=hint)

    def _require_loaded(self, unique_id: str, table: _Table, hint: str) -> None:
        from sqlmesh_like.run.seeds import is_loaded

        loaded = self.own.loaded
        seed = next(each for each in loaded.rendered.seeds if each.unique_id == unique_id)
        if not is_loaded(loaded.read_seed(seed), table.state):
            raise UsageError(
                f"the file of {table.place.table} has changed since", hint=hint.replace("run -e", "build -e")
            )

    def _has_moved(self, model: RenderedModel, record: TableRecord, below: str) -> bool:
        """Whether an input has rows that a table has not read."""
        state, reads = self.tables[below].state, self.own.reads
        if record.frontier.get(below) == state.frontier:
            return False
        from sqlmesh_like.plan.model_plan import input_version  # it has other commits: they may have written nothing

        readers = (*reads.views_below(model), model)
        ref = next(ref for reader in readers for ref in reader.inputs if ref.unique_id == below)
        return input_version(ref, state, record, self.own.catalog.history, awaits=False).has_moved


def _step(unique_id: str, table: _Table) -> PromotionStep:
    way: Literal["link", "move"] = "move" if newer_commits(table.production, table.own) is None else "link"
    name, savepointed = str(table.place.table), table.production.savepointed
    if way == "move" and savepointed:
        hint = f"`sml savepoint delete {name} {savepointed[-1]}` if it is not needed"
        raise UsageError(f"{name} has a savepoint, which a new table would not have", hint=hint)
    return PromotionStep(unique_id, name, table.state.frontier or "", way)
