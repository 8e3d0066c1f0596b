"""One table's part of one batch: its commit. Owns bringing a table to its next state; `decode` reads events."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlmesh_like.cdc.decode.decode import Decoded, stored_table, warn_of_unknown_types
from sqlmesh_like.cdc.formats.source_types import quoted_name
from sqlmesh_like.cdc.frames import Frame, frame_query, held, in_spark, union_frames
from sqlmesh_like.cdc.in_process.commits import commit_frame, stored_rows, without_remains
from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.merge import merge_sql
from sqlmesh_like.cdc.merge.defaults import backfill_defaults, backfilled_here
from sqlmesh_like.cdc.merge.tombstones import floors_for, write_floors
from sqlmesh_like.cdc.report import TableReport
from sqlmesh_like.cdc.schema.column_record import column_record
from sqlmesh_like.cdc.schema.creation_contract import CONTRACT_KEY, check_creation_contract, creation_contract
from sqlmesh_like.cdc.schema.ods_layout import OdsLayout
from sqlmesh_like.cdc.sources.batch_marker import MARKER_KEY, BatchMarker
from sqlmesh_like.cdc.sources.offset_range import Files
from sqlmesh_like.cdc.sources.row_files import FILE_START
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.cdc.tables.dead_letters import are_open, read_after
from sqlmesh_like.cdc.tables.stored_versions import joined_rows, looked_up_rows
from sqlmesh_like.cdc.tables.truncates import note_truncates
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.bucket_count import BUCKETS_KEY
from sqlmesh_like.hudi.commits import STATE_PREFIX
from sqlmesh_like.hudi.file_sizing import buckets_for, fits_in_a_file, tasks_for
from sqlmesh_like.hudi.recovery.table_swap import recover
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import IS_DELETED, KEY
from sqlmesh_like.plan.router import Router
from sqlmesh_like.spark.tables.hudi_table import HudiTable, write
from sqlmesh_like.spark.writer.local_commit import commit_locally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEY_BYTES = 24
"""Size of a row beside its source's columns: its key twice, its log position, Hudi's own columns."""
_ROWS_A_TASK = 50_000
"""Rows that one task writes in less time than starting a second one takes."""
_IS_NETTED = {"hoodie.combine.before.upsert": "false"}
"""Hudi need not look for duplicates of a key and partition, which takes half the time of a large upsert."""


def commit(place: SourcePaths, decoded: Decoded, mark: BatchMarker) -> TableReport:
    """Bring a table to its state after the batch, in one commit; do nothing where it has the batch already."""
    layout, uri = decoded.layout, place.table_uri(decoded.layout.table)
    if isinstance(decoded.events, RowFrame):
        without_remains(uri)
    elif not Timeline(uri).exists:
        recover(uri)  # a table that was complete, but not yet in its place, when a process died
    if mark.is_on(uri):
        return TableReport(layout.table.table, replayed=decoded.counts.good)
    # A replayed letter must be compared with later deletes, which without an order only the side table remembers.
    remembers = bool(layout.order_columns) or are_open(place)
    in_order = isinstance(mark.extent, Files)
    marks = {MARKER_KEY: mark.to_json(decoded.rereads)}
    return _commit_batch(place, decoded, marks, remembers=remembers, in_order=in_order)


def commit_again(place: SourcePaths, decoded: Decoded, *, in_order: bool) -> TableReport:
    """Ingest past events, each only if no later one has changed its key; the table's batch marker stays the same.

    `in_order`: the whole log has one order; otherwise the caller has checked the order in tables without `order_by`.
    """
    known = Timeline(place.table_uri(decoded.layout.table)).extra(STATE_PREFIX + MARKER_KEY)
    marks = {MARKER_KEY: known} if known else {}
    return _commit_batch(place, decoded, marks, remembers=True, in_order=in_order, again=True)


def _commit_batch(
    place: SourcePaths,
    decoded: Decoded,
    marks: Mapping[str, str],
    *,
    remembers: bool,
    in_order: bool,
    again: bool = False,
) -> TableReport:
    started = time.monotonic()
    layout, uri = decoded.layout, place.table_uri(decoded.layout.table)
    is_noted = bool(decoded.truncates or decoded.has_other_rereads)
    if not decoded.counts.good and not (is_noted and Timeline(uri).commit_instants):
        # A table without commits has no rows to delete, but a replay of its dead letters must know the truncate.
        note_truncates(place, layout.table, decoded.truncates)
        return TableReport(layout.table.table, retained=decoded.retained)
    table, metadata = hudi_table(place, layout, uri, decoded)
    _keep_columns(place, decoded, uri)
    tombstones = place.tombstones_uri(layout.table)
    floors = None
    if layout.order_columns or again:
        floors = floors_for(decoded.good, tombstones, layout, of_all=bool(decoded.truncates))
    result, is_ranked = _decisions(decoded, uri, floors, in_order=in_order, again=again)
    is_counted = not is_ranked and not _are_netted(decoded) and (result is None or not remembers)
    # Cached, because the change log, its partitions and Hudi each read the rows.
    kept = None if result is None else held(result)
    decisions = result if kept is None else kept.frame
    if decisions is None:
        decisions = frame_query(merge_sql.decisions_of_one(layout), events=decoded.good)
    try:
        report, to_remember = _counted_before(decoded) if is_counted else _count_decisions(decisions, layout)
        note_truncates(place, layout.table, decoded.truncates)
        fault_point("ingest.truncates")
        if remembers and to_remember:
            write_floors(tombstones, layout, decisions, floors)
            fault_point("ingest.floors")
        _write_rows(
            place,
            decoded,
            decisions,
            table,
            {**metadata, **marks},
            report,
            is_ranked=is_ranked,
            is_netted=result is not None,
        )
        warn_of_unknown_types(decoded)
        fault_point("ingest.table")
        _register(place, decoded, uri)
        seconds = time.monotonic() - started
        return replace(report, seconds=seconds, changes=decoded.settled.changes, retained=decoded.retained)
    finally:
        if kept is not None:
            kept.release()


def _write_rows(
    place: SourcePaths,
    decoded: Decoded,
    decisions: Frame,
    table: HudiTable,
    metadata: Mapping[str, str],
    report: TableReport,
    *,
    is_ranked: bool,
    is_netted: bool,
) -> None:
    """Commit the rows that the decisions leave. `is_netted`: a key may have had several events or versions."""
    layout = decoded.layout
    # An empty table needs no lookup of rows; but a bulk insert would insert rows marked as deleted.
    is_load = report.upserts > 0 and not Timeline(table.uri).commit_instants
    if is_load and not is_netted:
        rows = frame_query(merge_sql.first_load_sql(layout, _position(decoded)), events=decoded.good)
    else:
        rows = frame_query(merge_sql.net_rows(layout, with_floors=is_ranked), decisions=decisions)
        rows = rows.where(f"not {IS_DELETED}") if is_load else rows
    written = {**metadata, **column_record(decoded.settled)}
    if isinstance(rows, RowFrame):
        if decoded.defaults:
            rows = backfilled_here(rows, stored_rows(Timeline(table.uri)), layout, decoded.defaults)
        commit_frame(rows, table, written, layout.stored_columns, Router(place.target).most_bytes)
    elif is_load:
        write(rows, table, "bulk_insert", written, _IS_NETTED)
    else:
        _upsert(place, decoded, rows, table, written, report.upserts + report.deletes)


def _register(place: SourcePaths, decoded: Decoded, uri: str) -> None:
    """Register the table's present state in the target's catalog, if it has one."""
    if place.target.catalog != "none":
        from sqlmesh_like.spark.tables.catalog_sync import sync

        layout = decoded.layout
        sync(decoded.events.sparkSession, place.target, layout.table.table, uri, layout.partition_field)


def _upsert(
    place: SourcePaths, decoded: Decoded, rows: DataFrame, table: HudiTable, metadata: Mapping[str, str], count: int
) -> None:
    """Commit the rows (grain: key × partition), about `count` of them."""
    if decoded.defaults:
        # A default changes nearly all rows: a change log would be as large as the table.
        stored = rows.sparkSession.read.format("hudi").load(table.uri)
        write(backfill_defaults(rows, stored, decoded.layout, decoded.defaults), table, "upsert", metadata, _IS_NETTED)
    elif Router(place.target).why_executors_commit(table.uri) or not commit_locally(rows, table, metadata, count):
        from sqlmesh_like.cdc.tables.batch_log import log_of_batch

        log = log_of_batch(rows, table, count)
        write(rows, table, "upsert", {**metadata, **(log.metadata if log else {})}, _IS_NETTED)


def _keep_columns(place: SourcePaths, decoded: Decoded, uri: str) -> None:
    """Copy the values of renamed columns in stored rows, in a commit of its own: done once even if the batch fails."""
    renamed = decoded.settled.renamed
    if not renamed:
        return
    types = {column.name: column.type for column in decoded.layout.columns}
    spark = in_spark(decoded.events, "a column has another name now").sparkSession
    stored = spark.read.format("hudi").load(uri)
    kept = [quoted_name(name) for name in stored.columns if not name.startswith("_hoodie_") or name == IS_DELETED]
    values = [f"cast({quoted_name(old)} as {types[new]}) as {quoted_name(new)}" for new, old in renamed.items()]
    table, metadata = hudi_table(place, decoded.layout, uri)
    known = Timeline(uri).extra(STATE_PREFIX + MARKER_KEY)
    write(
        stored.selectExpr(*kept, *values),
        table,
        "upsert",
        {**metadata, **({MARKER_KEY: known} if known else {})},
        _IS_NETTED,
    )


def _decisions(
    decoded: Decoded, uri: str, floors: Frame | None, *, in_order: bool, again: bool
) -> tuple[Frame | None, bool]:
    """Decide each key. Returns the decisions (grain: key), and whether versions were compared with floors.

    The decisions are None where each key has one event and earlier versions do not matter.
    """
    layout = decoded.layout
    is_looked_up = bool((decoded.counts.blind or again) and Timeline(uri).frontier)
    looked_up = looked_up_rows(decoded, uri) if is_looked_up and not again else None
    is_settled = not is_looked_up or (looked_up is not None and looked_up.are_as_named)
    if is_settled and floors is None and not _are_netted(decoded):
        return None, False
    versions = frame_query(
        merge_sql.versions(decoded.layout, with_rekeyed=decoded.counts.rekeyed > 0), events=decoded.good
    )
    if decoded.truncates:
        versions = _add_truncates(decoded, uri, versions, in_order=in_order)
    inputs: dict[str, Frame] = {"versions": versions}
    if is_looked_up:
        is_ranked = bool(layout.order_columns) or again
        if looked_up is not None:
            stored = looked_up.frame(versions)
        else:
            stored = joined_rows(decoded, uri, versions, is_ranked=is_ranked, again=again)
        if is_ranked:
            # Where the row in another partition is newer than a late event, that event must not add a second copy.
            stood = frame_query(merge_sql.stood(layout), stored=stored)
            both = stood if floors is None else union_frames([stood, floors.select(*stood.columns)])
            floors = frame_query(merge_sql.united_versions(layout), floors=both)
        else:
            inputs["places"] = frame_query(merge_sql.places(layout), stored=stored)
    if floors is not None:
        inputs["floors"] = floors
    text = merge_sql.decisions(layout, with_floors=floors is not None, with_places="places" in inputs)
    return frame_query(text, **inputs), floors is not None


def _position(decoded: Decoded) -> str:
    """Spark SQL of the position of a first load's rows.

    Where no other event of their files has the same key, that is the start of their file: composing and writing a
    distinct text for each row takes longer than writing the row.
    """
    return FILE_START if decoded.is_of_files and not decoded.counts.bad else "position"


def _are_netted(decoded: Decoded) -> bool:
    """Whether a key may have several versions; else each event is a decision, and the event counts suffice."""
    return decoded.counts.of_a_key > 1 or decoded.counts.rekeyed > 0 or bool(decoded.truncates)


def _counted_before(decoded: Decoded) -> tuple[TableReport, int]:
    """`_count_decisions` from the event counts, for one event per key and no floors; the number is a minimum."""
    counts = decoded.counts
    report = TableReport(decoded.layout.table.table, upserts=counts.good - counts.deletes, deletes=counts.deletes)
    return report, counts.deletes + counts.moves


def _add_truncates(decoded: Decoded, uri: str, versions: Frame, *, in_order: bool) -> Frame:
    stored = stored_table(decoded.events, uri) if Timeline(uri).frontier else None
    inputs: dict[str, Frame] = {"versions": versions} | ({} if stored is None else {"stored": stored})
    columns = None if stored is None else stored.columns
    deletes = [versions]
    for truncate in decoded.truncates:
        if truncate.reads_again:
            inputs["kept"] = _rows_that_stay(decoded, truncate.position)
        text = merge_sql.truncate_sql(
            *(decoded.layout, truncate.position),
            origin=truncate.origin,
            stored=columns,
            in_order=in_order,
            with_kept=truncate.reads_again,
        )
        deletes.append(frame_query(text, **inputs))
    return union_frames(deletes)


def _rows_that_stay(decoded: Decoded, position: str) -> Frame:
    """Keys of rows that were read after a position, in this batch or earlier, and are dead letters (grain: key)."""
    stay = frame_query(merge_sql.rows_that_stay(decoded.layout, position), events=decoded.events)
    if decoded.letter_rows is not None:
        stay = union_frames([stay, decoded.letter_rows.where(read_after(position)).selectExpr("row_key as stays")])
    return stay.distinct()


def hudi_table(
    place: SourcePaths, layout: OdsLayout, uri: str, decoded: Decoded | None = None
) -> tuple[HudiTable, dict[str, str]]:
    """The table with its stored settings, or as `decoded` creates it; and metadata that repeats these settings.

    The number of buckets stays until `sml maintain --rebucket` rewrites the table: another would duplicate keys.
    """
    timeline = Timeline(uri)
    known = timeline.extra(STATE_PREFIX + BUCKETS_KEY)
    if known is not None:
        check_creation_contract(layout, timeline.extra(STATE_PREFIX + CONTRACT_KEY))
    options = {**place.target.hudi, **layout.ingest.hudi}
    rows = 0 if decoded is None else decoded.counts.good
    size = 0 if decoded is None else decoded.bytes + rows * _KEY_BYTES
    buckets = int(known) if known else buckets_for(size, _partitions(decoded, size, options), options)
    table = HudiTable(
        uri=uri,
        name=layout.table.table.identifier,
        key=(KEY,),
        partition_field=layout.partition_field,
        ordering=layout.order_columns,
        table_type=layout.ingest.table_type,
        buckets=buckets,
        # A first load only writes; later commits also read the stored rows.
        tasks=max(2, buckets) if known else 1 if rows < _ROWS_A_TASK else tasks_for(size, options),
        options=options,
    )
    return table, {BUCKETS_KEY: str(buckets), CONTRACT_KEY: creation_contract(layout)}


def _partitions(decoded: Decoded | None, size: int, options: Mapping[str, object]) -> int:
    """The number of partitions of a first load; 1, without counting, where one file holds all rows."""
    if decoded is None or decoded.layout.partition_field is None or fits_in_a_file(size, options):
        return 1
    return decoded.good.selectExpr(f"{decoded.layout.partition('row')} as part").distinct().count()


def _count_decisions(decisions: Frame, layout: OdsLayout) -> tuple[TableReport, int]:
    """Count the decisions. Returns the report, and how many of them must be remembered as floors."""
    written = ("not is_late and not winner.removed", "not is_late and winner.removed")
    counts = (*written, "is_late", merge_sql.IS_REMEMBERED)
    (row,) = frame_query(
        f"select {', '.join(f'count_if({count})' for count in counts)} from {{decisions}}", decisions=decisions
    ).collect()
    return TableReport(layout.table.table, upserts=row[0], deletes=row[1], late=row[2]), row[3]
