"""The lake that an operation works on: history, catalog, planner and, where needed, Spark. Owns wiring them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from sqlmesh_like.app.lakes.local_first_engine import LocalFirstEngine
from sqlmesh_like.app.lakes.spark_session import start_spark
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.errors import NodeError, UsageError
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.plan.catalog import Catalog, TablePlace, build_catalog
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.plan.planner import Planner
from sqlmesh_like.plan.router import Router
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.render.rerender import Rerenderer
from sqlmesh_like.run.lake_query import LakeQuery
from sqlmesh_like.run.ports import Engine, LakeEngine

if TYPE_CHECKING:
    from sqlmesh_like.spark.jvm.session import Session
    from sqlmesh_like.spark.spark_engine import SparkEngine


@dataclass(frozen=True)
class Lake:
    """One project's tables under one target."""

    loaded: Loaded
    catalog: Catalog
    engine: Engine

    def planner(self, now: datetime) -> Planner:
        """Return a planner at this time; the engine answers templates that query the lake."""
        loaded = self.loaded
        plain = Planner(
            loaded.rendered, self.catalog, now, loaded.invocation.full_refresh,
            has_catalog=loaded.target.catalog != "none",
        )  # fmt: skip
        models, tests = loaded.rendered.models, loaded.rendered.tests
        if not any(model.asks_lake for model in models) and not any(test.asks_lake for test in tests):
            return plain
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


def require_lake(loaded: Loaded) -> None:
    """Raises UsageError where the target is not a Spark target."""
    if loaded.target.type != "spark":
        hint = "choose a target of type spark with -t"
        raise UsageError(f"the target {loaded.target.name!r} has no lake: its type is {loaded.target.type}", hint=hint)


def open_lake(loaded: Loaded, writes: Collection[str] = (), session: Session | None = None) -> HudiLake:
    """Return the lake of a Spark target; without a `session` Spark starts when it is first used.

    With `--defer`, tables that do not exist are read where `--defer-state` or `--state` has them, except those that
    the call `writes`. Raises UsageError for other targets.
    """
    require_lake(loaded)
    history = LakeHistory()
    catalog = build_catalog(loaded.project, loaded.rendered, loaded.target, history)
    if loaded.invocation.defer:
        catalog = _deferred(loaded, catalog, writes)
    router = Router(_target(loaded, session))
    engine = LocalFirstEngine(lambda: spark_engine(loaded, history, session), router, history)
    return HudiLake(loaded, catalog, engine)


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


def _deferred(loaded: Loaded, catalog: Catalog, writes: Collection[str]) -> Catalog:
    state = loaded.deferred_state
    if state is None:
        raise UsageError("--defer needs --state PATH", hint="give the folder of the manifest.json to read tables from")
    graph = loaded.graph
    wanted = frozenset(catalog.places) if not writes else frozenset[str]().union(*map(graph.ancestors, writes))
    return catalog.deferred(wanted.difference(writes), state.locations(loaded.target.warehouse))


def spark_engine(loaded: Loaded, history: LakeHistory, session: Session | None = None) -> SparkEngine:
    """Return a target's engine: on the given session, on the one shared with earlier calls, or on its own."""
    from sqlmesh_like.spark.spark_engine import SparkEngine

    start, shared, target = partial(start_spark, loaded), loaded.spark, _target(loaded, session)
    if session is not None:
        return SparkEngine(target, history, lambda: session)
    if shared is not None:
        return SparkEngine(target, history, lambda: shared.session(start), stops_spark=False)
    return SparkEngine(target, history, start)


def _target(loaded: Loaded, session: Session | None) -> Target:
    """The target, whose work is done where a session that is given does it."""
    return loaded.target if session is None else replace(loaded.target, master=str(session.sparkContext.master))


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
