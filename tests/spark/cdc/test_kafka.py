"""Ingestion from a real Kafka broker: tables of one topic, offsets with every commit, crashes, catching up, a stop."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like import stop_signals
from sqlmesh_like.cdc.stream import batch
from sqlmesh_like.cdc.stream.continuous import run_until_stopped
from sqlmesh_like.errors import IngestError, NodeError, ProjectError
from sqlmesh_like.hudi.timeline import Timeline
from tests.spark.ingest_lake import Lake, event, report_of, table


def send(spark: SparkSession, kafka: str, topic: str, *values: str | None) -> None:
    """One record each, in this order, to the topic's one partition."""
    rows = spark.createDataFrame([(value,) for value in values], "value STRING").coalesce(1)
    rows.write.format("kafka").option("kafka.bootstrap.servers", kafka).option("topic", topic).save()


def lake_on(spark: SparkSession, root: Path, kafka: str, topic: str, *tables: Any, **settings: Any) -> Lake:
    named = settings.pop("named", {"topics": [topic]})
    source = {"bootstrap_servers": kafka, **named, "options": {"request.timeout.ms": 20000}}
    return Lake(spark, root, tables, {"files": None, "kafka": source, **settings})


def delete_topic(spark: SparkSession, kafka: str, topic: str) -> None:
    jvm: Any = spark._jvm
    settings = jvm.java.util.Properties()
    settings.setProperty("bootstrap.servers", kafka)
    admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
    admin.deleteTopics(jvm.java.util.List.of(topic)).all().get()
    admin.close()


def offsets(lake: Lake, name: str) -> Any:
    return json.loads(Timeline(lake.uri(name)).extra("sml.ingest") or "{}")["offsets"]


@pytest.mark.release
@pytest.mark.checklist(3, 6, 11, 15, 36)
def test_a_crash_between_two_tables_of_a_topic_is_made_whole(
    spark: SparkSession, tmp_path: Path, kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = lake_on(
        spark, tmp_path, kafka, "whole", table("a", order_by=("m",)), table("b"), named={"topic_pattern": "^whol.$"}
    )
    send(
        *(spark, kafka, "whole"),
        event("c", {"id": 1, "m": 5, "x": "first"}, table="a"),
        event("c", {"id": 1}, table="b"),
        # A tie in order_by goes to the later offset; a tombstone has no value at all.
        event("u", {"id": 1, "m": 5, "x": "tie"}, {"id": 1, "m": 5, "x": "first"}, table="a"),
        event("c", {"id": 2, "m": 1, "x": "gone"}, table="a"),
        event("d", None, {"id": 2, "m": 1, "x": "gone"}, table="a"),
        None,
        "{not json",
        event("c", {"id": 9}, table="other"),
    )
    real = batch.commit

    def dies(place: Any, decoded: Any, mark: Any) -> Any:
        if decoded.layout.table.name == "b":
            raise ProjectError("killed")  # other errors of a table end its part of the batch alone
        return real(place, decoded, mark)

    with monkeypatch.context() as patch:
        patch.setattr(batch, "commit", dies)
        with pytest.raises(ProjectError, match="killed"):
            shop.run()
    assert not Path(shop.uri("b")).exists()
    again = shop.run()
    assert (report_of(again, "a").replayed, report_of(again, "b").upserts) == (4, 1)
    assert again.skipped == {"tombstone": 1, "undeclared db.other": 1}
    assert (shop.rows("a"), shop.rows("b")) == ([(1, 5, "tie")], [(1,)])
    assert (shop.commits("a"), shop.commits("b")) == (1, 1)
    assert offsets(shop, "a") == offsets(shop, "b") == {"whole": {"0": [0, 8]}}
    assert shop.dead_letters() == [("0", 6, "not a JSON object of a change event", "{not json")]
    assert shop.run().tables == ()


@pytest.mark.checklist(17)
def test_a_table_that_fails_catches_up_in_order_while_the_others_go_on(
    spark: SparkSession, tmp_path: Path, kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = lake_on(spark, tmp_path, kafka, "behind", table("a"), table("b"), max_events_per_batch=2)
    pairs = [(event("c", {"id": n}, table="a"), event("u", {"id": 1, "n": n}, table="b")) for n in (1, 2)]
    send(spark, kafka, "behind", *(line for pair in pairs for line in pair))
    real = batch.commit

    def fails(place: Any, decoded: Any, mark: Any) -> Any:
        if decoded.layout.table.name == "b":
            raise NodeError("disk full")
        return real(place, decoded, mark)

    with monkeypatch.context() as patch:
        patch.setattr(batch, "commit", fails)
        failed = shop.run()
    assert failed.batches == 2
    assert report_of(failed, "b").error == "disk full"
    assert shop.rows("a") == [(1,), (2,)]
    caught_up = shop.run()
    assert not caught_up.failed
    assert shop.rows("b") == [(1, 2)]
    assert offsets(shop, "b") == {"behind": {"0": [2, 4]}}
    assert not list((Path(shop.warehouse) / "_sml" / "behind" / "shop").iterdir())

    # A table that is gone is filled again by itself, as long as the brokers have its events.
    shutil.rmtree(shop.uri("b"))
    refilled = shop.run()
    assert (refilled.failed, [each.table.identifier for each in refilled.tables]) == (False, ["b"])
    assert (shop.rows("b"), offsets(shop, "b")) == ([(1, 2)], {"behind": {"0": [2, 4]}})
    shutil.rmtree(shop.uri("b"))
    delete_topic(spark, kafka, "behind")
    with pytest.raises(IngestError, match=r"ods.b .* it lacks offsets 0 to 3 of behind/0, which are gone"):
        shop.run()
    assert not Path(shop.uri("b")).exists()


@pytest.mark.checklist(2, 5, 13)
def test_a_topic_is_read_by_several_from_its_beginning_or_its_end(
    spark: SparkSession, tmp_path: Path, kafka: str
) -> None:
    def reader(name: str, **settings: Any) -> Lake:
        lake = lake_on(spark, tmp_path / name, kafka, "shared", table("a"))
        lake.settings = {**lake.settings, "kafka": {**lake.settings["kafka"], **settings}}
        return lake

    send(spark, kafka, "shared", event("r", {"id": 1}, table="a"), event("c", {"id": 2, "v": "b"}, table="a"))
    first, second, newest = reader("first"), reader("second"), reader("newest", starting_offsets="latest")
    first.run()
    newest.run()
    assert (first.rows("a"), newest.commits("a")) == ([(1, None), (2, "b")], 0)
    send(spark, kafka, "shared", event("u", {"id": 2, "v": "c"}, {"id": 2, "v": "b"}, table="a"))
    for lake in (first, second, newest):
        lake.run()
    whole = [(1, None), (2, "c")]
    assert (first.rows("a"), second.rows("a"), newest.rows("a", "id", "v")) == (whole, whole, [(2, "c")])
    first.run("earliest")
    assert first.rows("a") == whole


@pytest.mark.checklist(14, 38)
def test_a_continuous_run_takes_in_what_comes_until_it_is_told_to_stop(
    spark: SparkSession, tmp_path: Path, kafka: str
) -> None:
    shop = lake_on(spark, tmp_path, kafka, "forever", table("a"))
    send(spark, kafka, "forever", event("c", {"id": 1}, table="a"))
    message: list[int] = []

    def told_of_two() -> None:
        limit = time.monotonic() + 600
        while len(message) < 2 and time.monotonic() < limit:
            time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGTERM)

    def on_batch(report: Any) -> None:
        message.append(report.events)
        if len(message) == 1:
            send(spark, kafka, "forever", event("c", {"id": 2}, table="a"))

    watcher = threading.Thread(target=told_of_two)
    watcher.start()
    with stop_signals.handle_signals():
        (report,) = run_until_stopped([shop.open(on_batch)], ["1 second"])
    watcher.join()
    assert (report.batches, message) == (2, [1, 1])
    assert shop.rows("a") == [(1,), (2,)]
