"""The plan of the next run. Owns assembling it; `plan` decides, `plan.explain` owns its JSON form."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from sqlmesh_like.app.lakes.lake import Lake, clock, hudi_options
from sqlmesh_like.app.lakes.release_lake import environment_tables, newest_lake
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.preflight import fixture_schemas
from sqlmesh_like.classify.rules import Reason
from sqlmesh_like.classify.strategy import Strategy
from sqlmesh_like.hudi.write_cost import write_cost_of
from sqlmesh_like.names import Schema, TableName
from sqlmesh_like.plan.catalog import Catalog
from sqlmesh_like.plan.cost import Estimate
from sqlmesh_like.plan.explain import explain_model, program_text
from sqlmesh_like.plan.model_plan import InputVersion, PlannedModel
from sqlmesh_like.plan.router import IN_PROCESS, Route, Router
from sqlmesh_like.plan.write_cost import WriteCost, describe_cost


@dataclass(frozen=True)
class ModelPlan:
    """The next run of one model: `strategy` is what its SQL allows, `next_run` what a run would do now."""

    planned: PlannedModel
    route: Route

    @property
    def unique_id(self) -> str:
        return self.planned.compiled.model.unique_id

    @property
    def table(self) -> TableName:
        return self.planned.compiled.model.table

    @property
    def strategy(self) -> Strategy:
        return self.planned.compiled.classification.strategy

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons for this strategy, with locations in the model's file."""
        return self.planned.compiled.advised.reasons

    @property
    def next_run(self) -> Strategy:
        return self.planned.strategy

    @property
    def next_run_reasons(self) -> tuple[Reason, ...]:
        return self.planned.reasons

    @property
    def inputs(self) -> tuple[InputVersion, ...]:
        """Its inputs, from the commit that it has consumed to the newest one, with the change in between."""
        return self.planned.inputs

    @property
    def estimate(self) -> Estimate | None:
        """Rows, files and bytes of the next run; None where they cannot be estimated, or there is nothing to do."""
        return self.planned.estimate

    @property
    def program(self) -> str:
        """The SQL that applies a change, and that of a full build."""
        return program_text(self.planned.compiled.table)

    def to_dict(self) -> dict[str, object]:
        """Return an entry of `models` as in `sml explain --output json`."""
        route = self.route
        engines = {"scans": route.scans, "computes": route.engine, "commits": route.commits}
        return {**explain_model(self.planned), "engine": route.engine, "engine_because": route.because, **engines}


@dataclass(frozen=True)
class Plan:
    """Plans in the order of the graph; each assumes that the ones before it have run.

    `writes`: how much the newest commits of the tables and their inputs rewrote for the rows that changed.
    """

    models: tuple[ModelPlan, ...]
    writes: tuple[WriteCost, ...]
    catalog: Catalog

    def to_dict(self) -> dict[str, object]:
        """Return the content of `sml explain --output json`."""
        return {
            "models": [model.to_dict() for model in self.models],
            "writes": [describe_cost(cost) for cost in self.writes],
        }


def plan_models(loaded: Loaded) -> Plan:
    """Plan the selected models that have a table; in an environment, those that it has. Starts no JVM.

    Raises UsageError where the target has no lake, or there is no such environment.
    """
    selected = environment_tables(loaded, [node.unique_id for node in loaded.select_nodes("model")])
    lake = newest_lake(loaded, selected)
    with lake.catalog.keep([*selected, *loaded.graph.above(selected)]):
        plans = _plans(lake, selected)
        router = Router(loaded.target)
        routed = tuple(ModelPlan(planned, router.route(planned)) for planned in plans)
        # The write costs of the tables of these plans and of their inputs, where they are known.
        read = (item.ref.unique_id for plan in plans for item in plan.inputs)
        named = dict.fromkeys([*read, *(plan.compiled.model.unique_id for plan in plans)])
        tables = [unique_id for unique_id in named if unique_id in lake.catalog.places]
        known = (write_cost_of(lake.catalog, unique_id, hudi_options(lake.loaded, unique_id)) for unique_id in tables)
        costs = [cost for cost in known if cost is not None]
        return Plan(routed, tuple(costs), lake.catalog)


def plan_in_memory(loaded: Loaded) -> Plan:
    """Do the same for a `duckdb` target, where no table exists before a run: every model is built in full."""
    from sqlmesh_like.app.lakes.duck_lake import lake_without_rows  # a plan for a lake need not import DuckDB

    selected = [node.unique_id for node in loaded.select_nodes("model")]
    lake = lake_without_rows(loaded, clock(None))
    return Plan(tuple(ModelPlan(planned, IN_PROCESS) for planned in _plans(lake, selected)), (), lake.catalog)


def _plans(lake: Lake, selected: Collection[str]) -> list[PlannedModel]:
    planner, loaded = lake.planner(clock(None)), lake.loaded
    above = loaded.graph.above(selected)
    seeds = [seed for seed in loaded.rendered.seeds if seed.unique_id in above]
    missing = [seed for seed in seeds if not lake.catalog.state(seed.unique_id).exists]
    fixtures = fixture_schemas(loaded, above) if loaded.target.type == "duckdb" else {}
    # Of seeds that are not loaded yet, and of fixtures, so that their readers can be planned.
    foreseen: dict[str, Schema] = {
        **{i: schema for i, schema in fixtures.items() if schema},
        **{seed.unique_id: loaded.read_seed(seed).schema for seed in missing},
    }
    planner = replace(planner, foreseen=foreseen).with_measured_jobs(selected)
    models = [planner.rendered.model(unique_id) for unique_id in selected]
    return planner.plan_ahead(model for model in models if model.unique_id in planner.catalog.places)
