"""What a table that went back lacks: everything from its own position on, and an error where any of that is gone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlmesh_like.cdc.sources.missing_batches import (
    TablePosition,
    missing_files_of_log,
    missing_offsets,
    table_position,
)
from sqlmesh_like.cdc.sources.offset_range import Files, Offsets
from sqlmesh_like.cdc.sources.query_log import PartitionOffsets, QueryLog, read_query_log
from sqlmesh_like.errors import IngestError
from sqlmesh_like.hudi.timeline import Timeline
from tests.unit.hudi.test_timeline import Lake

FROM_START = TablePosition()


def query(root: Path, ends: dict[int, object], sources: dict[str, list[object]], done: int) -> QueryLog:
    """The checkpoint of query `q` whose batches up to `done` are finished."""
    for name in ("offsets", "commits", "sources/0"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "metadata").write_text('{"id": "q"}')
    for batch, end in ends.items():
        (root / "offsets" / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{json.dumps(end)}')
        if batch <= done:
            (root / "commits" / str(batch)).write_text("v1\n{}")
    for source, entries in sources.items():
        (root / "sources" / "0" / source).write_text("\n".join(["v1", *map(json.dumps, entries)]))
    log = read_query_log(str(root))
    assert log is not None
    return log


def entry(landing: Path, name: str, log_id: int, *, exists: bool = True) -> object:
    landing.mkdir(exist_ok=True)
    if exists:
        (landing / name).touch()
    return {"path": (landing / name).as_uri(), "timestamp": 1000 + log_id, "batchId": log_id}


def of_files(root: Path, *, without: str = "") -> QueryLog:
    """Listings 0 to 3 of a file each (the first two in one `.compact`), of which batch 3 is not done."""
    entries = [entry(root / "landing", f"f {n}", n, exists=without != f"f {n}") for n in range(4)]
    sources = {"0": entries[:1], "1.compact": entries[:2], "2": entries[2:3], "3": entries[3:]}
    return query(root / "checkpoint", {n: {"logOffset": n} for n in range(4)}, sources, done=2)


def names(log: QueryLog, position: TablePosition) -> list[tuple[int, list[str]]]:
    marks = missing_files_of_log(log, position, str)
    assert all(isinstance(mark.extent, Files) for mark in marks)
    return [(m.batch, [uri[-3:] for _, uri in m.extent.files]) for m in marks if isinstance(m.extent, Files)]


def test_a_table_lacks_all_files_listed_since_its_batch_and_none_of_one_that_is_not_done(tmp_path: Path) -> None:
    log = of_files(tmp_path)
    assert names(log, FROM_START) == [(0, ["200"]), (1, ["201"]), (2, ["202"])]
    assert names(log, TablePosition("q", 1)) == [(2, ["202"])]
    assert names(log, TablePosition("q", 2)) == []
    forgotten = QueryLog(log.uri, log.query, {2: log.ends[2]})
    assert names(forgotten, TablePosition("q", 0)) == [(0, ["201"]), (2, ["202"])]


def test_a_table_of_another_query_is_only_filled_where_this_one_has_read_its_last_file_too(tmp_path: Path) -> None:
    log = of_files(tmp_path)
    known = (tmp_path / "landing" / "f 1").as_uri().replace("file:///", "file:/")
    assert len(names(log, TablePosition("before", 7, last=known))) == 3
    with pytest.raises(IngestError, match="read from another start"):
        names(log, TablePosition("before", 7, last="file:/elsewhere"))


def test_a_file_that_is_gone_is_an_error_where_it_is_missing_alone(tmp_path: Path) -> None:
    log = of_files(tmp_path, without="f 1")
    assert names(log, TablePosition("q", 1)) == [(2, ["202"])]
    with pytest.raises(IngestError, match=r"lacks the events of 2 files, of which 1 are gone, e.g. .*f%201"):
        names(log, TablePosition("q", 0))


def of_kafka(root: Path, first: int = 0) -> QueryLog:
    ends = {n: {"t": {"0": first + 10 * (n + 1), "1": first + n}} for n in range(3)}
    log = query(root, dict(ends), {}, done=2)
    start = {"t": {"0": first, "1": first}}
    (root / "sources" / "0" / "0").write_text("\0v1\n" + json.dumps(start))
    return log


def ranges(log: QueryLog, position: TablePosition, kept: int = 0) -> list[tuple[int, object]]:
    def earliest(partitions: list[tuple[str, int]]) -> PartitionOffsets:
        return dict.fromkeys(partitions, kept)

    marks = missing_offsets(log, position, earliest)
    return [(mark.batch, mark.extent.ranges) for mark in marks if isinstance(mark.extent, Offsets)]


def test_a_table_lacks_the_offsets_from_its_batch_on(tmp_path: Path) -> None:
    log = of_kafka(tmp_path)
    last = (2, (("t", 0, 20, 30), ("t", 1, 1, 2)))
    assert ranges(log, TablePosition("q", 1)) == [last]
    assert ranges(log, TablePosition("q", 2)) == []
    assert ranges(log, FROM_START) == [(0, (("t", 0, 0, 10),)), (1, (("t", 0, 10, 20), ("t", 1, 0, 1))), last]
    # The end of its batch is no longer known: what its commits say of each partition is.
    forgotten = QueryLog(log.uri, log.query, {2: log.ends[2]})
    assert ranges(forgotten, TablePosition("q", 0, ends={("t", 0): 10})) == [(2, (("t", 0, 10, 30), ("t", 1, 0, 2)))]


def test_offsets_that_are_gone_are_an_error_where_they_are_missing_alone(tmp_path: Path) -> None:
    log = of_kafka(tmp_path)
    assert len(ranges(log, TablePosition("q", 1), kept=1)) == 1
    with pytest.raises(IngestError, match="lacks offsets 10 to 14 of t/0, which are gone"):
        ranges(log, TablePosition("q", 0), kept=15)
    with pytest.raises(IngestError, match="lacks offsets 0 to 29 of t/0, which are gone"):
        missing_offsets(log, FROM_START, lambda _: {})


def test_events_of_a_topic_that_was_deleted_are_gone(tmp_path: Path) -> None:
    """Spark lists it in no later batch."""
    log = query(tmp_path, {0: {"t": {"0": 10}, "gone": {"0": 5}}, 1: {"t": {"0": 20}}}, {}, done=1)
    (tmp_path / "sources" / "0" / "0").write_text("\0v1\n" + json.dumps({"t": {"0": 0}, "gone": {"0": 0}}))

    def earliest(partitions: list[tuple[str, int]]) -> PartitionOffsets:
        return {partition: 0 for partition in partitions if partition[0] == "t"}

    assert [len(missing_offsets(log, TablePosition("q", batch), earliest)) for batch in (0, 1)] == [1, 0]
    with pytest.raises(IngestError, match="lacks offsets 0 to 4 of gone/0, which are gone"):
        missing_offsets(log, FROM_START, earliest)


def test_a_table_of_another_query_lacks_what_lies_between_them(tmp_path: Path) -> None:
    log = of_kafka(tmp_path, first=50)
    before = TablePosition("before", 3, ends={("t", 0): 55, ("t", 1): 50})
    assert ranges(log, before)[0] == (0, (("t", 0, 55, 60),))
    with pytest.raises(IngestError, match="read from another start"):
        ranges(log, TablePosition("before", 3, ends={("t", 0): 49, ("t", 1): 50}))
    with pytest.raises(IngestError, match="read from another start"):
        ranges(log, TablePosition("before", 3, ends={("t", 0): 55}))


def test_the_commits_of_a_table_say_where_it_is(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    assert table_position(Timeline(str(tmp_path))) == FROM_START

    def mark(batch: int, **offsets: object) -> dict[str, str]:
        return {"sml.ingest": json.dumps({"query": "q", "batch": batch, "offsets": offsets})}

    lake.commit(1, ["a"], extra=mark(0, t={"0": [0, 5], "1": [0, 9]}))
    lake.commit(3, ["a"], extra=mark(4, t={"0": [5, 8]}))
    lake.commit(5, ["a"])
    position = table_position(Timeline(str(tmp_path)))
    assert position == TablePosition("q", 4, ends={("t", 0): 8, ("t", 1): 9})
    lake.commit(7, ["a"], extra=mark(6, files=1, last="file:/l", digest="d"))
    assert table_position(Timeline(str(tmp_path))) == TablePosition("q", 6, "file:/l")


def test_a_table_that_reads_batches_again_is_where_it_is_in_these(tmp_path: Path) -> None:
    lake = Lake(tmp_path)

    def mark(query: str, batch: int, end: int) -> dict[str, str]:
        offsets = {"t": {"0": [0, end]}}
        return {"sml.ingest": json.dumps({"query": query, "batch": batch, "offsets": offsets})}

    lake.commit(1, ["a"], extra=mark("q", 7, 80))
    lake.commit(3, ["a"], extra=mark("q/again-ab", 0, 10))
    assert table_position(Timeline(str(tmp_path))) == TablePosition("q", 0, ends={("t", 0): 10})
    lake.commit(5, ["a"], extra=mark("q", 8, 90))
    assert table_position(Timeline(str(tmp_path))).ends == {("t", 0): 90}


def test_what_is_gone_is_left_out_where_part_of_it_is_better_than_nothing(tmp_path: Path) -> None:
    log = of_files(tmp_path, without="f 1")
    marks = missing_files_of_log(log, FROM_START, str, is_partial=True)
    assert [mark.batch for mark in marks] == [0, 2]
    log = of_kafka(tmp_path / "kafka")
    (first, *_) = missing_offsets(log, FROM_START, lambda _: {("t", 0): 15, ("t", 1): 0}, is_partial=True)
    assert first.extent == Offsets((("t", 0, 15, 20), ("t", 1, 0, 1)))
    assert missing_offsets(log, FROM_START, lambda _: {}, is_partial=True) == ()
