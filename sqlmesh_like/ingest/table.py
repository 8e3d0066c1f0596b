"""One table's part of one batch. Owns decoding its events and committing them; `batch` brings the tables together."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from sqlmesh_like.engine.commits import STATE_PREFIX
from sqlmesh_like.engine.tables import HudiTable, write
from sqlmesh_like.engine.timeline import Timeline
from sqlmesh_like.ingest import net
from sqlmesh_like.ingest.debezium import IMAGES, Shape, image, reads, schema_fields, unreadable
from sqlmesh_like.ingest.layout import Layout, settle
from sqlmesh_like.ingest.mark import KEY, Mark
from sqlmesh_like.ingest.place import Place
from sqlmesh_like.ingest.report import TableReport
from sqlmesh_like.ingest.tombstones import read_floors, write_floors
from sqlmesh_like.ingest.types import Field, normal_type
from sqlmesh_like.names import Column, Schema
from sqlmesh_like.project.spec import IngestTable, SourceTable

ROWS_PER_BUCKET = 500_000
_LINE = ("value", "file", "line", "position", "kind", "op")


@dataclass(frozen=True)
class Variant:
    """Events of a table that share one `schema` block (None: they have none)."""

    is_enveloped: bool
    schema_id: str | None
    schema_text: str | None

    @property
    def condition(self) -> str:
        """Spark SQL that is true for its events."""
        same = "schema_id is null" if self.schema_id is None else f"schema_id = '{self.schema_id}'"
        return f"{same} and is_enveloped = {str(self.is_enveloped).lower()}"


@dataclass(frozen=True)
class Decoded:
    """A table's events as typed images (grain: line; `reason` says why one is bad), in memory until released."""

    layout: Layout
    events: DataFrame
    good: int
    bad: int
    blind: int


def decode(place: Place, table: SourceTable, events: DataFrame, variants: Sequence[Variant]) -> Decoded:
    """Read a table's events as rows of its next layout. Raises IngestError where its columns cannot change so."""
    assert table.ingest is not None
    groups = [(variant, events.where(variant.condition)) for variant in variants]
    stored = _stored(events.sparkSession, place.table_uri(table))
    shapes = [_shape(frame, variant, table.ingest, is_new=not stored) for variant, frame in groups]
    layout, shapes = settle(table, table.ingest, stored, shapes)
    frames = [_images(frame, shape, layout) for (_, frame), shape in zip(groups, shapes, strict=True)]
    decoded = _judged(reduce(DataFrame.unionByName, frames), layout).persist()
    counted = decoded.selectExpr(
        "count_if(reason is null)", "count_if(reason is not null)", "count_if(is_blind)"
    ).first()
    assert counted is not None
    return Decoded(layout, decoded, counted[0], counted[1], counted[2])


def _shape(frame: DataFrame, variant: Variant, ingest: IngestTable, *, is_new: bool) -> Shape:
    if variant.schema_text:
        fields = schema_fields(variant.schema_text)
    else:
        fields = _guessed(frame, variant.is_enveloped)
        # Inference sorts the names; the order of a table's columns is set once.
        fields = _as_in_events(frame, variant.is_enveloped, fields) if is_new else fields
    keys = tuple(Field(name, "string", is_inferred=True) for name in ingest.primary_key)
    return Shape(variant.is_enveloped, fields or keys)


def _guessed(frame: DataFrame, is_enveloped: bool) -> tuple[Field, ...]:
    """Columns and types of events without a schema, from all their values; a column of NULLs alone is none yet."""
    spark = frame.sparkSession
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    # pyspark reads JSON from text rows only through Python workers; Spark itself takes a Dataset[String].
    texts = getattr(frame.select("value")._jdf, "as")(jvm.org.apache.spark.sql.Encoders.STRING())
    reader = spark.read.option("dropFieldIfAllNull", "true")._jreader
    inferred = DataFrame(reader.json(texts), spark).schema
    body = _child(inferred, "payload") if is_enveloped else inferred
    fields = {field.name: field for name in IMAGES for field in _child(body, name).fields}
    types = {name: normal_type(field.dataType.simpleString()) or "string" for name, field in fields.items()}
    return tuple(Field(name, kind, is_inferred=True) for name, kind in types.items())


def _as_in_events(frame: DataFrame, is_enveloped: bool, fields: tuple[Field, ...]) -> tuple[Field, ...]:
    path = "$.payload" if is_enveloped else "$"
    images = ", ".join(f"get_json_object(value, '{path}.{name}')" for name in IMAGES)
    found = frame.selectExpr(f"json_object_keys(coalesce({images}))").first()
    places = {name: place for place, name in enumerate((found[0] if found else None) or ())}
    return tuple(sorted(fields, key=lambda field: places.get(field.name, len(places))))


def _child(parent: StructType, name: str) -> StructType:
    found = [field.dataType for field in parent.fields if field.name == name]
    return found[0] if found and isinstance(found[0], StructType) else StructType()


def _stored(spark: SparkSession, uri: str) -> Schema:
    if Timeline(uri).frontier is None:
        return ()
    fields = spark.read.format("hudi").load(uri).schema.fields
    return tuple(Column(field.name, field.dataType.simpleString()) for field in fields)


def _images(frame: DataFrame, shape: Shape, layout: Layout) -> DataFrame:
    read = frame.selectExpr(*_LINE, *(f"{sql} as {name}" for name, sql in reads(shape).items()))
    typed = read.selectExpr("*", *(f"{image(shape, name, layout.columns)} as {name}" for name in IMAGES))
    return typed.selectExpr(*_LINE, *IMAGES, f"{unreadable(shape)} as unreadable")


def _judged(frame: DataFrame, layout: Layout) -> DataFrame:
    """Adds why an event cannot be taken in, and whether it hides where its row stood (`is_blind`)."""
    lonely = layout.is_key_only("before")
    order = "true" if layout.ingest.order_by else "false"
    reason = (
        f"coalesce(unreadable, {layout.missing_key('row')}, "
        f"if({layout.partition('row')} is null, 'the partition column holds no moment', null), "
        f"if({order} and kind = 'delete' and {lonely}, "
        "'a delete whose `before` has only the key has no order: let the source log full rows', null))"
    )
    moves = "true" if layout.partition_field else "false"
    blind = f"{moves} and ((op = 'u' and (before is null or {lonely})) or (kind = 'delete' and {lonely}))"
    rows = frame.selectExpr("*", "if(kind = 'delete', before, after) as row")
    return rows.selectExpr(*_LINE, *IMAGES, f"{reason} as reason", f"{blind} as is_blind")


def commit(place: Place, decoded: Decoded, mark: Mark) -> TableReport:
    """Bring a table to the state after the batch, in one commit; nothing where it has the batch already."""
    started = time.monotonic()
    layout, uri = decoded.layout, place.table_uri(decoded.layout.table)
    if mark.is_on(uri):
        return TableReport(layout.table.table, replayed=decoded.good)
    spark = decoded.events.sparkSession
    tombstones = place.tombstones_uri(layout.table)
    floors = read_floors(spark, tombstones) if layout.order_columns else None
    decisions = _decisions(spark, decoded, uri, floors).persist()
    try:
        report, to_remember = _counted(decisions, layout)
        if layout.order_columns and to_remember:
            write_floors(spark, tombstones, layout, decisions, floors)
        rows = spark.sql(net.rows(layout, with_floors=floors is not None), decisions=decisions)
        table, metadata = _hudi_table(place, layout, uri, decoded.good, mark)
        write(rows, table, "upsert", metadata)
        return replace(report, seconds=time.monotonic() - started)
    finally:
        decisions.unpersist()


def _decisions(spark: SparkSession, decoded: Decoded, uri: str, floors: DataFrame | None) -> DataFrame:
    layout = decoded.layout
    versions = spark.sql(net.versions(layout), events=decoded.events.where("reason is null"))
    inputs: dict[str, object] = {"versions": versions}
    if floors is not None:
        inputs["floors"] = floors
    if decoded.blind and Timeline(uri).frontier:
        inputs["places"] = _places(spark, layout, uri, versions)
    text = net.decisions(layout, with_floors=floors is not None, with_places="places" in inputs)
    return spark.sql(text, None, **inputs)


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
