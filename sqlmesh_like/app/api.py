"""The Python API: a project whose methods do what the commands do, and return what these print.

>>> from sqlmesh_like import Project  # doctest: +SKIP
>>> with Project.load(".") as project:  # doctest: +SKIP
...     project.run(select="dws")
...     project.table("dws.user_agg").to_arrow()

Nothing is printed: warnings and progress go to the logger `sqlmesh_like`. What is wrong with a call or a project is
raised, an error of `sqlmesh_like.errors`; what becomes of a node is in the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.lakes.lake import clock
from sqlmesh_like.app.loading.loaded import Loaded, load
from sqlmesh_like.app.log_listener import FreshnessLog, LogListener, TableLog
from sqlmesh_like.app.operations.adhoc_query import query_rows
from sqlmesh_like.app.operations.freshness import source_freshness
from sqlmesh_like.app.operations.ingestion import IngestRequest, ingest
from sqlmesh_like.app.operations.maintenance import MaintenanceResult, maintain
from sqlmesh_like.app.operations.planning import ModelPlan, Plan, plan_in_memory, plan_models
from sqlmesh_like.app.operations.publishing import Publication, publish_tables
from sqlmesh_like.app.operations.run_nodes import RunRequest, run_nodes
from sqlmesh_like.app.operations.table_rows import state_of_table, table_arrow
from sqlmesh_like.app.operations.verification import Verification, verify_tables
from sqlmesh_like.app.reporter import LogReporter
from sqlmesh_like.app.shared_spark import SharedSpark
from sqlmesh_like.artifacts.sources import FreshnessResult
from sqlmesh_like.cdc.report import IngestReport
from sqlmesh_like.errors import UsageError
from sqlmesh_like.names import Schema, visible
from sqlmesh_like.plan.graph import Node
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.run.result import RunResult

if TYPE_CHECKING:
    import pyarrow

    from sqlmesh_like.spark.jvm.session import Session

__all__ = (
    "FreshnessResult", "MaintenanceResult", "ModelPlan", "Plan", "Project", "Publication", "Table", "Verification",
)  # fmt: skip

Words = str | Sequence[str]
"""One word of a selection, such as `+user_agg` or `tag:daily`, or several: what any of them selects."""


@dataclass(frozen=True)
class _Choice:
    """What `Project.load` was given, for each of its calls."""

    root: Path
    target: str | None
    profile: str | None
    profiles_dir: Path | None
    vars: str
    threads: int | None

    def invocation(self, select: Words, exclude: Words, full_refresh: bool, fail_fast: bool) -> Invocation:
        return Invocation(
            select=_words(select), exclude=_words(exclude), target=self.target, profile=self.profile,
            profiles_dir=self.profiles_dir, project_dir=self.root, vars=self.vars, threads=self.threads,
            full_refresh=full_refresh, fail_fast=fail_fast,
        )  # fmt: skip


class Project:
    """A project under one of its targets. Made by `Project.load`.

    Each call reads the files as they are then, as a command does; what has not changed comes from the cache. On a
    target of type `spark` the calls share one Spark, which starts with the first call that needs it and ends with
    `close`, or at the end of a `with`. A call may be made from any thread, one at a time.
    """

    def __init__(self, choice: _Choice, spark: SharedSpark) -> None:
        self._choice = choice
        self._spark = spark
        self._reporter = LogReporter()
        self._is_closed = False

    @classmethod
    def load(
        cls,
        path: str | Path = ".",
        target: str | None = None,
        profiles_dir: str | Path | None = None,
        vars: Mapping[str, object] | None = None,
        *,
        profile: str | None = None,
        threads: int | None = None,
        spark: Session | None = None,
    ) -> Self:
        """The project that this folder is in, read once to find what is wrong with it.

        `spark` is a session that is there, such as that of a notebook: it is used as it is, and never stopped. Raises
        ProjectError with file, line and column, or UsageError.
        """
        folder = None if profiles_dir is None else Path(profiles_dir)
        chosen = _Choice(Path(path).resolve(), target, profile, folder, _yaml(vars or {}), threads)
        project = cls(chosen, SharedSpark(spark))
        project._load()
        return project

    @property
    def name(self) -> str:
        return self._load().project.name

    @property
    def target(self) -> Target:
        """The target that is used, as profiles.yml declares it."""
        return self._load().target

    def ls(self, select: Words = (), exclude: Words = (), *, resource_type: Words = ()) -> tuple[Node, ...]:
        """The selected nodes of these types (none given: of all), inputs first, as `sml ls`.

        Raises SelectionError where nothing is selected.
        """
        return self._load(select, exclude).selected(*_words(resource_type))

    def plan(self, select: Words = (), exclude: Words = (), *, full_refresh: bool = False) -> Plan:
        """What a run of the selected models would do and why; nothing is changed and no JVM starts.

        On a `duckdb` target nothing is there before a run, so that every model is built in full.
        """
        loaded = self._load(select, exclude, full_refresh=full_refresh)
        return plan_models(loaded) if loaded.target.type == "spark" else plan_in_memory(loaded)

    def run(
        self,
        select: Words = (),
        exclude: Words = (),
        *,
        full_refresh: bool = False,
        fail_fast: bool = False,
        now: datetime | None = None,
    ) -> RunResult:
        """Update the selected models with work that is proportional to the change, as `sml run`.

        `now` is the run's clock (without a zone: UTC). `run_results.json` and `manifest.json` are written. A model
        that fails is in the result; `result.ok` tells whether there is one.
        """
        return self._run("run", select, exclude, full_refresh, fail_fast, now)

    def seed(self, select: Words = (), exclude: Words = (), *, full_refresh: bool = False) -> RunResult:
        """Load the selected seeds whose file changed, as `sml seed`."""
        return self._run("seed", select, exclude, full_refresh)

    def snapshot(self, select: Words = (), exclude: Words = (), *, now: datetime | None = None) -> RunResult:
        """Keep the versions of the rows of the selected snapshots, as `sml snapshot`."""
        return self._run("snapshot", select, exclude, now=now)

    def test(
        self, select: Words = (), exclude: Words = (), *, store_failures: bool = False, engine: str = "duckdb"
    ) -> RunResult:
        """Run the selected data tests and unit tests, as `sml test`; `engine` is that of unit tests."""
        return self._run("test", select, exclude, store_failures=store_failures, units_on=engine)

    def build(
        self,
        select: Words = (),
        exclude: Words = (),
        *,
        full_refresh: bool = False,
        fail_fast: bool = False,
        now: datetime | None = None,
        store_failures: bool = False,
    ) -> RunResult:
        """Seeds, models, snapshots and tests in the order of the graph, as `sml build`."""
        return self._run("build", select, exclude, full_refresh, fail_fast, now, store_failures=store_failures)

    def ingest(self, sources: Words = ()) -> tuple[IngestReport, ...]:
        """Ingest the pending events of these sources (none given: of all), a report each, as `sml ingest`."""
        selected = [word if ":" in word else f"source:{word}" for word in _words(sources)]
        return tuple(ingest(self._load(selected), IngestRequest(), LogListener()))

    def verify(self, select: Words = (), exclude: Words = (), *, limit: int = 20) -> tuple[Verification, ...]:
        """Compare the selected tables with a full recompute, as `sml verify`; `limit` differing rows of each are kept.

        Raises UsageError on a `duckdb` target: its tables are built anew in each call.
        """
        log = LogListener()
        return verify_tables(self._load(select, exclude), limit, log.verified)

    def publish(
        self, select: Words = (), exclude: Words = (), *, full_refresh: bool = False
    ) -> tuple[Publication, ...]:
        """Send the changed rows of the selected published models to their destinations, as `sml publish`.

        A table that could not be sent is in the result with its `error`. Raises SelectionError where no selected
        model is published, UsageError where the target has no lake.
        """
        return publish_tables(self._load(select, exclude, full_refresh=full_refresh), TableLog())

    def maintain(
        self, select: Words = (), exclude: Words = (), *, rebucket: bool = False
    ) -> tuple[MaintenanceResult, ...]:
        """Compact the selected tables and remove history that nothing needs, as `sml maintain`.

        A table that could not be served is in the result with its `error`. Raises UsageError where the target has no
        lake, RetryableError where another process is writing.
        """
        return maintain(self._load(select, exclude), TableLog(), rebucket=rebucket)

    def freshness(self, select: Words = (), exclude: Words = ()) -> tuple[FreshnessResult, ...]:
        """The age of the newest rows of the selected sources that have `freshness`, as `sml freshness`.

        `sources.json` is written. Raises UsageError where the target has no lake.
        """
        return source_freshness(self._load(select, exclude), FreshnessLog())

    def table(self, name: str) -> Table:
        """A table, view or seed by its name, `schema.name` or unique id; a source table by `source.table` too."""
        return Table(self, name)

    def sql(self, query: str, *, limit: int | None = None) -> pyarrow.Table:
        """Rows of a SELECT over tables and views of the project, in Spark's SQL, as `sml sql`."""
        from sqlmesh_like.app.arrow_rows import arrow_table

        return arrow_table(query_rows(self._load(), query, _limit(limit)))

    def close(self) -> None:
        """Stop the Spark that calls started, if any. Calls after it raise UsageError."""
        self._is_closed = True
        self._spark.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        target = f", target={self._choice.target!r}" if self._choice.target else ""
        return f"Project.load({str(self._choice.root)!r}{target})"

    def _run(
        self,
        command: str,
        select: Words,
        exclude: Words,
        full_refresh: bool = False,
        fail_fast: bool = False,
        now: datetime | None = None,
        *,
        store_failures: bool = False,
        units_on: str = "duckdb",
    ) -> RunResult:
        moment = None if now is None else now.isoformat()
        choice = self._choice_of(select, exclude, full_refresh=full_refresh, fail_fast=fail_fast)
        loaded = load(choice, now=clock(moment), reporter=self._reporter, spark=self._spark, broken=True)
        request = RunRequest(command, moment, store_failures=store_failures, units_on=units_on)
        return run_nodes(loaded, request, LogListener())

    def _load(self, select: Words = (), exclude: Words = (), *, full_refresh: bool = False) -> Loaded:
        call = self._choice_of(select, exclude, full_refresh=full_refresh)
        return load(call, reporter=self._reporter, spark=self._spark)

    def _choice_of(
        self, select: Words, exclude: Words, *, full_refresh: bool = False, fail_fast: bool = False
    ) -> Invocation:
        if self._is_closed:
            raise UsageError("this project is closed", hint="load it again: Project.load(…)")
        return self._choice.invocation(select, exclude, full_refresh, fail_fast)


@dataclass(frozen=True)
class Table:
    """A table of a project by name; what it holds is read when it is asked for, as it is then."""

    project: Project
    name: str

    @property
    def state(self) -> TableState:
        """Its newest commit, kind, columns and record. Raises ProjectError for an unknown name."""
        return state_of_table(self.project._load(), self.name)

    @property
    def schema(self) -> Schema:
        """The columns that a reader sees, with Spark's types; none where nothing is built yet."""
        return visible(self.state.schema or ())

    def to_arrow(self, *, limit: int | None = None, as_of: datetime | str | None = None) -> pyarrow.Table:
        """Its rows, without hidden columns. `as_of`: as it was at a time, or at a commit of `sml history`.

        A copy-on-write table is read without a JVM. Raises NodeError where nothing is built.
        """
        past = as_of.isoformat() if isinstance(as_of, datetime) else as_of
        return table_arrow(self.project._load(), self.name, _limit(limit), past)


def _words(given: Words) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _limit(limit: int | None) -> int:
    return -1 if limit is None else limit


def _yaml(variables: Mapping[str, object]) -> str:
    """Variables as `--vars` has them. Raises UsageError for what YAML has no word for."""
    import yaml

    try:
        return str(yaml.safe_dump(dict(variables), allow_unicode=True))
    except yaml.YAMLError as error:
        raise UsageError(f"vars: {error}", hint="give texts, numbers, dates, lists and mappings") from None
