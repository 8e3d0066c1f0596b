"""Commits without a JVM that were cut short, interrupted or met by another writer, and rows that are left to Hudi."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sqlmesh_like.errors import RetryableError
from sqlmesh_like.hudi.writer.arrow_schema import UnsupportedRowsError
from sqlmesh_like.hudi.writer.bucket_hash import buckets_of
from sqlmesh_like.hudi.writer.commit_encoding import Action, CommitContent, inflight_name
from sqlmesh_like.hudi.writer.open_commit import OpenCommit, open_commit, settled_timeline
from tests.written_table import Row, WrittenTable

PLAIN = {"p": "string", "v": "long"}
ROWS: list[Row] = [("a", "x", 1), ("b", "y", 2), ("c", "x", 3)]


def made(root: Path, partition: str | None = "p") -> WrittenTable:
    table = WrittenTable(root / "t", PLAIN, partition).create()
    table.upsert(ROWS)
    return table


def in_flight(table: WrittenTable) -> list[str]:
    places = (table.root / ".hoodie" / name for name in (".temp", ".sml_writer"))
    return [*table.timeline.unfinished, *(path.name for place in places for path in place.glob("*"))]


def interrupt_after_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit's file is there, what is removed after it is not."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sqlmesh_like.hudi.writer.open_commit.shutil.rmtree", interrupted)


def test_what_is_interrupted_right_after_its_commit_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path)
    with monkeypatch.context() as patch:
        interrupt_after_the_commit(patch)
        with pytest.raises(KeyboardInterrupt):
            table.upsert([("a", "x", 7)], [("b", "y", None)])
    assert sorted(table.rows()) == [("a", "x", 7), ("c", "x", 3)]
    assert table.timeline.missing(table.frontier) == []
    table.upsert([("d", "x", 4)])
    assert sorted(table.rows()) == [("a", "x", 7), ("c", "x", 3), ("d", "x", 4)]
    assert in_flight(table) == []


def test_a_commit_that_was_archived_before_its_markers_were_removed_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path)
    with monkeypatch.context() as patch:
        interrupt_after_the_commit(patch)
        with pytest.raises(KeyboardInterrupt):
            table.upsert([("b", "y", 7)])
    # Another writer goes on, which knows nothing of this one's folder, and archives all but its own commit.
    interrupted, own = table.frontier[:17], table.root / ".hoodie" / ".sml_writer"
    shutil.move(own, tmp_path / "aside")
    table.upsert([("a", "x", 8)])
    OpenCommit(table.root, interrupted).own_folder.mkdir()
    (table.root / ".hoodie" / "timeline" / "history").mkdir()
    (table.root / ".hoodie" / "timeline" / "history" / "1_2_0.parquet").touch()
    newest = table.frontier
    for path in (table.root / ".hoodie" / "timeline").glob("[0-9]*"):
        if not path.name.startswith(newest[:17]):
            path.unlink()
    expected = [("a", "x", 8), ("b", "y", 7), ("c", "x", 3)]
    assert (table.root / ".hoodie" / ".temp" / interrupted).is_dir() and sorted(table.rows()) == expected
    settled_timeline(str(table.root))
    assert sorted(table.rows()) == expected and in_flight(table) == []


def test_a_partition_may_be_called_like_a_marker(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.upsert([("n", "x.marker.CREATE", 1)])
    commit = open_commit(table.root, table.frontier)
    commit.mark("p=x.marker.CREATE/1-0_0-0-0_1.parquet", is_new=False)
    (table.root / "p=x.marker.CREATE/1-0_0-0-0_1.parquet").touch()
    settled_timeline(str(table.root))
    assert in_flight(table) == [] and ("n", "x.marker.CREATE", 1) in table.rows()
    assert not (table.root / "p=x.marker.CREATE/1-0_0-0-0_1.parquet").exists()


def test_another_writer_whose_clock_is_behind_is_seen(tmp_path: Path) -> None:
    """It began after this one, with an earlier instant: what it writes this one has not seen."""
    table = made(tmp_path)
    commit = open_commit(table.root, table.frontier)
    earlier = str(int(commit.instant) - 1)
    (commit.timeline / f"{earlier}_{int(commit.instant) + 5}.commit").write_bytes(
        next(commit.timeline.glob("*.commit")).read_bytes()
    )
    with pytest.raises(RetryableError, match="another writer has begun"):
        commit.complete(CommitContent("UPSERT", (), {"sml.by": "test"}))


def half_written(commit: OpenCommit) -> None:
    commit.mark(HALF, is_new=True)
    (commit.root / HALF).write_bytes(b"PAR1")


def own_folder_alone(commit: OpenCommit) -> None:
    for name in (inflight_name(commit.instant, commit.action), f"{commit.instant}.{commit.action}.requested"):
        (commit.timeline / name).unlink()


HALF = "p=x/1-0_0-0-0_1.parquet"
STATES: dict[str, Callable[[OpenCommit], None]] = {
    "requested": lambda commit: (commit.timeline / inflight_name(commit.instant, commit.action)).unlink(),
    "in flight": lambda _: None,
    "marked": lambda commit: commit.mark(HALF, is_new=True),
    "half written": half_written,
    "a new partition": lambda commit: commit.add_partition("p=new"),
    "own folder alone": own_folder_alone,
}


@pytest.mark.parametrize("action", ["commit", "replacecommit"])
@pytest.mark.parametrize("state", STATES)
def test_a_commit_that_was_cut_off_is_not_read_and_removed_by_the_next(
    tmp_path: Path, state: str, action: Action
) -> None:
    table = made(tmp_path)
    frontier, before = table.frontier, table.rows()
    STATES[state](open_commit(table.root, frontier, action))
    assert (table.frontier, table.rows()) == (frontier, before)
    table.upsert([("d", "x", 4)], [("a", "x", None)])
    assert sorted(table.rows()) == [("b", "y", 2), ("c", "x", 3), ("d", "x", 4)]
    assert in_flight(table) == []
    assert not (table.root / HALF).exists()


def test_files_of_other_partitions_and_buckets_are_not_read(tmp_path: Path) -> None:
    """They are unreadable here, so that an upsert which opened one would fail."""
    table = WrittenTable(tmp_path / "t", PLAIN, "p", buckets=2).create()
    table.upsert([(f"k{n}", p, n) for n in range(10) for p in "xy"])
    (bucket,) = buckets_of(["k1"], 2)
    others = [path for path in table.timeline.data_files if not path.startswith(f"p=x/{bucket:08d}")]
    assert len(others) == 3
    for path in others:
        (table.root / path).write_bytes(b"!" * 100)
    result = table.upsert([("k1", "x", 100)], [("k1", "z", None)])
    assert (result.inserts, result.updates, result.deletes) == (0, 1, 0)
    before = table.timeline.data_commits[-2].instant.frontier
    assert sorted(table.change(before, table.frontier).items()) == [(("k1", "x", 1), -1), (("k1", "x", 100), 1)]
    with pytest.raises(Exception, match=r"(?i)parquet"):
        table.upsert([("k1", "y", 100)])


@pytest.mark.parametrize("place", [None, ""])
def test_a_partition_without_a_name_is_left_to_hudi(tmp_path: Path, place: str | None) -> None:
    """Which has a name of its own for it."""
    table = made(tmp_path)
    with pytest.raises(UnsupportedRowsError, match="partition"):
        table.upsert([("a", place, 1)])
    assert in_flight(table) == [] and sorted(table.rows()) == ROWS


@pytest.mark.parametrize("type_", ["double", "bytes", "float"])
def test_orders_of_types_that_java_orders_otherwise_are_left_to_hudi(tmp_path: Path, type_: str) -> None:
    table = WrittenTable(tmp_path / "t", {"o": type_}, ordering=("o",)).create()
    value: object = b"\x80" if type_ == "bytes" else float("nan")
    table.upsert([("a", value)])
    with pytest.raises(UnsupportedRowsError, match="order of o"):
        table.upsert([("a", value)])


def test_the_smallest_key_may_be_empty(tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t", PLAIN).create()
    table.upsert([("", "x", 1), ("b", "x", 2)])
    table.upsert([("c", "x", 3)])
    (path,) = [each.path for each in table.timeline.slices(table.frontier).values()]
    footer = table.timeline.footer(path)
    assert (footer["hoodie_min_record_key"], footer["hoodie_max_record_key"]) == ("", "c")
