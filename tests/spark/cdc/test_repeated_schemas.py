"""Messages whose schema is read once beside messages that are read whole, by Spark: events, tables and dead letters."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from sqlmesh_like.cdc.decode.events import events_of
from sqlmesh_like.cdc.decode.repeated_schemas import NO_SCHEMAS, RepeatedSchemas, repeated_schemas
from sqlmesh_like.cdc.sources.event_log import LINE_COLUMNS
from sqlmesh_like.cdc.stream import ingest_run
from tests.services.kafka import produce
from tests.spark.cdc.test_kafka import lake_on
from tests.spark.cdc.test_small_batches import LETTERS, _stored
from tests.spark.ingest_lake import Lake, event, table
from tests.unit.cdc.test_repeated_schemas import INGEST, PLACEHOLDER, SCHEMAS, WITH_FRACTION, lines, messages


def _read(frame: DataFrame, schemas: RepeatedSchemas = NO_SCHEMAS) -> list[Any]:
    with events_of(frame, INGEST, schemas=schemas, with_members=True) as events:
        read: Any = schemas.restored(events)
        return sorted(read.collect(), key=lambda row: row["line"])


@pytest.mark.release
def test_spark_reads_the_same_events(spark: SparkSession) -> None:
    texts = messages(random.Random(7), 1_500, WITH_FRACTION)
    schema = ", ".join(f"{name} {'BIGINT' if name in ('line', 'logged_at') else 'STRING'}" for name in LINE_COLUMNS)
    frame = spark.createDataFrame(lines(texts), schema).persist()
    schemas = repeated_schemas(frame, PLACEHOLDER)
    assert {each.beginning for each in schemas.schemas} == {f'{{"schema":{each}' for each in (*SCHEMAS, WITH_FRACTION)}
    before, after = _read(frame), _read(frame, schemas)
    for row, other in zip(before, after, strict=True):
        assert row == other, row["value"]
    frame.unpersist()


@pytest.mark.release
def test_tables_and_dead_letters_are_the_same(
    spark: SparkSession, tmp_path: Path, kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids, names = {"field": "id", "type": "int32"}, {"field": "name", "type": "string"}
    both, more = (ids, names), (ids, {"field": "first", "type": "int64"}, names)
    texts = [
        *(event("c", {"id": n, "name": f"ä {n}"}, table=name, fields=both) for n in range(1, 4) for name in "ab"),
        *(event("u", {"id": n, "first": n, "name": "new"}, {"id": n, "name": "a"}, "a", more) for n in (1, 2)),
        event("d", None, {"id": 3, "name": "x"}, "a", both),
        event("c", {"name": "no key"}, table="a", fields=both),
        event("u", {"id": 2, "name": PLACEHOLDER}, None, "b", both),
        event("u", {"id": "many", "name": "x"}, None, "b", both),
        event("c", {"id": 5, "name": "x"}, None, "b", both)[:-9],
        event("x", {"id": 5}, None, "b", both),
        event("c", {"id": 6, "name": "plain"}, table="b"),
        event("c", {"id": 7}, table="other", fields=both),
    ]
    texts = [text.replace('{"schema": ', '{"schema":').replace(', "payload": ', ',"payload":') for text in texts]
    produce(kafka, *(("repeated", 0, text) for text in texts))
    lakes: dict[int, Lake] = {}
    collected: list[RepeatedSchemas] = []

    def recorded(lines: Any, placeholder: str) -> RepeatedSchemas:
        collected.append(repeated_schemas(lines, placeholder))
        return collected[-1]

    monkeypatch.setattr(ingest_run, "repeated_schemas", recorded)
    for fewest in (1_000, len(texts)):
        monkeypatch.setattr(ingest_run, "FEWEST_EVENTS", fewest)
        lakes[fewest] = lake_on(spark, tmp_path / str(fewest), kafka, "repeated", table("a"), table("b"))
        report = lakes[fewest].run()
        assert (report.events, report.dead_letters, report.failed) == (len(texts), 4, False)
        assert report.skipped == {"undeclared db.other": 1}
    assert [len(each.schemas) for each in collected] == [2]
    stored = [_stored(spark, lake, ("a", "b", LETTERS)) for lake in lakes.values()]
    assert stored[0] == stored[1]
    assert {row["text"] for row in stored[1][LETTERS]} <= set(texts) and len(stored[1]["a"]) == 2
