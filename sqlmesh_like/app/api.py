"""The Python API: a project whose methods do what the commands do, and return what those print.

>>> from sqlmesh_like import Project  # doctest: +SKIP
>>> with Project.load(".") as project:  # doctest: +SKIP
...     project.run(select="dws")
...     project.table("dws.user_agg").to_arrow()

Nothing is printed: warnings and progress go to the logger `sqlmesh_like`. An error in a call or a project is raised,
as an exception of `sqlmesh_like.errors`; the outcome of a node is in the result.
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
from sqlmesh_like.app.operations.verification.table_verification import Verification, new_sample, verify_tables
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
"""One word of a selection, such as `+user_agg` or `tag:daily`, or several, which select the union."""


@dataclass(frozen=True)
class _Choice:
    """The arguments of `Project.load`, used for each call."""

    root: Path
    target: str | None
    profile: str | None
    profiles_dir: Path | None
    vars: str
    threads: int | None
    environment: str | None = None

    def invocation(self, select: Words, exclude: Words, full_refresh: bool, fail_fast: bool) -> Invocation:
        return Invocation(
            select=_words(select), exclude=_words(exclude), target=self.target, profile=self.profile,
            profiles_dir=self.profiles_dir, project_dir=self.root, vars=self.vars, threads=self.threads,
            full_refresh=full_refresh, fail_fast=fail_fast, environment=self.environment,
        )  # fmt: skip


class Project:
    """A project with one of its targets, created by `Project.load`.

    Each call reads the files as they are then, as a command does; an unchanged project comes from the cache. On a
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
        environment: str | None = None,
        spark: Session | None = None,
    ) -> Self:
        """Return the project that contains this folder; it is read once to find its errors.

        `environment`: its tables are read and made instead of production's, as with `-e`. `spark` is an existing
        session, such as that of a notebook: it is used as it is, and never stopped. Raises ProjectError with file, line
        and column, or UsageError.
        """
        folder = None if profiles_dir is None else Path(profiles_dir)
        chosen = _Choice(Path(path).resolve(), target, profile, folder, _yaml(vars or {}), threads, environment)
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
        """Return the selected nodes of these types (none given: of all), inputs first, as `sml ls`.

        Raises SelectionError where nothing is selected.
        """
        return self._load(select, exclude).select_nodes(*_words(resource_type))

    def plan(self, select: Words = (), exclude: Words = (), *, full_refresh: bool = False) -> Plan:
        """Return what a run of the selected models would do and why; nothing is changed and no JVM starts.

        On a `duckdb` target no table exists before a run, so every model is built in full.
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
        slices: int | None = None,
        backfill: str | None = None,
    ) -> RunResult:
        """Update the selected models with work that is proportional to the change, as `sml run`.

        `now` is the run's time (without a zone: UTC). `slices`: build tables in about so many commits; `backfill`:
        FROM..TO, partitions that are recomputed. `run_results.json` and `manifest.json` are written. A model
        that fails is in the result, and `result.ok` is false then.
        """
        return self._run_command("run", select, exclude, full_refresh, fail_fast, now, slices=slices, backfill=backfill)

    def seed(self, select: Words = (), exclude: Words = (), *, full_refresh: bool = False) -> RunResult:
        """Load the selected seeds whose file changed, as `sml seed`."""
        return self._run_command("seed", select, exclude, full_refresh)

    def snapshot(self, select: Words = (), exclude: Words = (), *, now: datetime | None = None) -> RunResult:
        """Record new versions of rows in the selected snapshots, as `sml snapshot`."""
        self._require_production("snapshots")
        return self._run_command("snapshot", select, exclude, now=now)

    def test(
        self, select: Words = (), exclude: Words = (), *, store_failures: bool = False, engine: str = "duckdb"
    ) -> RunResult:
        """Run the selected data tests and unit tests, as `sml test`; `engine` is that of unit tests."""
        return self._run_command("test", select, exclude, store_failures=store_failures, units_on=engine)

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
        """Run the selected seeds, models, snapshots and tests in the order of the graph, as `sml build`."""
        return self._run_command("build", select, exclude, full_refresh, fail_fast, now, store_failures=store_failures)

    def ingest(self, sources: Words = ()) -> tuple[IngestReport, ...]:
        """Ingest the pending events of these sources (none given: of all) and return their reports, as `sml ingest`."""
        self._require_production("ingestion")
        selected = [word if ":" in word else f"source:{word}" for word in _words(sources)]
        return tuple(ingest(self._load(selected), IngestRequest(), LogListener()))

    def verify(
        self,
        select: Words = (),
        exclude: Words = (),
        *,
        limit: int = 20,
        sample: int | None = None,
        seed: int | None = None,
    ) -> tuple[Verification, ...]:
        """Compare the selected tables with a full recompute, as `sml verify`; `sample`: only so many random keys.

        A result has up to `limit` differing rows. Samples with the same `seed` have the same keys. Raises UsageError
        if `sample` is less than one, and on a `duckdb` target: each call builds its tables from scratch.
        """
        log = LogListener()
        keys = None if sample is None else new_sample(sample, seed)
        return verify_tables(self._load(select, exclude), limit, log.verified, keys)

    def publish(
        self,
        select: Words = (),
        exclude: Words = (),
        *,
        full_refresh: bool = False,
        at: int | str | None = None,
    ) -> tuple[Publication, ...]:
        """Send the changed rows of the selected published models to their destinations, as `sml publish`.

        `at`: a release, as of `sql`. A table that could not be sent is in the result with its `error`. Raises
        SelectionError where no selected model is published, UsageError where the target has no lake.
        """
        self._require_production("publishing")
        loaded = self._load(select, exclude, full_refresh=full_refresh)
        return publish_tables(loaded, TableLog(), _release(at))

    def maintain(
        self, select: Words = (), exclude: Words = (), *, rebucket: bool = False
    ) -> tuple[MaintenanceResult, ...]:
        """Compact the selected tables and remove history that nothing needs, as `sml maintain`.

        `rebucket` also rewrites tables whose number of buckets no longer fits. A table that fails is in the result
        with its `error`. Raises UsageError where the target has no lake, RetryableError where another process is
        writing.
        """
        self._require_production("maintenance")
        return maintain(self._load(select, exclude), TableLog(), rebucket=rebucket)

    def freshness(self, select: Words = (), exclude: Words = ()) -> tuple[FreshnessResult, ...]:
        """Return the age of the newest rows of the selected sources that have `freshness`, as `sml freshness`.

        `sources.json` is written. Raises UsageError where the target has no lake.
        """
        return source_freshness(self._load(select, exclude), FreshnessLog())

    def table(self, name: str) -> Table:
        """Return a table, view or seed by name, `schema.name` or unique id; a source table also by `source.table`."""
        return Table(self, name)

    def sql(self, query: str, *, limit: int | None = None, at: int | str | None = None) -> pyarrow.Table:
        """Return the rows of a SELECT over tables and views of the project, in Spark's SQL, as `sml sql`.

        `at`: a release, or `latest-commit`; by default the current release if the project makes releases.
        """
        from sqlmesh_like.app.arrow_rows import arrow_table

        return arrow_table(query_rows(self._load(), query, _limit(limit), _release(at)))

    def close(self) -> None:
        """Stop the Spark session that calls started, if any. Later calls raise UsageError."""
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

    def _run_command(
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
        slices: int | None = None,
        backfill: str | None = None,
    ) -> RunResult:
        moment = None if now is None else now.isoformat()
        choice = self._choice_of(select, exclude, full_refresh=full_refresh, fail_fast=fail_fast)
        loaded = load(choice, now=clock(moment), reporter=self._reporter, spark=self._spark, broken=True)
        request = RunRequest(
            command, moment, store_failures=store_failures, units_on=units_on, slices=slices, backfill=backfill
        )
        return run_nodes(loaded, request, LogListener())

    def _load(self, select: Words = (), exclude: Words = (), *, full_refresh: bool = False) -> Loaded:
        call = self._choice_of(select, exclude, full_refresh=full_refresh)
        return load(call, reporter=self._reporter, spark=self._spark)

    def _require_production(self, what: str) -> None:
        if self._choice.environment is not None:
            hint = "load the project without an environment for that"
            raise UsageError(f"{what} in an environment: it would be production's", hint=hint)

    def _choice_of(
        self, select: Words, exclude: Words, *, full_refresh: bool = False, fail_fast: bool = False
    ) -> Invocation:
        if self._is_closed:
            raise UsageError("this project is closed", hint="load it again: Project.load(…)")
        return self._choice.invocation(select, exclude, full_refresh, fail_fast)


@dataclass(frozen=True)
class Table:
    """A table of a project by name; each access reads its current state."""

    project: Project
    name: str

    @property
    def state(self) -> TableState:
        """The newest commit, or that of the current release, kind, columns and record.

        Raises ProjectError for an unknown name.
        """
        return state_of_table(self.project._load(), self.name)

    @property
    def schema(self) -> Schema:
        """The columns without hidden ones, with Spark's types; empty where the table is not built."""
        return visible(self.state.schema or ())

    def to_arrow(
        self, *, limit: int | None = None, as_of: datetime | str | None = None, at: int | str | None = None
    ) -> pyarrow.Table:
        """Return the rows without hidden columns. `as_of`: a time, or a commit of `sml history`, to read the table at.

        `at`: a release, as of `Project.sql`.

        A copy-on-write table is read without a JVM. Raises NodeError where the table is not built.
        """
        past = as_of.isoformat() if isinstance(as_of, datetime) else as_of
        return table_arrow(self.project._load(), self.name, _limit(limit), past, _release(at))


def _words(given: Words) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _limit(limit: int | None) -> int:
    return -1 if limit is None else limit


def _release(at: int | str | None) -> str | None:
    return None if at is None else str(at)


def _yaml(variables: Mapping[str, object]) -> str:
    """Return variables as text for `--vars`. Raises UsageError for a value that YAML cannot represent."""
    import yaml

    try:
        return str(yaml.safe_dump(dict(variables), allow_unicode=True))
    except yaml.YAMLError as error:
        raise UsageError(f"vars: {error}", hint="give texts, numbers, dates, lists and mappings") from None
