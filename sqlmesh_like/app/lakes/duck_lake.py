"""The tables of a `duckdb` target: sources from fixture files, everything else computed as needed. Owns wiring them.

Nothing outlives the process, so the tables that a command reads are built first, whether they are selected or not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlmesh_like.app.lakes.lake import Lake
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.preflight import seeds_of_sources
from sqlmesh_like.duckdb.duck_engine import DuckEngine
from sqlmesh_like.duckdb.duck_history import DuckHistory
from sqlmesh_like.errors import NodeError, SqlError, UsageError
from sqlmesh_like.names import Schema
from sqlmesh_like.plan.catalog import build_catalog
from sqlmesh_like.project.nodes import SourceTable
from sqlmesh_like.render.rendered import RenderedModel, RenderedSeed, RenderedTest
from sqlmesh_like.run.executor import Executor, RunPolicy
from sqlmesh_like.run.lake_query import named_tables
from sqlmesh_like.run.result import NodeResult, RenderedNode
from sqlmesh_like.run.schedule import Pace
from sqlmesh_like.run.seeds import SeedTable
from sqlmesh_like.run.source_fixtures import FixtureTable, expected_path, model_fixture, source_fixture, unused_fixtures


@dataclass(frozen=True)
class DuckLake(Lake):
    """The lake of a `duckdb` target: tables in the memory of this process."""

    engine: DuckEngine


def open_duck_lake(loaded: Loaded, selected: Collection[str], now: datetime) -> DuckLake:
    """Return a lake in memory with the fixtures of all sources above the selected nodes.

    A source without a fixture stays without a table: see `without_rows`. Raises ProjectError where a fixture has a
    value that does not fit its column's type.
    """
    lake = lake_without_rows(loaded, now)
    _load_fixtures(lake, selected)
    return lake


def without_rows(loaded: Loaded, selected: Collection[str]) -> dict[str, SqlError]:
    """Return errors of the nodes at or above the selected ones that read a source without rows, by unique id.

    A node whose template queries the lake gets none: it may handle a missing source, which only its run shows.
    """
    above = loaded.graph.above(selected)
    seeds = seeds_of_sources(loaded)
    unreadable = loaded.read_seeds([seed.unique_id for seed in seeds.values()])[1]
    broken = {i: unreadable[seed.unique_id] for i, seed in seeds.items() if seed.unique_id in unreadable}
    missing = {table.unique_id: table for table, fixture in _fixtures(loaded, above) if fixture is None}
    every: list[RenderedModel | RenderedTest] = [*loaded.rendered.models, *loaded.rendered.tests]
    nodes = [node for node in every if node.unique_id in above]
    errors: dict[str, SqlError] = {}
    for node in nodes if missing else ():
        unread = [missing[ref.unique_id] for ref in node.inputs if ref.unique_id in missing]
        if unread and not node.asks_lake:
            named = named_tables(node.sql)  # a source that is named in a comment is an edge of the graph only
            unread = [t for t in unread if (t.table.schema.lower(), t.table.identifier.lower()) in named]
        if unread and not node.asks_lake:
            first = next((broken[table.unique_id] for table in unread if table.unique_id in broken), None)
            errors[node.unique_id] = first or _without_rows(loaded, unread)
    return errors


def compute_lake(loaded: Loaded, read: Callable[[Lake], Collection[str]], now: datetime) -> DuckLake:
    """Return a lake in memory with the nodes that `read` returns (unique ids) and all above them.

    `read` is called with the lake before it has rows. Raises ProjectError as `open_duck_lake` does and where a source
    has no rows, NodeError where a table cannot be computed.
    """
    lake = lake_without_rows(loaded, now)
    wanted = loaded.graph.above(read(lake))
    if missing := [table for table, fixture in _fixtures(loaded, wanted) if fixture is None]:
        raise _without_rows(loaded, missing)
    _load_fixtures(lake, wanted, every=True)  # the query itself may have a template that queries the lake
    seeds: dict[str, SeedTable] = {
        s.unique_id: loaded.read_seed(s) for s in loaded.rendered.seeds if s.unique_id in wanted
    }
    build_tables(lake, wanted, seeds, now)
    return lake


def lake_without_rows(loaded: Loaded, now: datetime) -> DuckLake:
    if loaded.invocation.defer:
        raise UsageError(f"the target {loaded.target.name!r} computes all it reads: --defer has no meaning there")
    sources = [(t.source_name, t.name) for source in loaded.project.sources for t in source.tables]
    for path, hint in unused_fixtures(loaded.project.root, sources, [model.name for model in loaded.rendered.models]):
        said = f" ({hint})" if hint else ""
        loaded.reporter.notify(f"warning: {path} is not the fixture of any source or model{said}", "warn")
    history = DuckHistory()
    catalog = build_catalog(loaded.project, loaded.rendered, loaded.target, history)

    def stand_in(model: RenderedModel, known: Schema | None) -> FixtureTable | None:
        return model_fixture(loaded.project.root, model, known)

    warned: set[str] = set()

    def warn(doubt: str) -> None:
        if doubt not in warned:
            warned.add(doubt)
            loaded.reporter.notify(f"warning: {doubt}", "warn")

    warns = loaded.target.on_unproven == "warn"
    return DuckLake(loaded, catalog, DuckEngine(history, stand_in, now, warn=warn if warns else None))


def _load_fixtures(lake: DuckLake, selected: Collection[str], *, every: bool = False) -> None:
    """Load the sources above the selected nodes; all sources if a wanted node's template queries the lake.

    `every`: load all sources if the template of any node of the project does.
    """
    rendered, wanted = lake.loaded.rendered, lake.loaded.graph.above(selected)
    nodes: list[RenderedModel | RenderedTest] = [*rendered.models, *rendered.tests]
    if any(node.asks_lake and (every or node.unique_id in wanted) for node in nodes):
        wanted |= {table.unique_id for source in lake.loaded.project.sources for table in source.tables}
    for table, fixture in _fixtures(lake.loaded, wanted):
        if fixture is not None:
            lake.engine.put(table.table, lake.catalog.places[table.unique_id].uri, fixture.schema, fixture.rows)


def build_tables(lake: Lake, wanted: Collection[str], seeds: Mapping[str, SeedTable], now: datetime) -> None:
    """Build these nodes except tests, without reporting progress. Raises NodeError with the first that fails."""
    graph = lake.loaded.graph
    nodes = [unique_id for unique_id in wanted if graph.nodes[unique_id].resource_type not in ("test", "unit_test")]
    policy = RunPolicy(Pace(lake.loaded.target.threads, fail_fast=True))
    executor = Executor(lake.planner(now), graph, lake.engine, _SilentListener(), policy, seeds)
    for result in executor.run(nodes).results:
        if result.status == "error":
            raise NodeError(f"{result.node.name}, which is read, cannot be built: {result.message}")
        if result.status == "warn":
            lake.loaded.reporter.notify(f"warning: {result.node.name}, which is read: {result.message}", "warn")


def _fixtures(loaded: Loaded, wanted: Collection[str]) -> list[tuple[SourceTable, FixtureTable | None]]:
    """Return the wanted sources, each with its rows, None where it has neither fixture nor seed."""
    tables = [t for source in loaded.project.sources for t in source.tables if t.unique_id in wanted]
    seeds = seeds_of_sources(loaded)
    return [
        (table, source_fixture(loaded.project.root, table) or _seed_fixture(loaded, seeds.get(table.unique_id)))
        for table in tables
    ]


def _without_rows(loaded: Loaded, missing: Sequence[SourceTable]) -> SqlError:
    paths = ", ".join(expected_path(table) for table in missing)
    message = f"the target {loaded.target.name!r} has no rows for source {missing[0].source_name}.{missing[0].name}"
    hint = f"make {paths} (or .yml, a list of mappings); a header alone is an empty table"
    return SqlError(message, location=missing[0].declared_at, hint=hint)


def _seed_fixture(loaded: Loaded, seed: RenderedSeed | None) -> FixtureTable | None:
    """Return the rows of a source that is a seed's table; None without a seed, and where it cannot be read."""
    if seed is None:
        return None
    table = loaded.read_seeds([seed.unique_id])[0].get(seed.unique_id)
    return None if table is None else FixtureTable(table.schema, table.naive_rows(), seed.path)


class _SilentListener:
    """Reports nothing: a table that is built only to be read is not a step of the command."""

    def started(self, number: int, total: int, node: RenderedNode) -> None:
        """Do nothing."""

    def ended(self, number: int, total: int, result: NodeResult) -> None:
        """Do nothing."""
