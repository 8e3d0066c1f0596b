"""A few events of files, ingested without Spark, whose start takes longer than they do.

The same code reads, nets and commits them, over rows of this process (`in_process`). Owns which sources and batches may
be taken so. What is not certain is left to Spark: it goes on from the same checkpoint, also with a batch of which some
tables are written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sqlmesh_like import stop_signals
from sqlmesh_like.cdc.in_process.json_values import forget_json
from sqlmesh_like.cdc.in_process.values import NotProvenError
from sqlmesh_like.cdc.sources.batch_marker import BatchMarker
from sqlmesh_like.cdc.sources.catch_up_queue import tables_behind
from sqlmesh_like.cdc.sources.database.spool_log import SpoolLog
from sqlmesh_like.cdc.sources.file_log import FileLog
from sqlmesh_like.cdc.sources.kafka_log import KafkaLog
from sqlmesh_like.cdc.stream.local_lines import listed_files, local_lines
from sqlmesh_like.cdc.stream.query_batches import QueryBatches
from sqlmesh_like.cdc.stream.table_replay import queue_what_is_missing, queue_what_was_skipped
from sqlmesh_like.errors import SmlError
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.commit_guard import require_locks
from sqlmesh_like.plan.router import Router

if TYPE_CHECKING:
    from sqlmesh_like.cdc.stream.ingest_context import IngestContext
    from sqlmesh_like.cdc.stream.ingest_run import IngestRun

_log = logging.getLogger("sqlmesh_like.cdc")
_LONGEST_LINE = 300
"""Characters of the line that is shown, which may quote an event."""


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
            _take(run)
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


def _take(run: IngestRun) -> None:
    place, log = run.place, run.context.log
    assert isinstance(log, FileLog)
    batches = QueryBatches(Path(folder(place.checkpoint).path))
    # Listed once, so that the call ends where files never cease to arrive.
    listed = listed_files(log)
    batch = batches.next(listed, log.max_files)
    queue_what_is_missing(run.context)
    queue_what_was_skipped(run.context)
    if any(tables_behind(place).values()):
        raise NotProvenError("tables that are behind")
    while batch is not None and not stop_signals.is_wished():
        require_locks(place.checkpoint)
        lines, extent = local_lines(log, batch.files)
        run.take_here(lines, BatchMarker(batches.query, batch.number, extent), partial(batches.begin, batch))
        batches.end(batch)
        batch = batches.next(listed, log.max_files)


def _why_spark(context: IngestContext) -> str | None:
    """Why Spark has to ingest a source, whatever its events; None where it need not."""
    place = context.place
    if isinstance(context.log, KafkaLog):
        return "they come from Kafka"
    if type(context.log) not in (FileLog, SpoolLog):
        return "they are not lines of files"
    if context.registry is not None:
        return "a schema registry has their schemas"
    if not folder(place.checkpoint).is_local:
        return "its checkpoint is not on this machine"
    if any(name.startswith("spark.sql.") for name in place.target.spark):
        return "the target has settings of Spark SQL"
    router = Router(place.target)
    uris = (place.table_uri(table) for table in place.source.tables if table.ingest is not None)
    return router.why_spark_registers or router.why_spark_computes(place.checkpoint, *uris)
