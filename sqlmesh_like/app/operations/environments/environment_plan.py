"""The next run in an environment. Owns assembling it from what the environment would have; changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from sqlmesh_like.app.lakes.environment_lake import environment_folder, in_environment, require_own, require_settled
from sqlmesh_like.app.lakes.lake import HudiLake, clock
from sqlmesh_like.app.lakes.release_lake import production_lake
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.operations.environments.members import Members, plan_members
from sqlmesh_like.app.operations.planning import ModelPlan
from sqlmesh_like.environments.environment import Environment
from sqlmesh_like.names import TableName, is_local
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.plan.history import Volume
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.plan.router import Router
from sqlmesh_like.releases.release import created_now

Origin = Literal["cloned", "new", "kept"]
"""Of a table of an environment: it is about to be cloned, production has none, or the environment has it already."""


@dataclass(frozen=True)
class PlannedBytes:
    """What a run would read and rewrite of a table, and what building it anew would read.

    `is_bound`: at most so much, because how much differs is known only once it has been computed.
    """

    read: int
    rewritten: int
    rebuild: int
    is_bound: bool


@dataclass(frozen=True)
class PlannedTable:
    """A table that a run would make or update; `base`: the commit of production that it is, or would be, cloned at.

    `shared`: what its clone has of production's table; `is_copied`: as copies that the store makes, not as links.
    """

    unique_id: str
    table: TableName
    origin: Origin
    base: str | None
    shared: Volume
    is_copied: bool
    plan: ModelPlan
    cost: PlannedBytes

    def to_dict(self) -> dict[str, object]:
        """Return an entry of `tables` as in `sml plan --output json`."""
        return {
            "unique_id": self.unique_id, "table": str(self.table), "origin": self.origin, "base": self.base,
            "shared_files": self.shared.files, "shared_bytes": self.shared.bytes,
            "copied": self.is_copied,
            "cost": asdict(self.cost), "plan": self.plan.to_dict(),
        }  # fmt: skip


@dataclass(frozen=True)
class EnvironmentPlan:
    """What a run in an environment would do, inputs first. `read`: selected tables that it reads from production.

    `leaving`: tables that it has, and that are production's again, or gone from the project.
    """

    name: str
    tables: tuple[PlannedTable, ...]
    read: tuple[TableName, ...]
    leaving: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """Return the content of `sml plan --output json`."""
        return {
            "environment": self.name,
            "tables": [each.to_dict() for each in self.tables],
            "read_from_production": [str(table) for table in self.read],
            "leaving": list(self.leaving),
        }


def plan_environment(loaded: Loaded, name: str) -> EnvironmentPlan:
    """Plan a run of the selected models in an environment, which need not exist. Starts no JVM.

    Raises UsageError where there can be none, or where it is of another project.
    """
    place, production = environment_folder(loaded, name), production_lake(loaded)
    known = place.read() or Environment(name, loaded.project.name, loaded.target.schema, created_now())
    require_own(loaded, known)
    require_settled(known)
    snapshots = {model.unique_id for model in loaded.rendered.models if model.config.snapshot is not None}
    selected = [node.unique_id for node in loaded.select_nodes("model") if node.unique_id not in snapshots]
    with production.catalog.keep(loaded.graph.above(selected)):
        members = plan_members(production, known, selected, {}, clock(None))
        return _EnvironmentPlanner(production, members).plan(selected)


class _EnvironmentPlanner:
    def __init__(self, production: HudiLake, members: Members) -> None:
        self._production, self._members = production, members
        lake = in_environment(production, members.environment)
        places = {**lake.catalog.places, **{name: self._before(lake, name) for name in members.made}}
        self._lake = replace(lake, catalog=replace(lake.catalog, places=places))
        self._planner = self._lake.planner(clock(None)).with_measured_jobs(members.environment.tables)
        self._router = Router(production.loaded.target)

    def plan(self, selected: Sequence[str]) -> EnvironmentPlan:
        catalog, tables = self._production.catalog, self._members.environment.tables
        moving: set[str] = set()
        planned: list[PlannedTable] = []
        for unique_id in selected:
            if unique_id in tables:
                each = self._plan_table(unique_id, moving)
                planned.append(each)
                if each.plan.next_run != "no_op":
                    moving.add(unique_id)
        read = [catalog.places[name].table for name in selected if name in catalog.places and name not in tables]
        return EnvironmentPlan(self._members.environment.name, tuple(planned), tuple(read), self._members.dropped)

    def _before(self, lake: HudiLake, unique_id: str) -> TablePlace:
        """Where a table is planned that is about to be made: production's, which its clone equals, or nowhere."""
        if self._members.environment.tables[unique_id].base is not None:
            return self._production.catalog.places[unique_id]
        place = lake.catalog.places[unique_id]
        return replace(place, uri=f"{place.uri}__sml_clone")

    def _plan_table(self, unique_id: str, moving: set[str]) -> PlannedTable:
        base = self._members.environment.tables[unique_id].base
        place = self._production.catalog.places[unique_id]
        is_made = unique_id in self._members.made
        origin: Origin = "kept" if not is_made else "cloned" if base is not None else "new"
        shared = self._production.catalog.history.volume(place.uri, base) if base is not None else Volume()
        planned = self._planner.plan(self._planner.rendered.model(place.unique_id), {}, moving)
        plan = ModelPlan(planned, self._router.route(planned))
        return PlannedTable(
            unique_id, place.table, origin, base, shared, not is_local(place.uri), plan, self._cost(planned)
        )

    def _cost(self, planned: PlannedModel) -> PlannedBytes:
        history = self._lake.catalog.history
        states = (item.state for item in planned.inputs if item.state.kind in ("cow", "mor"))
        everything = sum(history.volume(state.uri, state.frontier).bytes for state in states if state.frontier)
        target = planned.target
        stored = history.volume(target.uri, target.frontier).bytes if target.frontier is not None else 0
        if planned.strategy == "no_op":
            return PlannedBytes(0, 0, everything, is_bound=False)
        if planned.estimate is not None and planned.edit is None:
            work = planned.estimate.work(planned.strategy)
            return PlannedBytes(work.read, work.rewritten, everything, is_bound=False)
        is_of_stored = planned.edit is not None and not planned.edit.inputs and not planned.follows
        read = stored if is_of_stored else everything + stored
        return PlannedBytes(read, stored, everything, is_bound=True)
