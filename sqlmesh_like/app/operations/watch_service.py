"""Ingestion and the models that depend on it, in one process. Owns wiring both; `watch_loop` owns the rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sqlmesh_like.app.lakes.lake import HudiLake, open_lake
from sqlmesh_like.app.lakes.lake_lock import HeldLocks, lake_lock
from sqlmesh_like.app.lakes.lake_tables import require_lake
from sqlmesh_like.app.lakes.spark_session import session_for
from sqlmesh_like.app.lakes.table_locks import ingestion_locks, run_locks
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.preflight import check_before_run
from sqlmesh_like.app.monitoring.alerts import AGAIN_AFTER, Alerts, check_hooks
from sqlmesh_like.app.monitoring.status_server import parse_address, serve_status
from sqlmesh_like.app.monitoring.watch_alerts import WatchAlerts
from sqlmesh_like.app.monitoring.watch_status import WatchStatus
from sqlmesh_like.app.operations.ingestion import WAITING, IngestListener, ask_sources, selected_sources, triggers
from sqlmesh_like.app.operations.publishing import publisher_of
from sqlmesh_like.app.operations.verification.comparison_texts import difference_text, failure_text
from sqlmesh_like.app.operations.verification.table_verification import Verification
from sqlmesh_like.app.operations.verification.watch_verification import WatchVerification
from sqlmesh_like.app.operations.watch_loop import WatchLoop
from sqlmesh_like.app.reporter import RunListener
from sqlmesh_like.cdc.report import IngestReport
from sqlmesh_like.cdc.sources.database.comparison.record import ComparisonRecord
from sqlmesh_like.cdc.sources.source_check import check_source, check_trigger
from sqlmesh_like.cdc.stream.metrics import Metrics
from sqlmesh_like.errors import SelectionError
from sqlmesh_like.project.nodes import Source, SourceTable
from sqlmesh_like.run.result import RunResult

if TYPE_CHECKING:
    from sqlmesh_like.spark.jvm.session import Session


@dataclass(frozen=True)
class Monitoring:
    """How a watch is monitored. `listen`: [HOST:]PORT of `/health` and `/metrics`; `hooks`: see `Alerts`.

    `again_after`: seconds before an alert is repeated; `most_lag`: seconds of a table's lag above which it is alerted;
    `verify_share`: per cent of the time in which samples of the tables are compared with their recompute.
    """

    listen: str | None = None
    hooks: tuple[str, ...] = ()
    again_after: float = AGAIN_AFTER
    most_lag: float | None = None
    verify_share: float = 0.0


class WatchListener(IngestListener, RunListener, Protocol):
    """Receives ingestion and the rounds of models; `finished` is called at the end of each round."""

    def watching(self, models: int) -> None: ...


_NOT_MONITORED = Monitoring()


@dataclass(frozen=True)
class _Observers:
    """Receivers of batches and rounds besides the listener."""

    metrics: Metrics
    status: WatchStatus
    alerts: WatchAlerts

    def batch(self, report: IngestReport) -> None:
        self.status.note_batch(report)
        self.alerts.note_batch(report)
        self.metrics.report(report)

    def round(self, result: RunResult) -> None:
        self.status.note_round(result)
        self.alerts.note_round(result)

    def note_comparison(self, table: SourceTable, record: ComparisonRecord) -> None:
        name, problem = str(table.table), difference_text(table, record)
        self.status.note_comparison(name, record, problem)
        self.alerts.note_difference(name, problem)
        self.alerts.note_failed_comparison(name, failure_text(record))

    def note_verification(self, result: Verification, problem: str | None) -> None:
        self.status.note_verification(result.model.unique_id, result.status, problem)
        self.alerts.note_difference(result.model.unique_id, problem)


@dataclass(frozen=True)
class WatchResult:
    """The result of a watch: a report for each source, and the last round of the models."""

    reports: tuple[IngestReport, ...]
    last_round: RunResult


def watch(
    loaded: Loaded,
    trigger: str | None,
    metrics: tuple[str, ...],
    listener: WatchListener,
    monitoring: Monitoring = _NOT_MONITORED,
) -> WatchResult:
    """Ingest events as they arrive and run the selected models, until SIGTERM or Ctrl-C."""
    address = None if monitoring.listen is None else parse_address(monitoring.listen)
    check_hooks(monitoring.hooks)
    models = [node.unique_id for node in loaded.select_nodes("model")]
    sources = _sources(loaded, models)
    for source in sources:
        check_source(loaded.project, source)
    check_trigger(trigger, continuous=True)
    lake = open_lake(loaded, models)
    check_before_run(loaded, lake.catalog, models).require_sound()
    ask_sources(loaded, sources)
    status = WatchStatus()
    alerts = Alerts(monitoring.hooks, listener.notify, monitoring.again_after)
    status.watch_thread("alerts", lambda: alerts.is_alive)
    observers = _Observers(Metrics(metrics), status, WatchAlerts(alerts, monitoring.most_lag))
    built = run_locks(lake, models, publisher_of(lake, models))
    with (
        serve_status(status, address),
        closing(alerts),
        lake_lock(loaded, "watch", {**built, **ingestion_locks(loaded, sources)}) as held,
        session_for(loaded, sources) as session,
        observers.alerts.noting_failure(),
    ):
        watched = open_lake(loaded, models, session)
        samples = WatchVerification(
            watched, models, monitoring.verify_share, listener.notify, observers.note_verification
        )
        return _watch(session, watched, held, models, sources, trigger, observers, listener, samples)


def _sources(loaded: Loaded, models: Sequence[str]) -> list[Source]:
    """Return the ingested sources that are selected or that the selected models read."""
    require_lake(loaded)
    wanted = {node.unique_id for node in loaded.select_nodes("source")}
    sources = selected_sources(loaded, wanted | loaded.graph.above(models))
    if not sources:
        hint = "give a source an `ingest:` block, or select a model that reads such a source"
        raise SelectionError("nothing to watch: no ingested source is selected", hint=hint)
    return sources


def _watch(
    session: Callable[[], Session],
    lake: HudiLake,
    held: HeldLocks,
    models: Sequence[str],
    sources: list[Source],
    trigger: str | None,
    observers: _Observers,
    listener: WatchListener,
    samples: WatchVerification,
) -> WatchResult:
    from sqlmesh_like.app.operations.verification.watch_comparison import WatchComparison
    from sqlmesh_like.cdc.stream.continuous import run_until_stopped
    from sqlmesh_like.cdc.stream.ingest_run import open_run

    def on_batch(report: IngestReport) -> None:
        listener.ingested(report)
        observers.batch(report)
        rounds.on_batch(report)

    def between() -> None:
        held.require_held()
        with observers.status.building():
            rounds()
            samples()
            comparison()

    def gates() -> ExitStack:
        held = ExitStack()
        for run in runs:
            held.enter_context(run.gate)
        return held

    loaded = lake.loaded
    rounds = WatchLoop(lake, held, models, listener, gates, publisher_of(lake, models), observers.round)
    runs = [open_run(session, loaded.project, loaded.target, source, on_batch) for source in sources]
    for source in sources:
        listener.reading(source)
    listener.watching(len(models))
    loaded.reporter.phase(WAITING)
    with closing(WatchComparison(runs, listener.notify, observers.note_comparison)) as comparison:
        reports = run_until_stopped(runs, triggers(sources, trigger), between=between, on_spark=loaded.reporter.notify)
    return WatchResult(tuple(reports), rounds.result)
