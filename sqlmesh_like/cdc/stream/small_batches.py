"""A few events of files or of Kafka, ingested without Spark, whose start takes longer than they do.

The same code reads, nets and commits them, over rows of this process (`in_process`). Owns which sources and batches may
be taken so. What is not certain is left to Spark: it goes on from the same checkpoint, also with a batch of which some
tables are written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from sqlmesh_like import stop_signals
from sqlmesh_like.cdc.frames import Frame
from sqlmesh_like.cdc.in_process.json_values import forget_json
from sqlmesh_like.cdc.in_process.values import NotProvenError
from sqlmesh_like.cdc.sources.batch_marker import BatchMarker
from sqlmesh_like.cdc.sources.catch_up_queue import tables_behind
from sqlmesh_like.cdc.sources.event_log import ExtentOf, LogLines
from sqlmesh_like.cdc.sources.file_log import FileLog
from sqlmesh_like.cdc.sources.kafka_log import KafkaLog
from sqlmesh_like.cdc.sources.parquet_log import ParquetLog
from sqlmesh_like.cdc.stream import kafka_messages
from sqlmesh_like.cdc.stream.kafka_batches import KafkaBatches
from sqlmesh_like.cdc.stream.query_batches import QueryBatches
from sqlmesh_like.cdc.stream.query_records import QueryRecords
from sqlmesh_like.cdc.stream.table_replay import queue_what_is_missing, queue_what_was_skipped
from sqlmesh_like.errors import SmlError
from sqlmesh_like.hudi.stores.commit_guard import require_locks
from sqlmesh_like.plan.router import Router
from sqlmesh_like.project.reading.session_settings import value_settings

if TYPE_CHECKING:
    from sqlmesh_like.cdc.stream.ingest_context import IngestContext
    from sqlmesh_like.cdc.stream.ingest_run import IngestRun

_log = logging.getLogger("sqlmesh_like.cdc")
_LONGEST_LINE = 300
"""Characters of the line that is shown, which may quote an event."""


class Batches(Protocol):
    """The pending batches of a query. Methods raise NotProvenError where only Spark can go on."""

    @property
    def records(self) -> QueryRecords: ...

    def next(self) -> Any:
        """The next batch, which has a `number`; None: there is none."""
        ...

    def lines(self, batch: Any) -> tuple[LogLines, ExtentOf]:
        """The lines of a batch in this process, and what gives their part of the log."""
        ...

    def begin(self, batch: Any) -> None:
        """Record what a batch covers, unless that is recorded."""
        ...


def take_small_batches(run: IngestRun, on_spark: Callable[[str], None]) -> bool:
    """Ingest all pending events of a run that ends, if they are few. False: Spark has to ingest them, or the rest.

    `on_spark` is called with a line that says why Spark has to, unless the target asks for it. Raises IngestError as
    the run's `prepare` and batches do.
    """
    if run.place.target.delta_engine == "spark":
        return False
    reason = _why_spark(run.context)
    try:
        if reason is None:
            with _batches(run.context) as batches:
                _take(run, batches)
    except NotProvenError as error:
        reason = str(error)
    except SmlError:
        raise
    except Exception as error:  # noqa: BLE001 (Spark does what fails here)
        reason = f"an unexpected {type(error).__name__} without it"
        _log.debug("Spark ingests the events of source %s because of", run.place.source.name, exc_info=True)
    finally:
        forget_json()
    if reason is not None:
        line = f"Spark ingests the events of source {run.place.source.name}: {' '.join(reason.split())}"
        on_spark(line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…")
    return reason is None


@contextmanager
def _batches(context: IngestContext) -> Iterator[Batches]:
    records, log = QueryRecords(context.place.checkpoint), context.log
    if isinstance(log, KafkaLog):
        with kafka_messages.open_messages(log) as messages:
            yield KafkaBatches(records, log, messages)
    else:
        assert isinstance(log, FileLog | ParquetLog)
        yield QueryBatches(records, log)


def _take(run: IngestRun, batches: Batches) -> None:
    place, records = run.place, batches.records
    batch = batches.next()
    if batch is None and run.is_followed:
        return
    queue_what_is_missing(run.context)
    queue_what_was_skipped(run.context)
    if any(tables_behind(place).values()):
        raise NotProvenError("tables that are behind")
    run.is_followed = run.is_continuous
    while batch is not None and not stop_signals.is_wished():
        require_locks(place.checkpoint)
        lines, extent_of = batches.lines(batch)
        run.take_here(lines, partial(_mark, records, batch.number, extent_of), partial(batches.begin, batch))
        records.complete(batch.number)
        batch = batches.next()


def _mark(records: QueryRecords, number: int, extent_of: ExtentOf, events: Frame | None) -> BatchMarker:
    return BatchMarker(records.query, number, extent_of(events))


def _why_spark(context: IngestContext) -> str | None:
    """Why Spark has to ingest a source, whatever its events; None where it need not."""
    place = context.place
    if isinstance(context.log, KafkaLog) and (reason := kafka_messages.why_not_here()):
        return reason
    if setting := next(iter(value_settings(place.target.spark)), None):
        return f"the target sets {setting}, which may change values"
    if isinstance(context.log, KafkaLog) and any(name.startswith("spark.kafka.") for name in place.target.spark):
        return "the target has settings of Spark's Kafka client"
    router = Router(place.target)
    uris = [place.table_uri(table) for table in place.source.tables if table.ingest is not None]
    reasons = (router.why_spark_commits(uri) for uri in (place.checkpoint, *uris))
    return router.why_spark_registers or next((reason for reason in reasons if reason), None)
