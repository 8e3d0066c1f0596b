"""A small lake for tests: a project on disk, source tables written through Hudi, runs, and rows read back.

Owns no assertion but `assert_maintained`, which is what most tests end with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

from sqlmesh_like.app.lakes.local_first_engine import LocalFirstEngine
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import IS_DELETED, KEY
from sqlmesh_like.plan.catalog import build_catalog
from sqlmesh_like.plan.graph import build_graph
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.plan.planner import Planner
from sqlmesh_like.plan.router import Router
from sqlmesh_like.project.loader import load_project
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.project.profile import load_target
from sqlmesh_like.render.rendered import RenderedModel
from sqlmesh_like.render.renderer import render_project
from sqlmesh_like.run.executor import Executor, RunPolicy
from sqlmesh_like.run.ports import RowDifference
from sqlmesh_like.run.result import ModelResult
from sqlmesh_like.run.schedule import Pace
from sqlmesh_like.spark.change_feed.change_feed import change_feed
from sqlmesh_like.spark.change_feed.cow_change_feed import CopyOnWriteFeed
from sqlmesh_like.spark.spark_engine import SparkEngine
from sqlmesh_like.spark.tables import hudi_table
from sqlmesh_like.spark.tables.hudi_table import HudiTable, Operation
from tests.spark.stored_rows import stored_rows

_SETTINGS = '[tool.sqlmesh_like]\nname = "shop"\nprofile = "lake"\n'
_PROFILE = "lake:\n  target: local\n  outputs:\n    local: {type: spark, warehouse: warehouse, schema: dws}\n"

THREADS = 3
"""Models side by side: one more than the suite's cores, for each waits in turn for its driver and for its tasks."""

Row = Sequence[object]


class Silent:
    """A listener that says nothing."""

    def started(self, number: int, total: int, model: RenderedModel) -> None: ...

    def ended(self, number: int, total: int, result: ModelResult) -> None: ...


@dataclass
class Table:
    """A source table as an ODS writer keeps it: `columns` is Spark DDL, rows are positional."""

    lake: Lake
    columns: str
    layout: HudiTable

    @property
    def uri(self) -> str:
        return self.layout.uri

    @property
    def timeline(self) -> Timeline:
        return Timeline(self.uri)

    def frontier(self) -> str:
        newest = self.timeline.frontier
        assert newest is not None
        return newest

    def upsert(self, *rows: Row, delete: Iterable[Row] = (), **options: str) -> str:
        """One commit of upserts and deletes; returns the frontier after it."""
        marked = [(*row, False) for row in rows] + [(*row, True) for row in delete]
        return self._commit(marked, "upsert", options)

    def write(self, *rows: Row, operation: Operation = "upsert", **options: str) -> str:
        return self._commit([(*row, False) for row in rows], operation, options)

    def _commit(self, rows: list[tuple[object, ...]], operation: Operation, options: Mapping[str, str]) -> str:
        frame = self.lake.spark.createDataFrame(rows, f"{self.columns}, {IS_DELETED} boolean")
        dotted = {name.replace("__", "."): value for name, value in options.items()}
        if operation == "upsert" and self._is_first_insert(frame.columns, rows):
            operation = "bulk_insert"  # of distinct rows into a new table: the same files in half the time
        hudi_table.write(frame, self.layout, operation, {"by": "ingestion"}, dotted)
        return self.frontier()

    def _is_first_insert(self, columns: Sequence[str], rows: Sequence[Row]) -> bool:
        positions = [columns.index(name) for name in self.layout.key]
        keys = {tuple(row[position] for position in positions) for row in rows}
        is_new = self.layout.table_type == "cow" and not Path(self.uri, ".hoodie").exists()
        return is_new and len(keys) == len(rows) and not any(row[-1] for row in rows)

    def feed(self) -> CopyOnWriteFeed:
        return change_feed(self.lake.spark, self.timeline)


@dataclass
class Lake:
    """A project below `root` with sources of `shop` in schema `ods`, models in schema `dws`."""

    spark: SparkSession
    root: Path
    start: Callable[[], SparkSession] | None = None
    now: datetime | None = None
    fresh: bool = True  # False: the project is there already
    delta_engine: Literal["auto", "spark"] = "auto"
    results: dict[str, ModelResult] = field(default_factory=dict)
    _sources: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.fresh:
            return
        self._put("pyproject.toml", _SETTINGS)
        self.use_engine(self.delta_engine)

    def use_engine(self, name: Literal["auto", "spark"]) -> None:
        """Which engine the next runs compute changes with."""
        self._put("profiles.yml", _PROFILE.replace("}", f", delta_engine: {name}}}"))

    def _put(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def model(self, name: str, sql: str) -> None:
        """Write or change a model; `@orders` in its SQL stands for the source table `orders`."""
        self._put(f"models/{name}.sql", re.sub(r"@(\w+)", r"{{ source('shop', '\1') }}", sql))

    def function(self, name: str, declared: str, python: str) -> None:
        """Write or change a function in Python; `declared` are the other keys of its entry."""
        self._put(f"functions/{name}.yml", f"functions: [{{name: {name}, {declared}}}]\n")
        self._put(f"functions/{name}.py", python)

    def source(
        self,
        name: str,
        columns: str,
        key: Sequence[str] = ("id",),
        partition: str | None = None,
        buckets: int = 1,
        ordering: Sequence[str] = (),
        table_type: Literal["cow", "mor"] = "cow",
    ) -> Table:
        """Declare a source table; it exists from its first commit on."""
        uri = str(self.root / "warehouse" / "ods" / name)
        self.declare(name)
        return Table(self, columns, HudiTable(uri, name, tuple(key), partition, tuple(ordering), table_type, buckets))

    def declare(self, name: str, location: str | None = None) -> None:
        self._sources[name] = f"{{name: {name}}}" if location is None else f"{{name: {name}, location: '{location}'}}"
        listed = ", ".join(self._sources.values())
        self._put("models/sources.yml", f"version: 2\nsources: [{{name: shop, schema: ods, tables: [{listed}]}}]\n")

    def planner(self, *, full_refresh: bool = False) -> Planner:
        return self._loaded(full_refresh)[0]

    def run(
        self, *selected: str, threads: int = THREADS, fail_fast: bool = False, full_refresh: bool = False
    ) -> dict[str, ModelResult]:
        """Run models (default: all) and return their results by name."""
        planner, executor = self._loaded(full_refresh, threads, fail_fast)
        names = [m.unique_id for m in planner.rendered.models if not selected or m.name in selected]
        self.results = {result.model.name: result for result in executor.run(names).results}
        return self.results

    def run_well(self, *selected: str, threads: int = THREADS) -> dict[str, str]:
        """Run, insist on success, and return the strategy each model took."""
        results = self.run(*selected, threads=threads)
        failed = {name: result.message for name, result in results.items() if result.status not in ("success", "no-op")}
        assert not failed, failed
        return {name: str(result.strategy) for name, result in results.items()}

    def plan(self, name: str) -> PlannedModel:
        planner = self.planner()
        return planner.plan(planner.rendered.model(f"model.shop.{name}"), {})

    def verify(self, name: str) -> RowDifference:
        return self.engine().verify(self.plan(name), 10)

    def assert_maintained(self, *names: str) -> None:
        """Each model's table equals its query, recomputed in full."""
        planner, engine = self.planner(), self.engine()
        models = [m for m in planner.rendered.models if not names or m.name in names]
        with ThreadPoolExecutor(THREADS) as pool:
            mismatches = pool.map(lambda model: engine.verify(planner.plan(model, {}), 10), models)
        unequal = {model.name: one.rows for model, one in zip(models, mismatches, strict=True) if one.total}
        assert models and not unequal, unequal

    def compaction(self, uri: str, step: Literal["schedule", "run"]) -> str:
        """Schedule or run a compaction as an operator of another team would; returns its instant, or none."""
        options = "hoodie.compact.inline.max.delta.commits=1,hoodie.metadata.enable=false"
        call = f"call run_compaction(op => '{step}', path => '{uri}', options => '{options}')"
        rows = self.spark.sql(call).collect()
        return str(rows[0][0]) if rows else ""

    def engine(self) -> SparkEngine:
        functions = load_project(self.root, {}).functions
        return SparkEngine(self.target(), LakeHistory(), self.start or (lambda: self.spark), functions=functions)

    def uri(self, name: str) -> str:
        return str(self.root / "warehouse" / "dws" / name)

    def timeline(self, name: str) -> Timeline:
        return Timeline(self.uri(name))

    def commits(self, name: str) -> int:
        return len(self.timeline(name).commits)

    def rules(self, name: str) -> set[str]:
        """Rule ids of a model in the last run."""
        return {reason.rule for reason in self.results[name].reasons}

    def hudi(self, name: str) -> DataFrame:
        """A model's table as any reader of Hudi sees it, bookkeeping removed."""
        frame = self.spark.read.format("hudi").load(self.uri(name))
        return frame.drop(*[column for column in frame.columns if column.startswith(("_hoodie_", "_sml_"))])

    def rows(self, name: str) -> list[tuple[object, ...]]:
        """Rows of a model as any reader of Hudi sees them, in a stable order."""
        return sorted(stored_rows(self.spark, self.uri(name)), key=repr)

    def keys(self, name: str) -> list[str]:
        """Record keys stored in a model's table, one a row."""
        timeline = self.timeline(name)
        assert timeline.frontier is not None
        return [row[0] for row in change_feed(self.spark, timeline).current(timeline.frontier).select(KEY).collect()]

    def target(self) -> Target:
        return load_target(load_project(self.root, {}), None, None, None, {})

    def _loaded(self, full_refresh: bool, threads: int = 1, fail_fast: bool = False) -> tuple[Planner, Executor]:
        project = load_project(self.root, {})
        target = load_target(project, None, None, None, {})
        rendered = render_project(project, target)
        history = LakeHistory()
        catalog = build_catalog(project, rendered, target, history)
        planner = Planner(rendered, catalog, self.now or datetime.now(UTC), full_refresh)
        spark = SparkEngine(target, history, self.start or (lambda: self.spark), functions=project.functions)
        engine = LocalFirstEngine(lambda: spark, Router(target), history)
        graph = build_graph(project, rendered)
        return planner, Executor(planner, graph, engine, Silent(), RunPolicy(Pace(threads, fail_fast)))


def ordered(frame: DataFrame) -> list[tuple[object, ...]]:
    """Rows as tuples, sorted by their text."""
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def signed(frame: DataFrame) -> list[tuple[object, ...]]:
    """Rows of a change, netted by content: (weight, columns…); pairs that cancel out are gone."""
    names = [name for name in frame.columns if name not in (KEY, "_sml_weight")]
    netted = frame.groupBy(*names).sum("_sml_weight").where("`sum(_sml_weight)` <> 0")
    return ordered(netted.select("sum(_sml_weight)", *names))


COMPACT = {"hoodie__compact__inline": "true", "hoodie__compact__inline__max__delta__commits": "1"}
"""Options of a write to a merge-on-read table that compacts it right after."""

CLEAN_OLD_VERSIONS = {
    "hoodie__clean__automatic": "true",
    "hoodie__cleaner__policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie__cleaner__fileversions__retained": "1",
}
"""Options of a write that leaves only the newest slice of each file group."""


def archiving(keep: int) -> dict[str, str]:
    """Options of a write that cleans and leaves at least `keep` commits on the timeline."""
    return {
        "hoodie__clean__automatic": "true",
        "hoodie__clean__commits__retained": "1",
        "hoodie__archive__automatic": "true",
        "hoodie__keep__min__commits": str(keep),
        "hoodie__keep__max__commits": str(keep + 1),
    }


ORDERS = "id int, buyer int, amount decimal(12,2), city string, ym string"
