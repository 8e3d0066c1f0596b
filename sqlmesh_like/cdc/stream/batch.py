"""One batch of a source's log.

Owns the order of its commits; `events` reads lines as events, `table_batch` writes each table.

Malformed events are stored first, tables follow in parallel. A table that fails does not stop the others: it is
recorded as behind (`catch_up_queue`) and catches up later. Any other failure fails the batch, which is then replayed;
tables that already have it skip it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sqlmesh_like.cdc.decode.decode import Decoded, decode
from sqlmesh_like.cdc.decode.events import Routed, events_for, events_of, route_events, routed_files
from sqlmesh_like.cdc.decode.repeated_schemas import NO_SCHEMAS, RepeatedSchemas
from sqlmesh_like.cdc.formats.source_types import quoted_name, sql_literal
from sqlmesh_like.cdc.frames import Frame, held
from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.in_process.values import NotProvenError
from sqlmesh_like.cdc.report import TableReport
from sqlmesh_like.cdc.sources.batch_marker import BatchMarker
from sqlmesh_like.cdc.sources.discover import SourceName
from sqlmesh_like.cdc.sources.event_log import LogLines
from sqlmesh_like.cdc.sources.offset_range import Files
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.cdc.stream.ingest_context import IngestContext
from sqlmesh_like.cdc.tables import dead_letters
from sqlmesh_like.cdc.tables.dead_letters import stored_dead_letters
from sqlmesh_like.cdc.tables.table_batch import commit
from sqlmesh_like.errors import NodeError, ProjectError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.names import TableName
from sqlmesh_like.project.nodes import IngestSource, SourceTable
from sqlmesh_like.remedies import remedy

MANY_TABLES = 8
_ORDER = "_sml_order"
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class BatchReport:
    """What one batch ingested. `mark` identifies it; `first_dead_letter`: location and reason of the first letter.

    `undeclared`: source tables whose events were skipped because no declaration takes them.
    """

    tables: tuple[TableReport, ...]
    skipped: Mapping[str, int] = field(default_factory=dict)
    events: int = 0
    dead_letters: int = 0
    seconds: float = 0.0
    mark: BatchMarker | None = None
    first_dead_letter: str | None = None
    undeclared: frozenset[SourceName] = frozenset()


@contextmanager
def in_memory(frame: Frame) -> Iterator[Frame]:
    kept = held(frame)
    try:
        yield kept.frame
    finally:
        kept.release()


def ingest_batch(
    context: IngestContext,
    lines: LogLines,
    mark_of: Callable[[Frame | None], BatchMarker],
    *,
    without: Collection[str] = (),
    only: str | None = None,
    before_commits: Callable[[], None] | None = None,
    schemas: RepeatedSchemas = NO_SCHEMAS,
) -> BatchReport:
    """Commit a batch to all tables it touches, except those named in `without`, or again to `only` one.

    `lines`: `LINE_COLUMNS` of `event_log`, or files of typed rows. `mark_of` gives the batch's mark; it is called once
    the events are in memory; `before_commits` is called before the first commit to a table. `schemas`: those that
    messages repeat, as far as they are known. Raises ProjectError, and IngestError under `on_bad_record: fail`.
    """
    started = time.monotonic()
    place = context.place
    files = lines if isinstance(lines, list) else []
    with _events(context, lines, schemas) as events:
        mark = mark_of(events)
        fault_point("ingest.begin")
        routing = (
            routed_files(place, files) if events is None else route_events(place, events, context.registry, schemas)
        )
        if only is not None:
            routing = Routed({name: share for name, share in routing.shares.items() if name == only}, {}, 0, 0)
        routing = replace(
            routing, shares={name: share for name, share in routing.shares.items() if name not in without}
        )
        is_here = _is_here(lines)
        letter_rows = _letters(context, is_here=is_here)
        decoded, failed = decode_all(place, events, routing, letter_rows, in_order=isinstance(mark.extent, Files))
        try:
            _require_all(failed, is_here=is_here)
            # A mark of its own: the batch's letters are already written, but possibly without those of this table.
            bad_mark = mark if only is None else replace(mark, query=f"{mark.query}/{only}")
            bad = _accepted_letters(context, events, routing, decoded, schemas)
            if before_commits is not None:
                before_commits()
            first_bad = _write_dead_letters(context, bad, bad_mark)
            fault_point("ingest.dead_letters")
            done = side_by_side(place, decoded, lambda each: commit(place, each, mark), lambda each: each.layout.table)
            _require_all(done[1], is_here=is_here)
            bad_of = {each.layout.table.table: each.counts.bad for each in decoded}
            tables = tuple(_add_measures(each, routing, bad_of) for each in (*failed, *done[0], *done[1]))
            fault_point("ingest.batch")
            count = routing.bad + sum(each.counts.bad for each in decoded)
            return BatchReport(
                *(tables, routing.skipped, routing.lines, count, time.monotonic() - started, mark, first_bad),
                undeclared=routing.undeclared,
            )
        finally:
            for each in decoded:
                each.release()


def _is_here(lines: LogLines) -> bool:
    """Whether the rows are in this process, not in Spark."""
    frames = [files.frame for files in lines] if isinstance(lines, list) else [lines]
    return any(isinstance(frame, RowFrame) for frame in frames)


def _require_all(failed: Sequence[TableReport], *, is_here: bool) -> None:
    """Leave a batch to Spark if this process failed with a table, so that only Spark's failures are reported."""
    if is_here and failed:
        raise NotProvenError(f"{failed[0].table}: it failed without Spark, {failed[0].error}")


@contextmanager
def _events(context: IngestContext, lines: LogLines, schemas: RepeatedSchemas) -> Iterator[Frame | None]:
    """The events of lines, in memory; None for files of typed rows, which are read without this step."""
    if isinstance(lines, list):
        yield None
        return
    place = context.place
    assert place.source.ingest is not None
    # Where types are declared, only names must be known of an event without a schema.
    is_declared = any(column.type for table in place.source.tables for column in table.columns)
    with (
        events_of(lines, place.source.ingest, context.registry, with_members=is_declared, schemas=schemas) as named,
        in_memory(_by_table(place, named)) as events,
    ):
        yield events


def _by_table(place: SourcePaths, events: Frame) -> Frame:
    """Sort cached events by source table where there are many, so that each table reads only its own.

    Spark 3.5 takes the order of cached rows along where the columns that it names are left out, and then fails on a
    frame that is joined or united with itself. Of rows that are ordered by a value that they do not have, in a
    projection that computes something, it takes none.
    """
    if len(place.source.tables) <= MANY_TABLES or isinstance(events, RowFrame):
        return events
    by = "concat_ws('/', source_table, source_schema, database)"
    others = [quoted_name(name) for name in events.columns if name != "source_table"]
    ordered = events.selectExpr("*", f"{by} as {_ORDER}").sortWithinPartitions(_ORDER)
    return ordered.selectExpr(*others, "concat(source_table) as source_table").select(*events.columns)


def _add_measures(report: TableReport, routing: Routed, bad_of: Mapping[TableName, int]) -> TableReport:
    """Add the table's number of lines, of dead letters, and its lag behind the log, in seconds."""
    share = next(each for each in routing.shares.values() if each.table.table == report.table)
    lag = None if share.logged_at is None or report.error else max(0.0, time.time() - share.logged_at / 1000)
    bad = 0 if report.error else bad_of.get(report.table, 0)
    return replace(report, events=share.lines, lag=lag, dead_letters=bad)


def decode_all(
    place: SourcePaths,
    events: Frame | None,
    routing: Routed,
    letter_rows: Frame | None = None,
    *,
    in_order: bool,
    again: bool = False,
) -> tuple[list[Decoded], list[TableReport]]:
    """Decode the batch for each table. Returns these, and reports of the tables that could not be decoded.

    `letter_rows`: stored dead letters, None where there are none or the events are these letters (`again`). `in_order`:
    the whole log has one order; otherwise only events of one partition are ordered.
    """
    keyed = None if letter_rows is None else letter_rows.where("row_key is not null")
    waiting = set() if keyed is None else {row[0] for row in keyed.select("table_name").distinct().collect()}

    def one(name: str) -> Decoded:
        share = routing.shares[name]
        own = keyed.where(f"table_name = {sql_literal(name)}") if keyed is not None and name in waiting else None
        own_events = None if events is None else events_for(events, share)
        return decode(place, share, own_events, own, in_order=in_order, again=again)

    return side_by_side(place, list(routing.shares), one, lambda name: routing.shares[name].table)


def dead_letters_of(
    events: Frame | None, routing: Routed, decoded: list[Decoded], schemas: RepeatedSchemas = NO_SCHEMAS
) -> list[Frame]:
    """The malformed events of a batch as rows of dead letters, with their texts as they came."""
    bad = [(each.events.where("reason is not null"), each.layout) for each in decoded if each.counts.bad]
    rows = [dead_letters.dead_letter_rows(schemas.restored(each), layout) for each, layout in bad]
    if events is None or not routing.bad:
        return rows
    return [*rows, dead_letters.dead_letter_rows(schemas.restored(events.where("kind = 'bad'")))]


def _letters(context: IngestContext, *, is_here: bool) -> Frame | None:
    """The source's stored dead letters, where the events are: in Spark or here; None where there are none."""
    if is_here:
        return dead_letters.dead_letters_here(context.place)
    return stored_dead_letters(context.spark, context.place) if dead_letters.are_open(context.place) else None


def _accepted_letters(
    context: IngestContext,
    events: Frame | None,
    routing: Routed,
    decoded: list[Decoded],
    schemas: RepeatedSchemas,
) -> list[Frame]:
    """A batch's dead letters. Raises IngestError where the source takes none."""
    bad = dead_letters_of(events, routing, decoded, schemas)
    ingest = context.place.source.ingest
    if bad and ingest and ingest.on_bad_record == "fail":
        raise dead_letters.refuse(bad, context.root)
    return bad


def _write_dead_letters(context: IngestContext, bad: Sequence[Frame], mark: BatchMarker) -> str | None:
    """Write a batch's dead letters. Returns location and reason of the first."""
    if not bad:
        return None
    dead_letters.write_dead_letters(context.place, bad, mark)
    reason, where = dead_letters.first_reason(bad, context.root)
    return f"{where}: {reason}"


def side_by_side(
    place: SourcePaths, items: Sequence[Item], work: Callable[[Item], Result], table_of: Callable[[Item], SourceTable]
) -> tuple[list[Result], list[TableReport]]:
    """Run `work` for every table, several at a time, and wait for all; a table's failure becomes its report."""
    workers = place.source.ingest.concurrency if place.source.ingest else IngestSource.concurrency
    with ThreadPoolExecutor(max(1, workers)) as pool:
        futures = [(table_of(item), pool.submit(work, item)) for item in items]
    done: list[Result] = []
    failed: list[TableReport] = []
    for table, future in futures:
        try:
            done.append(future.result())
        except NotProvenError as error:
            raise NotProvenError(f"{table.table}: {error}") from error
        except ProjectError:
            raise
        except Exception as error:  # noqa: BLE001 (one table's failure must not stop the others)
            failed.append(TableReport(table.table, error=short(error)))
    return done, failed


def short(error: Exception) -> str:
    """An error in one line: the innermost cause of a Java stack; NodeErrors in full; a second line: what to do."""
    if isinstance(error, NodeError):
        return str(error)
    # Not of Spark or its JVM, which need not be imported to tell.
    if not type(error).__module__.startswith(("pyspark.", "py4j.")):
        known = remedy(error, "sml ingest")
        return f"{error}\n  {known}" if known else f"unexpected {type(error).__name__}: {error}"[:500]
    causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
    # Py4J's first line says only which method failed.
    lines = (str(error).strip().splitlines() or [type(error).__name__])[:2]
    said = (causes[-1].removeprefix("Caused by: ") if causes else " ".join(line.strip(": ") for line in lines))[:500]
    known = remedy(said, "sml ingest")
    return f"{said}\n  {known}" if known else said
