"""Whether an environment may be made production, and by which steps. Owns what is refused; changes nothing.

What interrupted calls left of production's tables is put right first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from sqlmesh_like.app.lakes.environment_lake import in_environment
from sqlmesh_like.app.lakes.lake import HudiLake, clock
from sqlmesh_like.app.operations.environments.environment_list import MovedTable, moved_tables
from sqlmesh_like.app.operations.environments.promotion_release import require_tested
from sqlmesh_like.environments.environment import Environment, PromotionStep
from sqlmesh_like.errors import UsageError
from sqlmesh_like.hudi.cloning.fast_forward import newer_commits
from sqlmesh_like.hudi.recovery.table_swap import has_remains, recover
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.instant import settled_timeline
from sqlmesh_like.names import NodeId, is_local
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.plan.edits.recorded_query import is_table_of
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.plan.model_plan import input_version
from sqlmesh_like.plan.planner import Planner
from sqlmesh_like.render.rendered import InputRef
from sqlmesh_like.run.seeds import is_loaded


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


def planned_steps(lake: HudiLake, environment: Environment) -> tuple[PromotionStep, ...]:
    """Return the steps of promoting an environment, inputs first; `lake`: production at its newest commits.

    Raises UsageError where it is not up to date with its project, or has nothing; MovedError where production moved on.
    """
    name, catalog = environment.name, lake.catalog
    if not environment.tables:
        hint = "an environment has tables where the project differs from production"
        raise UsageError(f"the environment {name!r} has no tables: there is nothing to promote", hint=hint)
    for unique_id, entry in environment.tables.items():
        if unique_id not in catalog.places or str(catalog.places[unique_id].table) != entry.table:
            hint = f"`sml run -e {name}` removes it from the environment"
            raise UsageError(f"the project no longer has {entry.table}, which the environment has", hint=hint)
        _settle(catalog.places[unique_id])
    if moved := moved_tables(lake, environment):
        raise MovedError(name, moved)
    own = in_environment(lake, environment)
    states = own.catalog.states(environment.tables)
    planner = own.planner(clock(None))
    for unique_id, state in states.items():
        _require_current(own, planner, unique_id, state, states, name)
    steps = tuple(_step(lake, states, unique_id) for unique_id in _ordered(lake, environment))
    require_tested(lake, environment, states)
    return steps


def _settle(place: TablePlace) -> None:
    """Remove what interrupted calls left of production's table. Raises UsageError where only Hudi's writer may."""
    if is_local(place.uri) and has_remains(place.uri):
        recover(place.uri)
    if unfinished := settled_timeline(place.uri).unfinished:
        hint = f"a run of production removes it: sml run -s {place.unique_id.short_name}"
        raise UsageError(f"{place.table} has the commit {unfinished[0]}, which was interrupted", hint=hint)


def _ordered(lake: HudiLake, environment: Environment) -> tuple[str, ...]:
    return lake.loaded.graph.order(environment.tables)


def _require_current(
    own: HudiLake, planner: Planner, unique_id: str, state: TableState, states: Mapping[str, TableState], name: str
) -> None:
    """Raises UsageError where a table is not of the project's text, or has not read what others of these hold."""
    loaded, hint = own.loaded, f"run it again: sml run -e {name}"
    table, record = own.catalog.places[unique_id].table, state.record
    if record is None or Timeline(state.uri).unfinished:
        raise UsageError(f"{table} was not completed in the environment", hint=hint)
    seed = next((each for each in loaded.rendered.seeds if each.unique_id == unique_id), None)
    if seed is not None:
        if not is_loaded(loaded.read_seed(seed), state):
            raise UsageError(f"the file of {table} has changed since", hint=hint.replace("run -e", "build -e"))
        return
    model = planner.rendered.model(NodeId.parse(unique_id))
    inputs = own.catalog.states(planner.inputs(model))
    if not model.asks_lake and not is_table_of(record, planner.compile(model, inputs)):
        raise UsageError(f"{table} was edited since", hint=hint)
    refs: dict[str, InputRef] = {
        ref.unique_id: ref for reader in (*planner.views_below(model), model) for ref in reader.inputs
    }
    for below in inputs.keys() & states.keys():
        if input_version(refs[below], states[below], record, own.catalog.history, awaits=False).has_moved:
            raise UsageError(f"{table} has not read {own.catalog.places[below].table} as it is now", hint=hint)


def _step(lake: HudiLake, states: Mapping[str, TableState], unique_id: str) -> PromotionStep:
    place = lake.catalog.places[unique_id]
    table, clone = Timeline(place.uri), Timeline(states[unique_id].uri)
    way: Literal["link", "move"] = "move" if newer_commits(table, clone) is None else "link"
    if way == "move" and table.savepointed:
        hint = f"`sml savepoint delete {place.table} {table.savepointed[-1]}` if it is not needed"
        raise UsageError(f"{place.table} has a savepoint, which a new table would not have", hint=hint)
    return PromotionStep(unique_id, str(place.table), states[unique_id].frontier or "", way)
