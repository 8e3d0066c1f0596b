"""Timelines read from files alone: commits, frontiers, file slices, and what is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.time_travel import state_at
from sqlmesh_like.hudi.timeline import Timeline


def at(second: int) -> str:
    """An instant of the day, 17 digits."""
    return f"20240101000{second:03d}000"


class Lake:
    """A table's folder with hand-made timeline files and empty data files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".hoodie" / "timeline"
        self.folder.mkdir(parents=True)
        text = "#comment\nhoodie.table.type=COPY_ON_WRITE\nhoodie.table.partition.fields=p:SIMPLE\nhoodie.x=a\\:b\n"
        (root / ".hoodie" / "hoodie.properties").write_text(text)

    @property
    def timeline(self) -> Timeline:
        return Timeline(str(self.root))

    def commit(
        self,
        requested: int,
        files: Sequence[str] = (),
        *,
        operation: str = "UPSERT",
        replaced: Mapping[str, Sequence[str]] | None = None,
        merged_from: Mapping[str, int] | None = None,
        action: str = "commit",
        extra: Mapping[str, str] | None = None,
        completed: int | None = None,
    ) -> str:
        """A commit that wrote a file group for each of `files` (in partition p=1); returns its frontier."""
        stats = [self.file(file_id, requested, (merged_from or {}).get(file_id)) for file_id in files]
        record = {
            "partitionToWriteStats": {"p=1": stats} if stats else {},
            "partitionToReplaceFileIds": replaced or {},
            "operationType": operation,
            "extraMetadata": extra or {},
        }
        frontier = f"{at(requested)}_{at(completed or requested + 1)}"
        (self.folder / f"{frontier}.{action}").write_text(json.dumps(record))
        return frontier

    def file(self, file_id: str, instant: int, merged_from: int | None = None) -> Mapping[str, object]:
        path = f"p=1/{file_id}_0-1-2_{at(instant)}.parquet"
        (self.root / "p=1").mkdir(exist_ok=True)
        (self.root / path).touch()
        previous = at(merged_from) if merged_from is not None else "null"
        return {"fileId": file_id, "path": path, "prevCommit": previous, "numWrites": 2, "numDeletes": 1}

    def mark(self, name: str) -> None:
        (self.folder / name).touch()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "t")


def paths(timeline: Timeline, frontier: str) -> dict[str, str]:
    return {file_slice.file_id: file_slice.instant for file_slice in timeline.slices(frontier).values()}


def test_a_folder_without_hudi_is_no_table(tmp_path: Path) -> None:
    timeline = Timeline(str(tmp_path / "nothing"))
    assert (timeline.exists, timeline.frontier, timeline.commits) == (False, None, ())


def test_properties_are_read_with_their_escapes(lake: Lake) -> None:
    assert lake.timeline.properties["hoodie.x"] == "a:b"
    assert lake.timeline.partition_fields == ("p",)
    assert lake.timeline.is_cow


def test_the_frontier_is_the_last_data_commit(lake: Lake) -> None:
    lake.commit(1, ["a"])
    last = lake.commit(3, ["a"], merged_from={"a": 1})
    lake.commit(5, ["b"], operation="CLUSTER", action="replacecommit", replaced={"p=1": ["a"]})
    lake.mark(f"{at(7)}_{at(8)}.clean")
    assert lake.timeline.frontier == last


@pytest.mark.parametrize("name", ["{t}.commit.requested", "{t}.inflight", "{t}.deltacommit.inflight",
                                  "{t}.replacecommit.requested"])  # fmt: skip
def test_an_incomplete_data_instant_holds_the_frontier_back(lake: Lake, name: str) -> None:
    first = lake.commit(1, ["a"])
    lake.commit(5, ["b"])
    lake.mark(name.format(t=at(3)))
    assert lake.timeline.pending == (at(3),)
    assert lake.timeline.frontier == first


@pytest.mark.parametrize("action", ["compaction", "clustering", "clean", "rollback", "logcompaction", "indexing"])
def test_an_incomplete_service_does_not(lake: Lake, action: str) -> None:
    lake.mark(f"{at(1)}.{action}.requested")
    lake.mark(f"{at(1)}.{action}.inflight")
    last = lake.commit(5, ["b"])
    assert lake.timeline.pending == ()
    assert lake.timeline.frontier == last


def test_instants_order_by_request_whatever_completes_first(lake: Lake) -> None:
    early = lake.commit(1, ["a"], completed=9)
    late = lake.commit(2, ["b"], completed=3)
    assert [commit.instant.frontier for commit in lake.timeline.commits] == [early, late]
    assert lake.timeline.frontier == late
    assert [commit.instant.frontier for commit in lake.timeline.between(early, late)] == [late]


def test_slices_are_those_of_the_frontier_not_of_today(lake: Lake) -> None:
    first = lake.commit(1, ["a", "b"])
    second = lake.commit(3, ["a", "c"], merged_from={"a": 1})
    third = lake.commit(5, ["d"], replaced={"p=1": ["a", "b"]}, action="replacecommit", operation="INSERT_OVERWRITE")
    timeline = lake.timeline
    assert paths(timeline, first) == {"a": at(1), "b": at(1)}
    assert paths(timeline, second) == {"a": at(3), "b": at(1), "c": at(3)}
    assert paths(timeline, third) == {"c": at(3), "d": at(5)}


def test_files_of_archived_commits_come_from_the_listing(lake: Lake) -> None:
    lake.file("old", 1)
    lake.file("old", 2)
    frontier = lake.commit(5, ["a"])
    assert paths(lake.timeline, frontier) == {"old": at(2), "a": at(5)}


def test_what_a_crashed_writer_left_is_no_archived_file(lake: Lake) -> None:
    lake.file("begun", 3)
    lake.mark(f"{at(3)}.commit.requested")
    lake.mark(f"{at(3)}.inflight")
    frontier = lake.commit(5, ["a"])
    assert paths(lake.timeline, frontier) == {"a": at(5)}


def test_a_cleaned_slice_is_missing(lake: Lake) -> None:
    first = lake.commit(1, ["a", "b"])
    second = lake.commit(3, ["a"], merged_from={"a": 1})
    (lake.root / f"p=1/a_0-1-2_{at(1)}.parquet").unlink()
    timeline = lake.timeline
    assert timeline.missing(first) == [f"p=1/a_0-1-2_{at(1)}.parquet"]
    assert timeline.missing(first, {("p=1", "b")}) == []
    assert timeline.missing(second) == []


def test_a_cleaned_slice_of_an_archived_commit_is_missing_though_nothing_names_it(lake: Lake) -> None:
    first = lake.commit(3, ["other"])
    second = lake.commit(5, ["merged"], merged_from={"merged": 1})
    lake.commit(7, ["new"], replaced={"p=1": ["replaced", "merged"]}, action="replacecommit")
    timeline = lake.timeline
    assert timeline.missing(first) == [f"p=1/merged of {at(1)}", "p=1/replaced"]
    assert timeline.missing(second) == ["p=1/replaced"]
    assert timeline.missing(first, {("p=1", "other")}) == []


def test_a_group_born_and_replaced_later_is_not_missing(lake: Lake) -> None:
    first = lake.commit(1, ["a"])
    lake.commit(3, ["b"])
    lake.commit(5, ["c"], replaced={"p=1": ["b"]}, action="replacecommit")
    assert lake.timeline.missing(first) == []


def test_a_restore_ends_what_it_undid_and_nothing_else(lake: Lake) -> None:
    first, undone = lake.commit(1, ["a"]), lake.commit(3, ["a"])
    (lake.root / ".hoodie" / "timeline" / f"{undone}.commit").unlink()
    lake.mark(f"{at(5)}_{at(6)}.restore")
    assert lake.timeline.holds(first) and lake.timeline.frontier == first
    assert not lake.timeline.holds(undone)
    later = lake.commit(7, ["a"])
    assert lake.timeline.holds(later) and lake.timeline.holds(first)


def test_a_frontier_of_another_table_is_not_held(lake: Lake) -> None:
    lake.commit(1, ["a"])
    assert not lake.timeline.holds(f"{at(1)}_{at(9)}")


def test_our_keys_and_the_schema_are_found_behind_services(lake: Lake) -> None:
    frontier = lake.commit(1, ["a"], extra={"sml.record": "mine", "schema": "{}"})
    lake.commit(3, ["b"], operation="CLUSTER", action="replacecommit", replaced={"p=1": ["a"]})
    assert lake.timeline.extra("sml.record") == "mine"
    assert lake.timeline.extra("sml.other") is None
    assert lake.timeline.schema_json(frontier) == "{}"
    assert lake.timeline.schema_json(f"{at(0)}_{at(0)}") is None


def test_metadata_in_avro_is_read_too(lake: Lake) -> None:
    schema = {
        "type": "record", "name": "HoodieCommitMetadata",
        "fields": [{"name": "operationType", "type": "string"},
                   {"name": "extraMetadata", "type": {"type": "map", "values": "string"}}],
    }  # fmt: skip
    with (lake.folder / f"{at(1)}_{at(2)}.commit").open("wb") as file:
        fastavro.writer(file, schema, [{"operationType": "BULK_INSERT", "extraMetadata": {"k": "v"}}])
    (commit,) = lake.timeline.commits
    assert (commit.operation, commit.extra, commit.writes) == ("BULK_INSERT", {"k": "v"}, ())


def test_unreadable_metadata_is_an_error_that_names_the_file(lake: Lake) -> None:
    (lake.folder / f"{at(1)}_{at(2)}.commit").write_bytes(b"")
    with pytest.raises(NodeError, match=f"{at(1)}_{at(2)}.commit"):
        _ = lake.timeline.commits


def test_a_rewrite_of_all_rows_is_no_change_and_stands_for_what_it_rewrote(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    first = lake.commit(1, ["a", "b"], extra={"sml.buckets": "1", "sml.ingest": "mark"})
    second = lake.commit(3, ["a"], merged_from={"a": 1}, extra={"sml.buckets": "1", "sml.ingest": "later"})
    known = {"sml.buckets": "3", "sml.ingest": "later", "sml.rewrite": "1 buckets → 3"}
    lake.commit(5, ["c"], operation="INSERT_OVERWRITE_TABLE", replaced={"p=1": ["a", "b"]}, extra=known)
    timeline = lake.timeline
    assert timeline.frontier == second, "no row changed"
    assert timeline.extra("sml.buckets") == "3", "what the next writer must know"
    assert {group for _, group in timeline.slices(second)} == {"c"}
    assert {group for _, group in timeline.slices(first)} == {"a", "b"}
    assert timeline.missing(second) == [] and timeline.sizes(second).keys() == timeline.slices(second).keys()
    third = lake.commit(7, ["c"], merged_from={"c": 5}, extra={"sml.buckets": "3"})
    timeline = lake.timeline
    assert [commit.operation for commit in timeline.between(second, third)] == ["UPSERT"]
    assert [commit.operation for commit in timeline.between(first, third)] == [
        "UPSERT",
        "INSERT_OVERWRITE_TABLE",
        "UPSERT",
    ]


def gap(lake: Lake, *, archived_action: str = "commit", archived_group: str = "", **first: object) -> tuple[str, str]:
    """A savepointed commit whose two successors were archived, and one after them; the frontiers of first and last."""
    saved = lake.commit(1, ["a", "b"], **first)  # type: ignore[arg-type]
    lake.mark(f"{at(1)}.savepoint.inflight")
    lake.mark(f"{at(1)}_{at(2)}.savepoint")
    lake.file("a", 3, merged_from=1)
    lake.file("c", 5)
    (lake.folder / "history").mkdir()
    replacement = json.dumps({"operationType": "CLUSTER", "partitionToReplaceFileIds": {"p=1": [archived_group]}})
    actions, metadata = ["commit", archived_action], [b"{}", replacement.encode()]
    history = pa.table({"instantTime": [at(3), at(5)], "action": actions, "metadata": metadata})
    pq.write_table(history, lake.folder / "history" / f"{at(3)}_{at(5)}_0.parquet")
    return saved, lake.commit(7, ["b"], merged_from={"b": 1})


@pytest.mark.parametrize("is_deleted", [False, True])
def test_files_of_commits_that_were_archived_after_a_savepoint_count(lake: Lake, is_deleted: bool) -> None:
    saved, newest = gap(lake)
    if is_deleted:
        (lake.folder / f"{at(1)}_{at(2)}.savepoint").unlink()
    assert paths(lake.timeline, newest) == {"a": at(3), "b": at(7), "c": at(5)}
    # What changed since then is not on the timeline any more.
    assert not lake.timeline.holds(saved) and lake.timeline.holds(newest)
    assert "no longer on the timeline" in str(LakeHistory().unreadable_reason(str(lake.root), saved, newest))
    assert [commit.instant.frontier for commit in lake.timeline.commits] == [newest]
    assert sorted(lake.timeline.sizes(newest)) == [("p=1", "a"), ("p=1", "b"), ("p=1", "c")]


def test_what_the_savepointed_commit_replaced_is_not_live(lake: Lake) -> None:
    lake.file("old", 0)
    _, newest = gap(lake, action="replacecommit", replaced={"p=1": ["old"]})
    assert paths(lake.timeline, newest) == {"a": at(3), "b": at(7), "c": at(5)}


def test_a_table_is_refused_while_hudi_does_not_see_files_of_the_gap(lake: Lake) -> None:
    _, seventh = gap(lake)
    with pytest.raises(NodeError, match=f"was archived after the savepointed commit {at(1)}, and Hudi's readers") as no:
        LakeHistory().state(str(lake.root))
    assert "delete the savepoint" in str(no.value)
    newest = lake.commit(9, ["a", "c"], merged_from={"a": 3, "c": 5})
    state = LakeHistory().state(str(lake.root))
    assert state.frontier == newest
    # As of the commit before, Hudi's reader would return fewer rows.
    assert "was archived after" in str(LakeHistory().unreadable_reason(str(lake.root), seventh, newest))
    with pytest.raises(NodeError, match="was archived after"):
        state_at(state, seventh)
    assert LakeHistory().unreadable_reason(str(lake.root), newest, newest) is None


def test_a_merge_on_read_table_with_a_gap_is_refused(lake: Lake) -> None:
    gap(lake)
    lake.commit(9, ["a", "b", "c"])
    properties = lake.root / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("COPY_ON_WRITE", "MERGE_ON_READ"))
    with pytest.raises(NodeError, match=f"commits were archived after the savepointed commit {at(1)}"):
        LakeHistory().state(str(lake.root))


def test_a_replacement_that_was_archived_after_a_savepoint_is_refused(lake: Lake) -> None:
    lake.file("replaced", 0)
    gap(lake, archived_action="replacecommit", archived_group="replaced")
    newest = lake.commit(9, ["a", "b", "c"], merged_from={"a": 3, "b": 7, "c": 5})
    with pytest.raises(NodeError, match=f"replacecommit {at(5)} was archived after the savepointed commit {at(1)}"):
        LakeHistory().state(str(lake.root))
    next(lake.root.glob("p=1/replaced*")).unlink()
    assert LakeHistory().state(str(lake.root)).frontier == newest, "what it replaced is gone"


def test_a_history_that_is_newer_than_every_commit_hides_none(lake: Lake) -> None:
    newest = lake.commit(1, ["a"])
    (lake.folder / "history").mkdir()
    lake.mark(f"history/{at(3)}_{at(5)}_0.parquet")
    assert lake.timeline.frontier == newest and paths(lake.timeline, newest) == {"a": at(1)}


def test_a_restore_that_did_not_complete_hides_no_commit(lake: Lake) -> None:
    lake.commit(1, ["a"])
    lake.mark(f"{at(3)}.restore.requested")
    lake.mark(f"{at(3)}.restore.inflight")
    newest = lake.commit(5, ["a"], merged_from={"a": 1})
    assert lake.timeline.frontier == newest and lake.timeline.unfinished == (at(3),)


def test_a_savepoint_in_flight_of_an_archived_commit_keeps_no_writer_waiting(lake: Lake) -> None:
    lake.mark(f"{at(1)}.savepoint.inflight")
    lake.commit(3, ["a"])
    assert lake.timeline.unfinished == lake.timeline.pending == ()
