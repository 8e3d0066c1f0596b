"""Dead letters ingested again, after their cause was fixed. Owns that no event is lost, duplicated or overtaken.

They are processed like all lines. A table accepts a past event only if no later one has changed its key: with
`order_by`, every batch follows that rule; without it, rows and the side table of deletes (which is kept for all tables
while there are dead letters) have the log position of the newest event of a key. Dead letters are removed when all
tables are written: after an earlier crash they are ingested once more, without effect.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial, reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sqlmesh_like.cdc.decode.decode import Decoded, with_events
from sqlmesh_like.cdc.decode.events import events_of, route_events, waiting
from sqlmesh_like.cdc.formats.source_types import sql_literal
from sqlmesh_like.cdc.frames import in_spark, union_frames
from sqlmesh_like.cdc.merge.tombstones import RETENTION_DAYS, read_floors
from sqlmesh_like.cdc.report import IngestReport, by_table
from sqlmesh_like.cdc.schema.ods_layout import POSITION
from sqlmesh_like.cdc.sources.catch_up_queue import tables_behind
from sqlmesh_like.cdc.stream.batch import dead_letters_of, decode_all, in_memory, side_by_side
from sqlmesh_like.cdc.stream.ingest_context import IngestContext
from sqlmesh_like.cdc.stream.ingest_run import open_run
from sqlmesh_like.cdc.tables import dead_letters
from sqlmesh_like.cdc.tables.last_commits import note_last_commits
from sqlmesh_like.cdc.tables.table_batch import commit_again
from sqlmesh_like.cdc.tables.truncates import truncates_of
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import KEY
from sqlmesh_like.project.nodes import ParsedProject, Source, Target

_SAME_PART = "substring_index({0}, '|', 2) = substring_index({1}, '|', 2)"
_UNKNOWN = "its row was changed since from another partition of the topic: nobody knows which event was first"


def replay(spark: SparkSession, project: ParsedProject, target: Target, source: Source) -> IngestReport:
    """Ingest the dead letters of a source again. Those that are malformed again stay, with the new reason.

    Letters older than the retention of deletes stay too, and those of tables that are behind or not declared.
    """
    run = open_run(lambda: spark, project, target, source)
    run.prepare()
    context, caught_up = run.context, run.report()
    kept = dead_letters.stored_dead_letters(spark, context.place)
    if kept is None:
        return caught_up
    with in_memory(kept) as letter_rows:
        report = _ingest_letters(context, in_spark(letter_rows))
    written = [each.table for each in report.tables if not each.error]
    note_last_commits(context.place, written, dead_letters=True)
    both = by_table((*caught_up.tables, *report.tables))
    return replace(report, tables=tuple(both.values()), batches=caught_up.batches + report.batches)


def _ingest_letters(context: IngestContext, letter_rows: DataFrame) -> IngestReport:
    place = context.place
    assert place.source.ingest is not None
    in_order = in_one_order(place.source)
    is_young = f"place is not null and ingested_at > current_timestamp() - interval {RETENTION_DAYS} days"
    lines = dead_letters.lines_of(letter_rows.where(is_young))
    with events_of(lines, place.source.ingest, context.registry) as named, in_memory(named) as events:
        behind = tables_behind(place)
        routing = route_events(place, events, context.registry)
        routing = replace(routing, shares={name: share for name, share in routing.shares.items() if name not in behind})
        decoded, unfit = decode_all(place, events, routing, in_order=in_order, again=True)
        try:
            decoded = [_in_time(context, each, in_order=in_order) for each in decoded]
            again = partial(commit_again, place, in_order=in_order)
            done, failed = side_by_side(place, decoded, again, lambda each: each.layout.table)
            unwritten = {each.table for each in (*unfit, *failed)}
            written = [share for share in routing.shares.values() if share.table.table not in unwritten]
            bad = in_spark(union_frames([letter_rows.where("false"), *dead_letters_of(events, routing, decoded)]))
            unread = in_spark(waiting(events, written)).toDF("file", "position")
            old = letter_rows.where(f"not ({is_young})")
            stay = old.unionByName(letter_rows.join(unread, ["file", "position"], "semi"))
            before, left = letter_rows.count(), dead_letters.resolve_dead_letters(place, letter_rows, bad, stay)
        finally:
            for each in decoded:
                each.release()
    tables = tuple(by_table((*unfit, *failed, *done)).values())
    return IngestReport(
        place.source.name, tables, 1, routing.lines, routing.skipped, left, place.dead_letters, resolved=before - left
    )


def in_one_order(source: Source) -> bool:
    """Whether the whole log has one order; in Kafka, only events of one partition are ordered."""
    return source.ingest is not None and source.ingest.kafka is None


def _in_time(context: IngestContext, decoded: Decoded, *, in_order: bool) -> Decoded:
    """Drop events from before a truncate; events whose order to a truncate or a row is unknown get a `reason`."""
    layout, events = decoded.layout, in_spark(decoded.events)
    truncates = truncates_of(context.place, layout.table)
    for origin, at in truncates.items():
        of = f"origin = {sql_literal(origin)} and " if origin else ""
        same = "true" if in_order else _SAME_PART.format("position", sql_literal(at))
        events = events.where(f"not ({of}{same} and position < {sql_literal(at)})")
        events = _mark_unknown(events, f"{of}not ({same})")
    if not in_order and not layout.order_columns and layout.ingest.primary_key:
        events = _among_changed(context, decoded, events)
    return decoded if events is decoded.events else with_events(decoded, events)


def _among_changed(context: IngestContext, decoded: Decoded, events: DataFrame) -> DataFrame:
    """Give a `reason` to events whose key was last changed from another partition: their order is unknown."""
    spark, place, layout = context.spark, context.place, decoded.layout
    uri = place.table_uri(decoded.layout.table)
    keyed = events.withColumn("own_key", F.expr(layout.record_key("row")))
    seen = [read_floors(spark, place.tombstones_uri(layout.table))]
    seen += [spark.read.format("hudi").load(uri)] if Timeline(uri).frontier else []
    known = [frame.select(KEY, POSITION).toDF("own_key", "seen") for frame in seen if frame is not None]
    if not known:
        return events
    latest = reduce(DataFrame.unionByName, known).groupBy("own_key").agg({"seen": "max"}).toDF("own_key", "seen")
    joined = keyed.join(latest, "own_key", "left")
    is_elsewhere = f"seen is not null and not ({_SAME_PART.format('position', 'seen')})"
    return _mark_unknown(joined, is_elsewhere).select(*events.columns)


def _mark_unknown(events: DataFrame, condition: str) -> DataFrame:
    return events.withColumn("reason", F.expr(f"coalesce(reason, if({condition}, {sql_literal(_UNKNOWN)}, null))"))
