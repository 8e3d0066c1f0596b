"""Tables of sources compared with their databases while `sml watch` runs. Owns which are due, and when a log is read.

The tables are compared by a thread, beside ingestion and models. Where rows differ, the log has to be read to its end:
for that the loop of the watch ends the engine that follows the database, has another one read up to there, and begins
to follow again. Nothing that goes wrong here ends the watch, and nothing is repaired.
"""

from __future__ import annotations

import queue
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Thread

from sqlmesh_like import stop_signals
from sqlmesh_like.app.operations.verification.comparison_texts import difference_text, failure_text
from sqlmesh_like.app.reporter import Notify
from sqlmesh_like.cdc.sources.database.capture import spool_log
from sqlmesh_like.cdc.sources.database.comparison.differences import TableComparison
from sqlmesh_like.cdc.sources.database.comparison.record import ComparisonRecord, comparison_record, note_comparison
from sqlmesh_like.cdc.sources.database.comparison.table_comparison import ComparisonRequest, compare_tables
from sqlmesh_like.cdc.sources.database.connector_settings import database_of
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.cdc.stream.ingest_run import IngestRun
from sqlmesh_like.errors import SmlError
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.project.nodes import ComparisonSchedule, SourceTable

_LOOK_SECONDS = 30.0
"""How often it is looked which tables are due, at least."""
_AGAIN_SECONDS = 600.0
"""After a comparison that was not possible, the next one comes after so long at the latest."""
_POLL_SECONDS = 0.5
_END_SECONDS = 30.0

OnCompared = Callable[[SourceTable, ComparisonRecord], None]
"""Called with what is known of a table, whenever that has changed; from any thread."""


class _Stopped(Exception):
    """Ends a comparison of a watch that ends."""


@dataclass
class WatchComparison:
    """Compares what is due of these runs' sources. `on_compared` also gets what calls of `sml verify` have shown."""

    runs: Sequence[IngestRun]
    notify: Notify
    on_compared: OnCompared
    _thread: Thread | None = None
    _next_look: float = 0.0
    _known: dict[str, ComparisonRecord] = field(default_factory=dict)
    _logs: queue.Queue[tuple[IngestRun, Future[None]]] = field(default_factory=queue.Queue)
    _ending: Event = field(default_factory=Event)
    _warned: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.runs = [run for run in self.runs if run.capture is not None]
        schedules = (database_of(run.place.source).verify for run in self.runs)
        self._pause = min([_LOOK_SECONDS, *(each.every for each in schedules if each is not None)])

    def __call__(self) -> None:
        """Read the log that a comparison waits for; begin to compare what is due. Called by the loop of the watch."""
        while not self._logs.empty():
            self._read_log(*self._logs.get())
        if time.monotonic() < self._next_look or stop_signals.is_wished():
            return
        self._next_look = time.monotonic() + self._pause
        try:
            self._look()
        except Exception as error:  # noqa: BLE001 (nothing here ends the watch)
            self._warn(error)

    def _look(self) -> None:
        for run in self.runs:
            for table in run.place.source.tables:
                self._publish(table, comparison_record(run.place, table))
        if self._thread is None or not self._thread.is_alive():
            due = [(run, tables) for run in self.runs if (tables := due_tables(run.place, time.time()))]
            if due:
                self._thread = Thread(target=self._compare_all, args=(due,), name="source-comparison", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """End a comparison that is under way, after its current query."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)

    def _require_going(self) -> None:
        if self._ending.is_set() or stop_signals.is_wished():
            raise _Stopped

    def _compare_all(self, due: Sequence[tuple[IngestRun, Sequence[SourceTable]]]) -> None:
        try:
            for run, tables in due:
                for request, those in requests_of(run.place, tables):
                    self._compare(run, request, those)
        except _Stopped:
            return
        except Exception as error:  # noqa: BLE001 (nothing here ends the watch)
            self._warn(error)

    def _warn(self, error: Exception) -> None:
        """Say once why nothing is compared."""
        text = f"warning: sources are not compared with their databases: {_text_of(error)}"
        if text not in self._warned:
            self._warned.add(text)
            self.notify(text, "warn")

    def _compare(self, run: IngestRun, request: ComparisonRequest, tables: Sequence[SourceTable]) -> None:
        results: list[TableComparison] = []
        try:
            wait = partial(self._wait_for_log, run)
            for result in compare_tables(run.place, tables, request, wait, require_going=self._require_going):
                results.append(result)
                self._note(run.place, result, request)
        except _Stopped:
            raise
        except Exception as error:  # noqa: BLE001 (whatever it is, the watch goes on, and says it)
            done = {result.table.unique_id for result in results}
            for table in (each for each in tables if each.unique_id not in done):
                self._note(run.place, TableComparison(table, 0.0, error=_text_of(error)), request)
        rows, equal = sum(each.rows for each in results), sum(each.status in ("pass", "warn") for each in results)
        name = run.place.source.name
        self.notify(f"source {name}: {equal} of {len(tables)} tables equal the database, {rows} rows compared")

    def _note(self, place: SourcePaths, result: TableComparison, request: ComparisonRequest) -> None:
        table, before = result.table, comparison_record(place, result.table)
        record = note_comparison(place, result, request, time.time())
        if record.error is not None and record.error != before.error:
            self.notify(f"warning: {table.table}: {failure_text(record)}", "warn")
        elif result.status == "fail":
            self.notify(f"{table.table}: {difference_text(table, record)}", "error")
        elif before.differs and not record.differs:
            self.notify(f"{table.table}: the rows that differed from the database are as there again")
        self._publish(table, record)

    def _publish(self, table: SourceTable, record: ComparisonRecord) -> None:
        if self._known.get(table.unique_id, ComparisonRecord()) != record:
            self._known[table.unique_id] = record
            self.on_compared(table, record)

    def _wait_for_log(self, run: IngestRun) -> None:
        """Have the loop read the log of a source to its end. Raises SmlError where that is not possible."""
        answer: Future[None] = Future()
        self._logs.put((run, answer))
        while True:
            try:
                return answer.result(_POLL_SECONDS)
            except TimeoutError:
                self._require_going()

    @staticmethod
    def _read_log(run: IngestRun, answer: Future[None]) -> None:
        """Spool all that the log of a followed database holds now; the run begins to follow it again by itself."""
        capture = run.capture
        assert capture is not None
        try:
            with run.gate:  # a batch that ends would speak to the engine
                capture.close()
            spool_log(run.place)
        except Exception as error:  # noqa: BLE001 (it is the comparison's)
            answer.set_exception(error)
        else:
            answer.set_result(None)


def _text_of(error: Exception) -> str:
    return str(error) if isinstance(error, SmlError) else f"{type(error).__name__}: {error}"


def due_tables(place: SourcePaths, now: float) -> tuple[SourceTable, ...]:
    """The tables whose comparison is due, at `now` seconds since 1970. Those that never can be compared are not."""
    schedule = database_of(place.source).verify
    if schedule is None:
        return ()
    return tuple(
        table
        for table in place.source.tables
        if table.ingest is not None
        and table.ingest.primary_key
        and table.ingest.deletes != "retention"
        and next_time(comparison_record(place, table), schedule) <= now
        and Timeline(place.table_uri(table)).frontier is not None
    )


def next_time(record: ComparisonRecord, schedule: ComparisonSchedule) -> float:
    """When a table is to be compared next, in seconds since 1970.

    >>> next_time(ComparisonRecord(failed_at=1000.0, error="away"), ComparisonSchedule(every=86_400.0))
    1600.0
    """
    if record.compared_at is None:
        return 0.0
    return record.compared_at + (schedule.every if record.error is None else min(schedule.every, _AGAIN_SECONDS))


def requests_of(
    place: SourcePaths, tables: Iterable[SourceTable]
) -> Iterator[tuple[ComparisonRequest, list[SourceTable]]]:
    """How these tables are compared: what differed before as it was then, so that it is known when it does no more."""
    schedule = database_of(place.source).verify
    assert schedule is not None
    seed = secrets.randbelow(1_000_000) if schedule.share < 1 else 0
    groups: dict[tuple[float, int], list[SourceTable]] = {}
    for table in tables:
        finding, part = comparison_record(place, table).finding, (schedule.share, seed)
        if finding is not None and finding.status == "fail":
            part = finding.share, finding.seed
        groups.setdefault(part, []).append(table)
    for (share, number), those in groups.items():
        yield ComparisonRequest(0, schedule.rows_per_second, share, number), those
