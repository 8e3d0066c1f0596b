"""Ingestion of pending events, or of all that arrive. Owns which sources are ingested; `cdc.stream` ingests them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sqlmesh_like import stop_signals
from sqlmesh_like.app.lakes.lake_lock import HeldLocks, lake_lock
from sqlmesh_like.app.lakes.lake_tables import require_lake
from sqlmesh_like.app.lakes.spark_session import session_for
from sqlmesh_like.app.lakes.table_locks import ingestion_locks
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.cdc.report import IngestReport
from sqlmesh_like.cdc.sources.brokers import check_brokers
from sqlmesh_like.cdc.sources.database.database_check import check_database
from sqlmesh_like.cdc.sources.database.engine import engine_jars
from sqlmesh_like.cdc.sources.source_check import check_source, check_start, check_trigger
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.cdc.sources.waiting_files import bytes_waiting
from sqlmesh_like.cdc.stream.metrics import Metrics
from sqlmesh_like.errors import SelectionError, UsageError, nearest
from sqlmesh_like.project.nodes import Source
from sqlmesh_like.spark.jvm.jars import ensure_jars

if TYPE_CHECKING:
    from sqlmesh_like.spark.jvm.session import Session


_SHORT = 2 * 1024**2
"""Bytes of files whose ingestion ends before optimized Java code would pay off."""
ASKING = "asking the brokers"
"""The phase in which it is found out whether brokers and databases answer."""
WAITING = "waiting for events"
"""The phase of a continuous ingestion."""


@dataclass(frozen=True)
class IngestRequest:
    """The request of an ingestion. `trigger`: time between continuous batches; `start`: position to read again from.

    `metrics`: files to which the metrics of each batch are written. `source`: the name of the one source to ingest,
    also where no table of it is declared; None for the selected ones. `again`: tables (`orders`, `shop.orders`) of a
    database whose rows are all read again.
    """

    continuous: bool = False
    trigger: str | None = None
    start: str | None = None
    replays_dead_letters: bool = False
    metrics: tuple[str, ...] = ()
    source: str | None = None
    again: tuple[str, ...] = ()


class IngestListener(Protocol):
    """Receives sources and reports of ingestion, one per source or batch, from any thread."""

    def reading(self, source: Source, *, dead_letters: bool = False) -> None: ...

    def ingested(self, report: IngestReport) -> None: ...


def ingest(loaded: Loaded, request: IngestRequest, listener: IngestListener) -> list[IngestReport]:
    """Ingest the requested sources and return a report of each. Raises UsageError before anything is read.

    SIGTERM or Ctrl-C ends a continuous ingestion after the current batch. A selected table selects its whole source.
    """
    sources = _sources_to_ingest(loaded, request.source)
    for source in sources:
        check_source(loaded.project, source)
        check_start(source, request.start)
    check_trigger(request.trigger, continuous=request.continuous)
    if request.replays_dead_letters and (request.continuous or request.start):
        raise UsageError("--replay-dead-letters goes with neither --continuous nor --from")
    again = _read_again(sources, request)
    metrics = Metrics(request.metrics)
    ask_sources(loaded, sources)
    is_short = _is_short(loaded, sources, request)
    with (
        lake_lock(loaded, "ingest", ingestion_locks(loaded, sources)) as held,
        session_for(loaded, sources, is_short=is_short) as session,
    ):
        if request.continuous:
            return _run_continuously(session, loaded, held, sources, request, listener, metrics)
        with stop_signals.defer_signals():  # the current batch is completed
            if request.replays_dead_letters:
                return list(_replay_dead_letters(session(), loaded, sources, listener))
            return list(_ingest_pending(session, loaded, sources, request, again, listener, metrics))


def _read_again(sources: Sequence[Source], request: IngestRequest) -> dict[str, set[str]]:
    """The tables to read again, by source. Raises UsageError where that is not possible."""
    if request.again and (request.continuous or request.start or request.replays_dead_letters):
        raise UsageError("--resnapshot goes with none of --continuous, --from, --replay-dead-letters")
    result: dict[str, set[str]] = {}
    for name in request.again:
        of_source, _, identifier = name.rpartition(".")
        named = [
            (source, table)
            for source in sources
            for table in source.tables
            if table.ingest is not None and table.name == identifier and of_source in ("", source.name)
        ]
        if len(named) != 1:
            declared = [f"{source.name}.{table.name}" for source in sources for table in source.tables if table.ingest]
            text = f"{len(named)} selected sources declare" if named else "no selected source declares"
            hint = f"name it as {named[0][0].name}.{identifier}" if named else nearest(name, declared)
            raise UsageError(f"{text} the table {name} of --resnapshot", hint=hint)
        ((source, table),) = named
        if source.ingest is None or source.ingest.database is None:
            raise UsageError(
                f"source {source.name} has no database whose rows --resnapshot could read",
                location=source.declared_at,
                hint=f"sml ingest -s source:{source.name} --from earliest reads all of its events again",
            )
        result.setdefault(source.name, set()).add(table.name)
    return result


def ask_sources(loaded: Loaded, sources: Sequence[Source]) -> None:
    """Ask brokers and databases whether they can be read, and fetch what reads them. Raises SmlError."""
    loaded.reporter.phase(ASKING)
    for source in sources:
        check_brokers(source)
        if source.ingest is not None and source.ingest.database is not None:
            check_database(source, SourcePaths(loaded.target, source))
            with loaded.reporter.downloading() as progress:
                ensure_jars(engine_jars(source.ingest.database.kind), progress=progress)


def _is_short(loaded: Loaded, sources: Sequence[Source], request: IngestRequest) -> bool:
    """Whether all that is ingested are a few small files."""
    if request.continuous or request.replays_dead_letters or request.start is not None:
        return False
    sizes = [bytes_waiting(loaded.project, SourcePaths(loaded.target, source)) for source in sources]
    return all(size is not None for size in sizes) and sum(size or 0 for size in sizes) < _SHORT


def _sources_to_ingest(loaded: Loaded, name: str | None) -> list[Source]:
    require_lake(loaded)
    if name is not None:
        return [source for source in loaded.project.sources if source.ingest and source.name == name]
    sources = selected_sources(loaded, {node.unique_id for node in loaded.select_nodes("source")})
    if not sources:
        hint = "give a source an `ingest:` block, or select one that has it, e.g. -s source:shop"
        raise SelectionError("no ingested source is selected", hint=hint)
    return sources


def selected_sources(loaded: Loaded, wanted: Collection[str]) -> list[Source]:
    """Return the ingested sources that have a wanted table (by unique id), or discover tables if none is selected."""
    takes_all = not loaded.invocation.is_selecting
    return [
        source
        for source in loaded.project.sources
        if source.ingest
        and (
            any(table.ingest and table.unique_id in wanted for table in source.tables)
            or (takes_all and source.ingest.discover)
        )
    ]


def _ingest_pending(
    session: Callable[[], Session],
    loaded: Loaded,
    sources: Sequence[Source],
    request: IngestRequest,
    again: Mapping[str, Collection[str]],
    listener: IngestListener,
    metrics: Metrics,
) -> Iterator[IngestReport]:
    """Ingest one source after another and report before and after each. `again`: tables to read again, by source."""
    from sqlmesh_like.cdc.stream.ingest_run import ingest_source

    for source in sources:
        if stop_signals.is_wished():
            return
        listener.reading(source)
        loaded.reporter.phase(f"ingesting the events of source {source.name}")
        tables = again.get(source.name, ())
        report = ingest_source(
            *(session, loaded.project, loaded.target, source, request.start, metrics.report, tables),
            on_spark=loaded.reporter.notify,
        )
        listener.ingested(report)
        yield report


def _replay_dead_letters(
    spark: Session, loaded: Loaded, sources: Sequence[Source], listener: IngestListener
) -> Iterator[IngestReport]:
    """Ingest the dead letters of one source after another again."""
    from sqlmesh_like.cdc.stream.replay import replay

    for source in sources:
        if stop_signals.is_wished():
            return
        listener.reading(source, dead_letters=True)
        loaded.reporter.phase(f"ingesting the dead letters of source {source.name}")
        report = replay(spark, loaded.project, loaded.target, source)
        listener.ingested(report)
        yield report


def _run_continuously(
    session: Callable[[], Session],
    loaded: Loaded,
    held: HeldLocks,
    sources: Sequence[Source],
    request: IngestRequest,
    listener: IngestListener,
    metrics: Metrics,
) -> list[IngestReport]:
    """Ingest all sources in parallel until a signal stops them or one of them fails."""
    from sqlmesh_like.cdc.stream.continuous import run_until_stopped
    from sqlmesh_like.cdc.stream.ingest_run import open_run

    for source in sources:
        listener.reading(source)

    def on_batch(report: IngestReport) -> None:
        listener.ingested(report)
        metrics.report(report)

    runs = [open_run(session, loaded.project, loaded.target, source, on_batch) for source in sources]
    loaded.reporter.phase(WAITING)
    return run_until_stopped(
        *(runs, triggers(sources, request.trigger), request.start, held.require_held), on_spark=loaded.reporter.notify
    )


def triggers(sources: Sequence[Source], trigger: str | None) -> list[str]:
    """Return the time between batches of each source: the call's `trigger`, else its own."""
    return [trigger or (source.ingest.trigger if source.ingest else "") for source in sources]
