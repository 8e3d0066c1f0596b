"""The same topics by Spark, without Spark, and by both in turn: the same rows, positions and checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import tests.spark.ingest_lake as ingest_lake
from sqlmesh_like.cdc.stream import batch
from sqlmesh_like.cdc.stream.query_records import compact_json
from sqlmesh_like.cdc.stream.scala_order import offsets_by_topic
from sqlmesh_like.errors import ProjectError
from tests.services.kafka import create_topics, produce
from tests.spark.cdc.test_kafka import lake_on, offsets
from tests.spark.cdc.test_small_batches import LETTERS, _stored
from tests.spark.ingest_lake import Lake, event, report_of, table

Produced = tuple[str, int, str | bytes | None]


def _run(lake: Lake, engine: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A call by Spark (s) or here (h)."""
    monkeypatch.setattr(ingest_lake, "SMALL_BATCHES", engine == "h")
    report = lake.run()
    assert not report.failed and not lake.reasons, (report, lake.reasons)
    return report


def _checkpoint(lake: Lake) -> dict[str, Any]:
    """What the records of a query say, but for its id, its settings and the time."""
    root = Path(lake.warehouse) / "_sml" / "checkpoints" / "shop"
    files = (path for path in root.rglob("*") if path.is_file() and path.name.isdigit())
    texts = {str(path.relative_to(root)): path.read_text("utf-8") for path in files}
    assert texts["sources/0/0"].startswith("\0v1\n")
    assert all(text.startswith("v1\n") for name, text in texts.items() if name != "sources/0/0")
    return {name: json.loads(text.splitlines()[-1]) for name, text in texts.items()}


def test_spark_goes_on_after_this_process_and_the_other_way(
    spark: SparkSession, tmp_path: Path, kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topics(kafka, {"turn.a": 2})
    shop = lake_on(spark, tmp_path, kafka, "turn.a", table("a"), table("b"), named={"topic_pattern": r"^turn\."})
    one, two = ({"id": id, "v": f"{id} ü"} for id in (1, 2))
    produce(kafka, ("turn.a", 0, event("c", one, table="a")), ("turn.a", 1, event("c", two, table="a")))
    assert report_of(_run(shop, "h", monkeypatch), "a").upserts == 2
    create_topics(kafka, {"turn.b": 1})
    changed = event("u", {"id": 1, "v": "new"}, one, table="a")
    produce(kafka, ("turn.a", 0, changed), ("turn.a", 0, None), ("turn.b", 0, event("c", {"id": 7}, table="b")))
    second = _run(shop, "s", monkeypatch)
    assert (second.events, second.skipped) == (3, {"tombstone": 1})
    produce(kafka, ("turn.a", 1, event("d", None, two, table="a")), ("turn.a", 0, "{broken"))
    third = _run(shop, "h", monkeypatch)
    assert (report_of(third, "a").deletes, third.dead_letters, third.batches) == (1, 1, 1)
    assert _run(shop, "h", monkeypatch).batches == 0
    assert (shop.rows("a"), shop.rows("b")) == ([(1, "new")], [(7,)])
    assert (shop.commits("a"), shop.commits("b")) == (3, 1)
    assert offsets(shop, "a") == {"turn.a": {"0": [3, 4], "1": [1, 2]}}
    first = {"turn.a": {"0": 1, "1": 1}}
    last = {"turn.a": {"0": 4, "1": 2}, "turn.b": {"0": 1}}
    recorded = _checkpoint(shop)
    assert (recorded["sources/0/0"], recorded["offsets/0"], recorded["offsets/2"]) == (
        {"turn.a": {"0": 0, "1": 0}},
        first,
        last,
    )
    assert {name for name in recorded if name.startswith("commits")} == {f"commits/{number}" for number in range(3)}


def _batches(topic: str) -> list[list[Produced]]:
    """Three batches over three partitions of one topic, and one of another; the third has aborted messages, too."""
    rows = [{"id": id, "m": 1, "price": f"{id}.50", "name": f"nämé {id}"} for id in range(12)]

    def on(row: dict[str, Any], op: str, before: object = None, *, gone: bool = False, name: str = "a") -> Produced:
        return topic, row["id"] % 3, event(op, None if gone else row, before, table=name)

    newer = [{**row, "m": 2, "name": f"newer {row['id']}"} for row in rows[:6]]
    grown = [{**row, "m": 3, "note": "new"} for row in newer[2:4]]
    other = f"{topic}b"
    return [
        [*(on(row, "c") for row in rows), *(on(row, "c", name="b") for row in rows[:4]), (topic, 1, None),
         (topic, 2, "{not json"), (topic, 0, event("c", {"id": 9}, table="other"))],
        [*(on(new, "u", old) for new, old in zip(newer, rows, strict=False)), on(rows[7], "d", rows[7], gone=True),
         (topic, 1, None), on(rows[0], "d", rows[0], gone=True, name="b"), on({**rows[8], "m": 0}, "u", rows[8]),
         (topic, 0, event("u", {"m": 5}, table="a"))],
        [*(on(row, "u", old) for row, old in zip(grown, newer[2:4], strict=True)),
         on(rows[10], "d", rows[10], gone=True),
         (other, 0, event("c", {"id": 1, "v": "x"}, table="c")), on(rows[0], "c", name="b")],
    ]  # fmt: skip


@pytest.mark.release
def test_both_engines_write_the_same(
    spark: SparkSession, tmp_path: Path, kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the second batch, each call dies between two tables, and the other engine takes the batch up."""
    topic = "twin"
    create_topics(kafka, {topic: 3})
    engines = {"spark": "ssss", "in turn": "hshs", "the other way": "shsh", "here": "hhhh"}
    tables = (table("a", order_by=("m",), columns={"price": "decimal(9,2)"}), table("b"), table("c"))
    lakes = {
        name: lake_on(spark, tmp_path / name.replace(" ", "_"), kafka, topic, *tables, named={"topic_pattern": topic})
        for name in engines
    }
    reports: dict[str, list[Any]] = {name: [] for name in engines}

    def run(name: str, number: int) -> None:
        report = _run(lakes[name], engines[name][number], monkeypatch)
        said = sorted((each.table, each.upserts, each.deletes, each.late, each.events) for each in report.tables)
        reports[name].append((report.events, report.dead_letters, report.first_dead_letter, report.skipped, said))

    first, second, third = _batches(topic)
    produce(kafka, *first)
    for name in engines:
        run(name, 0)
    produce(kafka, *second)
    for name in engines:
        with monkeypatch.context() as patch:
            patch.setattr(batch, "commit", _dies_with_b(batch.commit))
            with pytest.raises(ProjectError, match="killed"):
                _run(lakes[name], engines[name][1], monkeypatch)
        run(name, 2)
    create_topics(kafka, {f"{topic}b": 1})
    produce(kafka, *third, transaction=True)
    produce(kafka, (topic, 0, event("c", {"id": 30, "m": 1}, table="a")), transaction=False)
    for name in engines:
        run(name, 3)
        run(name, 2)  # nothing is left
    names = [*(each.name for each in tables), LETTERS]
    rows = {name: _stored(spark, lake, names) for name, lake in lakes.items()}
    assert len(rows["spark"]["a"]) == 11 and any("'note'" in str(row) for row in rows["spark"]["a"])
    assert [len(rows["spark"][name]) for name in ("b", "c", LETTERS)] == [4, 1, 2]
    for name, lake in lakes.items():
        assert rows[name] == rows["spark"], name
        assert reports[name] == reports["spark"], name
        assert _checkpoint(lake) == _checkpoint(lakes["spark"]), name
        assert [offsets(lake, each) for each in "abc"] == [offsets(lakes["spark"], each) for each in "abc"], name


def _dies_with_b(commit: Any) -> Any:
    def dies(place: Any, decoded: Any, mark: Any) -> Any:
        if decoded.layout.table.name == "b":
            raise ProjectError("killed")
        return commit(place, decoded, mark)

    return dies


@pytest.mark.release
@pytest.mark.parametrize("size", [1, 12, 13, 25, 100])
def test_offsets_are_in_the_order_of_spark(spark: SparkSession, size: int) -> None:
    jvm: Any = spark._jvm
    for count in (1, size):
        offsets = {(f"shop.db_{size}.t{n * 7}", part): n + part for n in range(size) for part in range(count)}
        text = compact_json(offsets_by_topic(offsets))
        utils = jvm.org.apache.spark.sql.kafka010.JsonUtils
        assert utils.partitionOffsets(utils.partitionOffsets(text)) == text


@pytest.mark.release
def test_what_is_gone_is_left_to_spark(
    spark: SparkSession, tmp_path: Path, kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark says what is missing, as it did before this process read topics."""
    lost = lake_on(spark, tmp_path, kafka, "lost", table("a"))
    monkeypatch.setattr(ingest_lake, "SMALL_BATCHES", True)
    with pytest.raises(Exception, match="UnknownTopicOrPartition"):
        lost.run()
    assert lost.reasons == ["Spark ingests the events of source shop: the topic lost cannot be read now"]
