"""The one streaming query of a source. Owns its life: start, batches exactly once, catching up, a graceful stop.

Spark records the part of the log that a batch covers before the batch runs, and its completion afterwards; `batch`
ingests it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import unquote

from sqlmesh_like import stop_signals
from sqlmesh_like.cdc.decode.repeated_schemas import NO_SCHEMAS, RepeatedSchemas, repeated_schemas
from sqlmesh_like.cdc.frames import Frame
from sqlmesh_like.cdc.in_process.values import NotProvenError
from sqlmesh_like.cdc.registry.schema_registry import SchemaRegistry
from sqlmesh_like.cdc.report import IngestReport, TableReport, by_table
from sqlmesh_like.cdc.sources.batch_marker import BatchMarker
from sqlmesh_like.cdc.sources.catch_up_queue import note, tables_behind
from sqlmesh_like.cdc.sources.database.capture import DatabaseCapture
from sqlmesh_like.cdc.sources.database.spool import number_of
from sqlmesh_like.cdc.sources.discover import with_discovered
from sqlmesh_like.cdc.sources.event_log import LogLines
from sqlmesh_like.cdc.sources.file_log import FileLog, SpoolLog
from sqlmesh_like.cdc.sources.kafka_log import KafkaLog
from sqlmesh_like.cdc.sources.offset_range import Files
from sqlmesh_like.cdc.sources.parquet_log import ParquetLog
from sqlmesh_like.cdc.sources.query_log import events_in
from sqlmesh_like.cdc.sources.skipped_tables import forget_skipped, note_skipped
from sqlmesh_like.cdc.sources.source_check import check_source
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.cdc.sources.table_folders import FolderNames, also_possible
from sqlmesh_like.cdc.stream.batch import BatchReport, ingest_batch
from sqlmesh_like.cdc.stream.ingest_context import IngestContext
from sqlmesh_like.cdc.stream.small_batches import take_small_batches
from sqlmesh_like.cdc.stream.source_log import event_log_of
from sqlmesh_like.cdc.stream.table_replay import queue_what_is_missing, queue_what_was_skipped
from sqlmesh_like.cdc.tables.empty_table import make_empty_table
from sqlmesh_like.cdc.tables.last_commits import forget_last_commits, note_last_commits
from sqlmesh_like.errors import IngestError
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.commit_guard import require_locks
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import TableName
from sqlmesh_like.project.nodes import ParsedProject, Source, SourceTable, Target
from sqlmesh_like.remedies import remedy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_SECONDS = 0.2
FEWEST_EVENTS = 20_000
"""Of a batch in which it is looked for schemas that messages repeat."""

OnBatch = Callable[[IngestReport], None]


class _Stopped(Exception):
    """Ends the query before a batch that would begin after a stop was requested."""


def ingest_source(
    session: Callable[[], SparkSession],
    project: ParsedProject,
    target: Target,
    source: Source,
    start: str | None = None,
    on_batch: OnBatch | None = None,
    again: Collection[str] = (),
    *,
    small_batches: bool = True,
    on_spark: Callable[[str], None] = lambda _: None,
) -> IngestReport:
    """Ingest all events of a source that were not ingested yet, then stop.

    `session` gives Spark; with `small_batches` it is not called for a few events, which this process takes, or
    `on_spark` gets a line that says why not. `on_batch` is called with the report of each batch. `start` (earliest,
    latest or offsets as JSON) forgets what was read and begins there. `again`: declared tables of a database whose rows
    are all read again. A table that cannot be written is in the report (`failed`); it catches up by itself. Raises
    UsageError (a setting that is not supported, wrong declarations, no such folder) before anything is written, and
    IngestError for a table that lost events which the log no longer has, or for the first malformed event under
    `on_bad_record: fail`.
    """
    run = open_run(session, project, target, source, on_batch)
    with closing(run):
        run.read_database(start, again)
        if start is not None or not small_batches or not take_small_batches(run, on_spark):
            run.prepare(start)
            if run.begin(start):
                run.wait()
        run.make_empty_tables()
        run.confirm_to_database()
    return run.report()


def open_run(
    session: Callable[[], SparkSession],
    project: ParsedProject,
    target: Target,
    source: Source,
    on_batch: OnBatch | None = None,
) -> IngestRun:
    """Create a run of a source without starting it. Raises UsageError for settings that are not supported."""
    check_source(project, source)
    place = with_discovered(SourcePaths(target, source))
    settings = source.ingest.registry if source.ingest else None
    registry = None if settings is None else SchemaRegistry(settings)
    return IngestRun(
        IngestContext(session, place, project.root, event_log_of(project, target, source), registry), on_batch
    )


class IngestRun:
    """One run of a source's query, with the sum of its batches and the error that ended it.

    `on_batch` is called with the report of each batch. Holding the lock `gate` keeps batches from writing tables.
    `is_followed`: tables were found to have all that was read before, and nobody else writes them since.
    """

    def __init__(self, context: IngestContext, on_batch: OnBatch | None = None) -> None:
        self.context, self.on_batch = context, on_batch
        self.ingested = IngestReport(context.place.source.name)
        self.failure: Exception | None = None
        self.is_stopping = False
        self.is_continuous = False
        self.is_followed = False
        self.query: StreamingQuery | None = None
        self.gate = Lock()
        self.warned: set[str] = set()
        self.capture = DatabaseCapture(context.place) if isinstance(context.log, SpoolLog) else None

    @property
    def place(self) -> SourcePaths:
        """The source's paths; its tables are those declared and those discovered so far."""
        return self.context.place

    def read_database(self, start: str | None = None, again: Collection[str] = (), *, follows: bool = False) -> None:
        """Spool what the source's database holds, if it has one; with `follows`, all that comes. Raises SmlError."""
        if self.capture is not None:
            self.capture.prepare(start)
            self.capture.read_later_tables(again)
            if follows:
                self.capture.follow()
            else:
                self.capture.read_to_end()

    def make_empty_tables(self) -> None:
        """Make the tables of a database that have no rows there. All events of the others have been ingested."""
        if self.capture is None or stop_signals.is_wished():
            return
        behind, had_events = tables_behind(self.place), {each.table for each in self.ingested.tables}
        for table in self.capture.tables_read:
            is_empty = table.table not in had_events and not behind.get(table.name)
            if is_empty and make_empty_table(self.place, table):
                report = IngestReport(self.place.source.name, tables=(TableReport(table.table),))
                self.ingested = self.ingested.plus(report)

    def confirm_to_database(self, mark: BatchMarker | None = None) -> None:
        """Let the database clean what all tables hold: the batch `mark`, or all that was spooled."""
        if self.capture is not None and not stop_signals.is_wished() and not any(tables_behind(self.place).values()):
            files = mark.extent.files if mark is not None and isinstance(mark.extent, Files) else ()
            self.capture.acknowledge([number_of(file) for _, file in files])

    def keep_database(self) -> None:
        """Let what reads the database run on. Raises SmlError where it cannot."""
        if self.capture is not None:
            self.capture.keep_running()

    def close(self) -> None:
        """End what reads the database."""
        if self.capture is not None:
            self.capture.close()

    def prepare(self, start: str | None = None) -> None:
        """Prepare the first batch: with `start`, forget what was read, else check that tables still have it; catch up.

        Raises IngestError where a table lost events which the log no longer has.
        """
        if start is None:
            queue_what_is_missing(self.context)
            queue_what_was_skipped(self.context)
        else:
            self._forget()
        self.catch_up()

    def _forget(self) -> None:
        """Drop the records of what was read. Ingesting the same events again does not change the tables."""
        forget_last_commits(self.place)
        forget_skipped(self.place)
        if self.capture is not None:  # the files that tables are behind with are gone
            for table in self.place.source.tables:
                note(self.place, table, ())
        checkpoint = folder(self.place.checkpoint)
        if checkpoint.exists():
            checkpoint.fs.rm(checkpoint.path, recursive=True)

    def begin(self, start: str | None = None, *, trigger: str | None = None) -> bool:
        """Start the query, with a batch per `trigger` (None: read all there is, then end). False without any input."""
        lines = self.context.log.stream(self.context.spark, start)
        if lines is None:
            return False
        writer = lines.writeStream.foreachBatch(self.batch).queryName(f"ingest_{self.place.source.name}")
        writer = writer.option("checkpointLocation", self.place.checkpoint)
        self.is_continuous = trigger is not None
        timed = writer.trigger(processingTime=trigger) if trigger else writer.trigger(availableNow=True)
        from sqlmesh_like.spark.jvm.spark_errors import failing

        with failing(f"the stream of source {self.place.source.name!r} does not start"):
            self.query = timed.start()
        return True

    def wait(self) -> None:
        """Wait until the query has ended, then drop it. Raises the error that ended it, if any; a stop is none."""
        from pyspark.errors import StreamingQueryException

        from sqlmesh_like.spark.jvm.session import close_idle_callbacks

        assert self.query is not None
        try:
            self.query.awaitTermination()
        except StreamingQueryException as error:
            if isinstance(self.failure, _Stopped):
                return
            if self.failure is not None:
                raise self.failure from None
            text = f"the stream of source {self.place.source.name!r} failed: {error}"[:1000]
            raise IngestError(text, hint=remedy(error, "sml ingest")) from error
        finally:
            self.query.stop()
            # The query holds this run as its function: as long as the run holds the query too, neither is ever freed.
            self.query = None
            close_idle_callbacks(self.context.spark)

    def stop(self) -> None:
        """Let the batch that is under way finish, then end the query. Raises the error that ended it, if any."""
        self.is_stopping = True
        if self.query is None:
            return
        while self.is_active and self.query.status["isTriggerActive"]:
            time.sleep(_POLL_SECONDS)
        self.query.stop()
        self.wait()

    @property
    def is_active(self) -> bool:
        """Whether the query is running."""
        return self.query is not None and self.query.isActive

    def batch(self, lines: DataFrame, number: int) -> None:
        """Ingest a batch. The query calls this for each batch, and again for one that was interrupted."""
        try:
            if self.is_stopping or stop_signals.is_wished():
                raise _Stopped
            require_locks(self.place.checkpoint)
            # A query keeps its id as long as its checkpoint exists.
            query = json.loads(folder(self.place.checkpoint).read("metadata"))["id"]
            with self.gate:
                if self.is_continuous:
                    self.catch_up()
                self._take(lines, query, number)
        except Exception as error:
            self.failure = error
            raise

    def _take(self, batch: DataFrame, query: str, number: int) -> None:
        behind = tables_behind(self.place)
        with self.context.log.lines(batch) as (lines, extent_of):

            def mark_of(events: Frame | None) -> BatchMarker:
                return BatchMarker(query, number, extent_of(events))

            spark = batch.sparkSession  # a query runs in a clone of its session
            context = replace(self.context, session=lambda: spark)
            schemas = self._repeated_schemas(lines, number)
            report = ingest_batch(context, lines, mark_of, without=frozenset(behind), schemas=schemas)
        self._finish(report, behind)

    def _repeated_schemas(self, lines: LogLines, number: int) -> RepeatedSchemas:
        """The schemas that messages of a large batch from Kafka repeat: to look for them reads all messages once."""
        ingest, log = self.place.source.ingest, self.context.log
        assert ingest is not None
        is_json = ingest.format == "debezium" and self.context.registry is None
        if not is_json or not isinstance(log, KafkaLog) or isinstance(lines, list):
            return NO_SCHEMAS
        if events_in(self.place.checkpoint, number) < FEWEST_EVENTS:
            return NO_SCHEMAS
        return repeated_schemas(lines, ingest.unavailable_value_placeholder)

    def take_here(
        self, lines: LogLines, mark_of: Callable[[Frame | None], BatchMarker], before_commits: Callable[[], None]
    ) -> None:
        """Ingest a batch without Spark. Raises NotProvenError where Spark has to do it, perhaps after some commits.

        `mark_of` and `before_commits` are called as `ingest_batch` says.
        """
        behind = tables_behind(self.place)
        if any(behind.values()):
            raise NotProvenError("tables that are behind")
        self._finish(ingest_batch(self.context, lines, mark_of, before_commits=before_commits), behind)

    def _finish(self, report: BatchReport, behind: Mapping[str, tuple[BatchMarker, ...]]) -> None:
        """Note what became of the batch before it counts as done. `behind`: what tables had to ingest before it."""
        mark = report.mark
        assert mark is not None
        self._note_skipped(mark, report)
        discovered = self._look_around()
        failed = {each.table for each in report.tables if each.error}
        if failed:  # by whoever lost the locks, which is not theirs to make up for: the notes are another call's now
            require_locks(self.place.checkpoint)
        for table in self.place.source.tables:
            marks = behind.get(table.name, ())
            if (marks or table.table in failed) and mark not in marks:
                note(self.place, table, (*marks, mark))
        self._add(report, discovered)
        if self.is_continuous:
            self.confirm_to_database(mark)

    def _note_skipped(self, mark: BatchMarker, report: BatchReport) -> None:
        sources, log = set(report.undeclared), self.context.log
        if isinstance(log, FileLog | ParquetLog) and isinstance(mark.extent, Files):
            # A later declaration may find itself elsewhere in a path.
            names: set[FolderNames] = {(database, table) for database, _, table in sources}
            files = (unquote(path) for _, path in mark.extent.files)
            sources |= {(db, None, table) for db, table in also_possible(log.glob, files, names) if table}
        note_skipped(self.place, mark, sources)

    def _look_around(self) -> tuple[TableName, ...]:
        """Add the tables that the batch discovered to the source, and return them."""
        before = {table.name for table in self.place.source.tables}
        self.context = replace(self.context, place=with_discovered(self.place))
        return tuple(table.table for table in self.place.source.tables if table.name not in before)

    def catch_up(self) -> None:
        """Ingest what tables that failed have missed, in the log's order; one that fails again stays behind."""
        for table in self.place.source.tables:
            pending = list(tables_behind(self.place).get(table.name, ()))
            while pending and not stop_signals.is_wished():
                report = self._again(table.name, pending[0])
                self._add(report)
                if any(each.error for each in report.tables):
                    break
                note(self.place, table, pending := pending[1:])

    def _again(self, name: str, mark: BatchMarker) -> BatchReport:
        log = self.context.log
        with log.lines(log.read(self.context.spark, mark.extent)) as (lines, _):
            return ingest_batch(self.context, lines, lambda _: mark, only=name)

    def _add(self, batch: BatchReport, discovered: tuple[TableName, ...] = ()) -> None:
        note_last_commits(self.place, [each.table for each in batch.tables if not each.error])
        report = IngestReport(
            source=self.place.source.name,
            tables=_in_order(self.place, batch.tables),
            batches=1,
            events=batch.events,
            skipped=batch.skipped,
            dead_letters=batch.dead_letters,
            dead_letter_table=self.place.dead_letters,
            seconds=batch.seconds,
            first_dead_letter=batch.first_dead_letter,
            discovered=discovered,
        )
        self.ingested = self.ingested.plus(report)
        if self.on_batch is not None:
            # In a run that ends, the events of a table may yet come in a later batch.
            unmatched = self._tables_without_events() if self.is_continuous and report.undeclared else ()
            self.on_batch(replace(report, unmatched=tuple(each for each in unmatched if each.name not in self.warned)))
            self.warned.update(each.name for each in unmatched)

    def _tables_without_events(self) -> tuple[SourceTable, ...]:
        """The declared tables of which no event has ever come."""
        met = {each.table for each in self.ingested.tables}
        declared = (each for each in self.place.source.tables if each.ingest and each.table not in met)
        return tuple(each for each in declared if not Timeline(self.place.table_uri(each)).exists)

    def report(self) -> IngestReport:
        """The sum of all batches of the run."""
        tables = _in_order(self.place, self.ingested.tables)
        unmatched = self._tables_without_events() if self.ingested.undeclared else ()
        return replace(self.ingested, tables=tables, dead_letter_table=self.place.dead_letters, unmatched=unmatched)


def _in_order(place: SourcePaths, reports: Iterable[TableReport]) -> tuple[TableReport, ...]:
    """One report for each table, in the order of the source's declaration."""
    tables = by_table(reports)
    return tuple(tables[table.table] for table in place.source.tables if table.table in tables)
