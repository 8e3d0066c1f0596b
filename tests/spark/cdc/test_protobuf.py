"""Protobuf by Spark and without it: the same texts, faults and tables, with a real broker and a real registry."""

from __future__ import annotations

import base64
import random
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from pyspark.sql import SparkSession

from sqlmesh_like.cdc.frames import literal_frame
from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.registry.decoded_rows import decoded_rows
from sqlmesh_like.cdc.registry.protobuf_schema import protobuf_schema
from sqlmesh_like.cdc.registry.schema_registry import SchemaRegistry
from sqlmesh_like.cdc.registry.wire_format import decoded_lines
from sqlmesh_like.project.nodes import RegistrySettings
from tests.protobuf_events import FIELDS, framed, message, rows_of, schema_text
from tests.services.schema_registry import registry_server
from tests.spark.cdc.test_live_avro import Batches, RealRegistry, assert_engines_agree
from tests.spark.ingest_lake import table
from tests.unit.cdc.test_protobuf import ENVELOPE, change

pytestmark = pytest.mark.release


def test_executors_decode_as_this_process_does(spark: SparkSession) -> None:
    dice = random.Random(5)
    schema = protobuf_schema(schema_text())
    with registry_server() as server:
        number = server.add(schema_text(), schemaType="PROTOBUF")
        recursive = server.add('syntax = "proto3"; message A { A a = 1; }', schemaType="PROTOBUF")
        whole = framed(number, ENVELOPE, message(schema, ENVELOPE, change("c", rows_of(tuple(FIELDS), 1))))
        values: list[bytes | None] = [whole, None, framed(recursive, (0,), b""), framed(99, (0,), b""), b"{}", b"\0\0"]
        for _ in range(300):
            data = bytearray(whole)
            data[dice.randrange(5, len(data))] = dice.randrange(256)
            values.append(bytes(data[: dice.randrange(5, len(data))] if dice.random() < 0.3 else data))
        known = SchemaRegistry(RegistrySettings((server.url,)))
        own = RowFrame(("value", "log_key"), [(value, value) for value in values])
        texts = ("cast(value as string) as value", "cast(log_key as string) as log_key")
        columns = ("cast(value as binary) as value", "cast(log_key as binary) as log_key", "fault")
        here = [tuple(row) for row in decoded_rows(own.selectExpr(*texts), known, "rows").selectExpr(*columns).rows]
        rows = [[place, None if value is None else value.hex()] for place, value in enumerate(values)]
        lines = literal_frame(spark, rows, "place INT, value STRING")
        lines = lines.selectExpr("place", *(f"cast(unhex(value) as string) as {name}" for name in ("value", "log_key")))
        with decoded_lines(lines, known, "rows") as frame:
            in_spark = {row.place: tuple(row[1:]) for row in frame.selectExpr("place", *columns).collect()}
    assert [in_spark[place] for place in range(len(values))] == here
    assert here[0][2] is None and sum(row[2] is not None for row in here) > 50


def test_both_engines_write_the_same_from_a_real_registry(
    spark: SparkSession, tmp_path: Path, kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_engines_agree(spark, tmp_path, kafka, monkeypatch, "twin_protobuf", (table(),), (3, 2), _batches)


def _batches(registry: RealRegistry) -> Batches:
    """The second batch's schema has fewer columns, refers to another, and is registered as a descriptor in base64."""
    names = tuple(FIELDS)
    row, text = rows_of(names, 1), schema_text()
    first, number = protobuf_schema(text), registry.add(text, schemaType="PROTOBUF")
    common = 'syntax = "proto3"; package o; message Note { optional string text = 1; }'
    registry.add(common, schemaType="PROTOBUF")
    more = schema_text(names[:3]).replace('import "confluent', 'import "o/note.proto";\nimport "confluent', 1)
    more = more.replace("oneof choice", "o.Note note = 200;\n    oneof choice")
    second = protobuf_schema(more, [("o/note.proto", common)])
    files = descriptor_pb2.FileDescriptorSet.FromString(second.files)
    reference = {"name": "o/note.proto", "subject": f"s{registry.count}", "version": 1}
    coded = base64.b64encode(files.file[-1].SerializeToString()).decode()
    later = registry.add(coded, schemaType="PROTOBUF", references=[reference])

    def old(op: str, *images: Any) -> bytes:
        return framed(number, ENVELOPE, message(first, ENVELOPE, change(op, *images)))

    changed = change("u", {"id": 3, "i": 5, "note": {"text": "n"}}, {"id": 3})
    return [
        [old("r", row), old("c", {"id": 2}), old("c", {**row, "id": 3}), None, old("c", row)[:-3]],
        [framed(later, ENVELOPE, message(second, ENVELOPE, changed)), old("d", None, {"id": 2}),
         old("c", {"id": 4, "right": "r"}), framed(4711, (0,), b"")],
    ]  # fmt: skip
