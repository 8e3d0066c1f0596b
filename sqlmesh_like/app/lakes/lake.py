"""The lake that an operation works on: history, catalog, planner and, where needed, Spark. Owns wiring them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from sqlmesh_like.app.lakes.lake_tables import LakeTables, open_tables
from sqlmesh_like.app.lakes.local_first_engine import LocalFirstEngine
from sqlmesh_like.app.lakes.spark_session import start_spark
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.query_record import read_queries
from sqlmesh_like.errors import NodeError, UsageError
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.plan.history import History, TableState
from sqlmesh_like.plan.planner import Planner
from sqlmesh_like.plan.router import Router
from sqlmesh_like.plan.slices.sliced_build import SliceWish
from sqlmesh_like.run.ports import Engine, LakeEngine

if TYPE_CHECKING:
    from sqlmesh_like.plan.cluster.weighing import Cluster
    from sqlmesh_like.project.nodes import Target
    from sqlmesh_like.spark.jvm.session import Session
    from sqlmesh_like.spark.spark_engine import SparkEngine


@dataclass(frozen=True)
class Lake(LakeTables):
    """One project's tables under one target, with the engine that computes and reads them."""

    engine: Engine

    def planner(self, now: datetime) -> Planner:
        """Return a planner at this time; the engine answers templates that query the lake."""
        loaded = self.loaded
        plain = Planner(
            loaded.rendered, self.catalog, now, loaded.invocation.full_refresh,
            has_catalog=loaded.target.catalog != "none",
            slices=SliceWish() if loaded.target.type == "spark" else None,
            queries=read_queries(loaded.entry_path) if loaded.target.type == "spark" else None,
            cluster=_cluster(loaded.target),
        )  # fmt: skip
        models, tests = loaded.rendered.models, loaded.rendered.tests
        if not any(model.asks_lake for model in models) and not any(test.asks_lake for test in tests):
            return plain
        from sqlmesh_like.render.rerender import Rerenderer
        from sqlmesh_like.run.lake_query import LakeQuery

        renderer = loaded.renderer(now)
        return replace(
            plain,
            rerender=Rerenderer(
                renderer,
                loaded.project,
                lambda views: LakeQuery(replace(plain, rerender=views), self.engine),
                loaded.graph_of_templates,
            ),
        )


@dataclass(frozen=True)
class HudiLake(Lake):
    """The lake of a Spark target: its tables outlive the call."""

    engine: LakeEngine


def open_lake(loaded: Loaded, writes: Collection[str] = (), session: Callable[[], Session] | None = None) -> HudiLake:
    """Return the lake of a Spark target, its tables as `open_tables` opens them.

    Spark starts when it is first used, by `session` if that is given. Raises UsageError for other targets.
    """
    return with_engine(open_tables(loaded, writes), session)


def with_engine(tables: LakeTables, session: Callable[[], Session] | None = None) -> HudiLake:
    """Return a lake with its engine, which reads these tables."""
    loaded, history = tables.loaded, tables.catalog.history
    engine = LocalFirstEngine(lambda: spark_engine(loaded, history, session), Router(loaded.target), history)
    return HudiLake(loaded, tables.catalog, engine)


def _cluster(target: Target) -> Cluster | None:
    """What weighs strategies by their jobs; None where no executor is on another machine."""
    router = Router(target)
    if target.type != "spark" or router.shares_disk:
        return None
    from sqlmesh_like.plan.cluster.weighing import cluster_of  # what has nothing to do imports none of it

    return cluster_of(router)


def built_table(lake: Lake, name: str) -> tuple[TablePlace, TableState]:
    """Return a table and its state. Raises ProjectError for an unknown name, NodeError where it is not built."""
    place = lake.catalog.find(name)
    state = lake.catalog.state(place.unique_id)
    require_built(place, state)
    return place, state


def require_built(place: TablePlace, state: TableState) -> None:
    """Raises NodeError where a table is not built."""
    if not state.exists:
        raise NodeError(f"the table {place.table} does not exist yet", hint="run `sml ingest` or `sml run` first")


def spark_engine(loaded: Loaded, history: History, session: Callable[[], Session] | None = None) -> SparkEngine:
    """Return a target's engine: on a given session, on the one shared with earlier calls, or on its own."""
    from sqlmesh_like.spark.spark_engine import SparkEngine

    start, shared, target = partial(start_spark, loaded), loaded.spark, loaded.target
    functions = loaded.project.functions
    if session is not None:
        return SparkEngine(target, history, session, functions=functions)
    if shared is not None:
        return SparkEngine(target, history, lambda: shared.session(start), stops_spark=False, functions=functions)
    return SparkEngine(target, history, start, functions=functions)


def clock(text: str | None) -> datetime:
    """Return the run's time: `--now` (ISO 8601; UTC without a zone) or the time of the machine. Raises UsageError."""
    if text is None:
        return datetime.now(UTC)
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--now {text!r} is not an ISO 8601 time", hint="e.g. --now 2024-05-01T00:00:00Z") from None
    return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def hudi_options(loaded: Loaded, unique_id: str) -> dict[str, str]:
    """Return the Hudi options configured for a table: its own override those of the target."""
    own: dict[str, Mapping[str, str]]
    own = {table.unique_id: table.ingest.hudi for source in loaded.project.sources for table in source.tables
           if table.ingest is not None}  # fmt: skip
    own |= {model.unique_id: model.config.hudi for model in loaded.rendered.models}
    return {key: str(value) for key, value in {**loaded.target.hudi, **own.get(unique_id, {})}.items()}
