"""One table's part of one batch: its commit. Owns bringing a table to its next state; `decode` reads events."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from sqlmesh_like.engine.commits import STATE_PREFIX
from sqlmesh_like.engine.tables import HudiTable, write
from sqlmesh_like.engine.timeline import Timeline
from sqlmesh_like.ingest import net
from sqlmesh_like.ingest.decode import Decoded
from sqlmesh_like.ingest.defaults import backfilled
from sqlmesh_like.ingest.extent import Files
from sqlmesh_like.ingest.layout import Layout
from sqlmesh_like.ingest.mark import KEY, Mark
from sqlmesh_like.ingest.place import Place
from sqlmesh_like.ingest.report import TableReport
from sqlmesh_like.ingest.tombstones import read_floors, write_floors

ROWS_PER_BUCKET = 500_000


def commit(place: Place, decoded: Decoded, mark: Mark) -> TableReport:
    """Bring a table to the state after the batch, in one commit; nothing where it has the batch already."""
    started = time.monotonic()
    layout, uri = decoded.layout, place.table_uri(decoded.layout.table)
    if mark.is_on(uri):
        return TableReport(layout.table.table, replayed=decoded.good)
    if not decoded.good and not decoded.truncates:
        return TableReport(layout.table.table)
    spark = decoded.events.sparkSession
    tombstones = place.tombstones_uri(layout.table)
    floors = read_floors(spark, tombstones) if layout.order_columns else None
    decisions = _decisions(spark, decoded, uri, floors, in_order=isinstance(mark.extent, Files)).persist()
    try:
        report, to_remember = _counted(decisions, layout)
        if layout.order_columns and to_remember:
            write_floors(spark, tombstones, layout, decisions, floors)
        rows = spark.sql(net.rows(layout, with_floors=floors is not None), decisions=decisions)
        if decoded.defaults:
            rows = backfilled(rows, spark.read.format("hudi").load(uri), layout, decoded.defaults)
        table, metadata = _hudi_table(place, layout, uri, decoded.good, mark)
        write(rows, table, "upsert", metadata)
        return replace(report, seconds=time.monotonic() - started, changes=decoded.changes)
    finally:
        decisions.unpersist()


def _decisions(
    spark: SparkSession, decoded: Decoded, uri: str, floors: DataFrame | None, *, in_order: bool
) -> DataFrame:
    layout = decoded.layout
    versions = spark.sql(net.versions(layout), events=decoded.events.where("reason is null"))
    if decoded.truncates:
        versions = _truncated(spark, decoded, uri, versions, in_order=in_order)
    inputs: dict[str, object] = {"versions": versions}
    if floors is not None:
        inputs["floors"] = floors
    if decoded.blind and Timeline(uri).frontier:
        inputs["places"] = _places(spark, layout, uri, versions)
    text = net.decisions(layout, with_floors=floors is not None, with_places="places" in inputs)
    return spark.sql(text, None, **inputs)


def _truncated(spark: SparkSession, decoded: Decoded, uri: str, versions: DataFrame, *, in_order: bool) -> DataFrame:
    stored = spark.read.format("hudi").load(uri) if Timeline(uri).frontier else None
    inputs = {"versions": versions} | ({} if stored is None else {"stored": stored})
    columns = None if stored is None else stored.columns
    for truncate in decoded.truncates:
        text = net.truncated(
            decoded.layout, truncate.position, origin=truncate.origin, stored=columns, in_order=in_order
        )
        versions = versions.unionByName(spark.sql(text, None, **inputs))
    return versions


def _places(spark: SparkSession, layout: Layout, uri: str, versions: DataFrame) -> DataFrame:
    """Where the keys of events stand that do not say it; reads the keys of the whole table, so only when needed."""
    blind = versions.where("is_blind").select(net.KEY).distinct()
    keys = ", ".join(f"`{name}`" for name in layout.ingest.primary_key)
    stored = (
        spark.read.format("hudi").load(uri).selectExpr(f"struct({keys}) as row", f"`{layout.partition_field}` as part")
    )
    hashed = stored.selectExpr(f"sha2({layout.key('row')}, 256) as {net.KEY}", "part")
    return hashed.join(blind, net.KEY, "left_semi").groupBy(net.KEY).agg({"part": "collect_set"}).toDF(net.KEY, "parts")


def _hudi_table(place: Place, layout: Layout, uri: str, rows: int, mark: Mark) -> tuple[HudiTable, dict[str, str]]:
    """The bucket count of a table is fixed by its first batch: another one would duplicate keys."""
    buckets = int(Timeline(uri).extra(STATE_PREFIX + "buckets") or max(1, math.ceil(rows / ROWS_PER_BUCKET)))
    table = HudiTable(
        uri=uri,
        name=layout.table.table.identifier,
        key=(net.KEY,),
        partition_field=layout.partition_field,
        ordering=layout.order_columns,
        table_type=layout.ingest.table_type,
        buckets=buckets,
        options={**place.target.hudi, **layout.ingest.hudi},
    )
    return table, {KEY: mark.to_json(), "buckets": str(buckets)}


def _counted(decisions: DataFrame, layout: Layout) -> tuple[TableReport, int]:
    """What the decisions come to, and how many of them must be remembered."""
    counts = ("not is_late and not w.removed", "not is_late and w.removed", "is_late", net.IS_REMEMBERED)
    found = decisions.selectExpr(*(f"count_if({count})" for count in counts)).first()
    assert found is not None
    return TableReport(layout.table.table, upserts=found[0], deletes=found[1], late=found[2]), found[3]
