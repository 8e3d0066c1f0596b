"""The state of a watch, as Prometheus metrics and as health. Owns the names of metrics and what healthy means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from time import time

from prometheus_client import CollectorRegistry, Counter, Gauge, PlatformCollector, ProcessCollector, generate_latest

from sqlmesh_like.cdc.report import IngestReport
from sqlmesh_like.cdc.sources.database.comparison.record import ComparisonRecord
from sqlmesh_like.control_characters import escape_line
from sqlmesh_like.run.result import ModelResult, RunResult

STALE_AFTER = 300.0
"""Seconds without a sign of life of the loop after which a watch counts as stuck, unless models are being built."""


@dataclass(frozen=True)
class Health:
    """Whether a watch works. `problems`: messages by table, model or source; `started`: seconds since the epoch.

    `comparisons`: what is known of tables that are compared with their database.
    """

    problems: dict[str, str]
    seconds_since_sign: float
    started: float
    comparisons: dict[str, ComparisonRecord]

    @property
    def is_healthy(self) -> bool:
        return not self.problems


@dataclass
class WatchStatus:
    """Counts since the start of the process, and current problems; called from the threads of sources and models."""

    started: float = field(default_factory=time)
    _problems: dict[str, str] = field(default_factory=dict)
    _comparisons: dict[str, ComparisonRecord] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    _last_sign: float = field(default_factory=time)
    _is_building: bool = False
    _threads: dict[str, Callable[[], bool]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._rows = self._counter("sml_ingest_rows", "Rows of a table by what happened to them.", "table", "change")
        self._events = self._counter("sml_ingest_events", "Events that a source brought.", "source")
        self._letters = self._counter("sml_dead_letters", "Events that could not be ingested.", "source")
        self._failures = self._counter("sml_failures", "Failures of a table, model or source.", "subject")
        self._models = self._counter("sml_model_updates", "Updates of a model by strategy.", "model", "strategy")
        self._verifications = self._counter(
            "sml_verifications", "Samples of a table compared with its recompute, by result.", "model", "result"
        )
        self._comparisons_made = self._counter(
            "sml_source_comparisons", "Comparisons of a table with its database, by result.", "table", "result"
        )
        self._compared, self._different, self._undecided, self._compared_at = (
            self._gauge(f"sml_source_{name}", f"Of the newest comparison with the database: {text}.", "table")
            for name, text in (
                ("compared_rows", "rows that were compared"),
                ("different_rows", "rows that differ"),
                ("undecided_rows", "rows with changes in the log that were not read yet"),
                ("compared_timestamp_seconds", "when it was"),
            )
        )
        self._lag = self._gauge("sml_ingest_lag_seconds", "From the log having an event to the table.", "table")
        self._round = self._gauge("sml_last_round_timestamp_seconds", "When models were last brought up to date.")
        self._healthy = self._gauge("sml_healthy", "1 where nothing is wrong.")
        self._healthy.set_function(lambda: float(self.health().is_healthy))

    @contextmanager
    def building(self) -> Iterator[None]:
        """Record a sign of life; while the context is open models may be built, which may take any time."""
        self._last_sign, self._is_building = time(), True
        try:
            yield
        finally:
            self._last_sign, self._is_building = time(), False

    def watch_thread(self, name: str, is_alive: Callable[[], bool]) -> None:
        """Report it as a problem from when a thread that must live has ended."""
        self._threads[name] = is_alive

    def note_batch(self, report: IngestReport) -> None:
        """Record a batch that a source has ingested."""
        self._events.labels(escape_line(report.source)).inc(report.events)
        self._letters.labels(escape_line(report.source)).inc(report.dead_letters)
        for table in report.tables:
            name = escape_line(str(table.table))
            for change, count in (("upsert", table.upserts), ("delete", table.deletes), ("late", table.late)):
                self._rows.labels(name, change).inc(count)
            if table.lag is not None:
                self._lag.labels(name).set(table.lag)
            self._note(name, table.error)

    def note_round(self, result: RunResult) -> None:
        """Record a run of the models."""
        self._round.set(time())
        for each in result.results:
            name = escape_line(each.node.unique_id)
            if isinstance(each, ModelResult) and each.status == "success" and each.strategy is not None:
                self._models.labels(name, each.strategy).inc()
            self._note(name, (each.message or "failed") if each.status == "error" else None)

    def note_verification(self, unique_id: str, status: str, problem: str | None) -> None:
        """Record that a sample of a table was compared; `problem`: how it differs, until it differs no more."""
        self._verifications.labels(escape_line(unique_id), status).inc()
        if status != "error":  # it could not be compared: what was known of it still stands
            self._note(f"rows of {unique_id}", problem)

    def note_comparison(self, table: str, record: ComparisonRecord, problem: str | None) -> None:
        """Record what is known of a table that is compared with its database; `problem`: how it differs."""
        table, finding = escape_line(table), record.finding
        with self._lock:
            self._comparisons[table] = record
        if (record.compared_at or 0.0) >= self.started:
            self._comparisons_made.labels(table, "error" if record.error or finding is None else finding.status).inc()
        if finding is not None:
            self._compared.labels(table).set(finding.rows)
            self._different.labels(table).set(finding.different)
            self._undecided.labels(table).set(finding.undecided)
            self._compared_at.labels(table).set(finding.at)
            self._note(f"rows of {table}", problem)

    def health(self) -> Health:
        """Return current problems: failures of the last attempt, and a loop without a sign of life."""
        since = time() - self._last_sign
        with self._lock:
            problems, comparisons = dict(self._problems), dict(self._comparisons)
        problems |= {name: "its thread has ended" for name, is_alive in self._threads.items() if not is_alive()}
        if since > STALE_AFTER and not self._is_building:
            problems["watch"] = f"no sign of life for {since:.0f} seconds"
        return Health(problems, since, self.started, comparisons)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def _note(self, subject: str, problem: str | None) -> None:
        subject = escape_line(subject)
        with self._lock:
            if problem is None:
                self._problems.pop(subject, None)
                return
            self._problems[subject] = problem
        self._failures.labels(subject).inc()

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)
