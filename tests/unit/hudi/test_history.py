"""The state of tables as planning sees it, read from timelines with no JVM."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqlmesh_like.errors import NodeError, UnreadableTableError
from sqlmesh_like.hudi.history import LakeHistory, listing_hash
from sqlmesh_like.names import Column
from sqlmesh_like.plan.history import TableRecord
from tests.unit.hudi.test_timeline import Lake, at
from tests.unit.hudi.test_unfinished_table import WHOLE

SCHEMA = json.dumps({
    "type": "record", "name": "t",
    "fields": [{"name": "_hoodie_commit_time", "type": ["null", "string"]}, {"name": "_sml_key", "type": "string"},
               {"name": "id", "type": ["null", "int"]}],
})  # fmt: skip


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "t")


def record(strategy: str = "row_based") -> dict[str, str]:
    made = TableRecord("model.p.m", "print", {"source.p.s.t": "1_2"}, "2024-01-01T00:00:00+00:00", strategy, ("p",), 3)
    return {"sml.record": made.to_json(), "schema": SCHEMA}


def state_of(lake: Lake):  # type: ignore[no-untyped-def]
    return LakeHistory().state(str(lake.root))


def test_a_table_with_nothing_committed_is_missing(lake: Lake, tmp_path: Path) -> None:
    lake.mark(f"{at(1)}.commit.requested")
    assert state_of(lake).kind == "missing"
    assert LakeHistory().state(str(tmp_path / "nowhere")).kind == "missing"


def test_the_record_of_the_last_run_is_read_back_whole(lake: Lake) -> None:
    frontier = lake.commit(1, ["a"], extra=record())
    state = state_of(lake)
    assert (state.kind, state.frontier) == ("cow", frontier)
    assert state.record == TableRecord.from_json(record()["sml.record"])
    assert state.schema == (Column("id", "int"),)
    assert [column.name for column in state.stored or ()] == ["_hoodie_commit_time", "_sml_key", "id"]
    assert not state.is_foreign_on_top


def test_services_on_top_are_walked_over(lake: Lake) -> None:
    frontier = lake.commit(1, ["a"], extra=record())
    lake.commit(3, ["b"], operation="CLUSTER", action="replacecommit", replaced={"p=1": ["a"]})
    state = state_of(lake)
    assert state.frontier == frontier
    assert state.record is not None
    assert not state.is_foreign_on_top


def test_a_foreign_commit_is_seen_until_a_full_refresh_replaces_its_rows(lake: Lake) -> None:
    lake.commit(1, ["a"], extra=record("full_refresh"))
    lake.commit(3, ["a"], merged_from={"a": 1})
    assert state_of(lake).is_foreign_on_top
    lake.commit(5, ["a"], merged_from={"a": 3}, extra=record("row_based"))
    assert state_of(lake).is_foreign_on_top, "a run that did not know of it has not undone it"
    lake.commit(7, ["c"], extra=record("full_refresh"))
    assert not state_of(lake).is_foreign_on_top


def test_a_lost_start_and_a_cleaned_file_say_so(lake: Lake) -> None:
    start = lake.commit(1, ["a"])
    end = lake.commit(3, ["a"], merged_from={"a": 1})
    history, uri = LakeHistory(), str(lake.root)
    assert history.unreadable_reason(uri, start, end) is None
    assert "no longer on the timeline" in (
        history.unreadable_reason(uri, "20230101000000000_20230101000000001", end) or ""
    )
    (lake.root / f"p=1/a_0-1-2_{at(1)}.parquet").unlink()
    assert "were cleaned" in (history.unreadable_reason(uri, start, end) or "")


def test_a_data_file_of_now_that_is_missing_is_seen_and_one_that_was_clustered_since_is_not(lake: Lake) -> None:
    history, uri = LakeHistory(), str(lake.root)
    assert history.missing(uri) is None
    lake.commit(1, ["a", "b"])
    lake.commit(3, ["a"], merged_from={"a": 1})
    (lake.root / f"p=1/a_0-1-2_{at(1)}.parquet").unlink()
    assert history.missing(uri) is None
    (lake.root / f"p=1/b_0-1-2_{at(1)}.parquet").unlink()
    assert history.missing(uri) == f"1 of its data files are missing, e.g. p=1/b_0-1-2_{at(1)}.parquet"
    lake.commit(5, ["c"], operation="CLUSTER", action="replacecommit", replaced={"p=1": ["a", "b"]})
    assert history.missing(uri) is None


def test_a_table_with_rows_and_without_a_commit_is_not_taken_for_one_that_is_not_there(lake: Lake) -> None:
    (lake.root / ".hoodie" / "hoodie.properties").write_text(WHOLE)
    lake.commit(1, ["a"])
    for path in lake.folder.iterdir():
        path.unlink()
    with pytest.raises(UnreadableTableError, match=r"has data files, e.g. p=1/a_.*parquet, and no commit"):
        LakeHistory().state(str(lake.root))


def test_pending_commits_and_rows_are_counted_between_frontiers(lake: Lake) -> None:
    start = lake.commit(1, ["a"])
    lake.commit(3, ["a", "b"], merged_from={"a": 1})
    lake.commit(5, ["c"], operation="CLUSTER", action="replacecommit", replaced={"p=1": ["a"]})
    end = lake.commit(7, ["b"], merged_from={"b": 3})
    history, uri = LakeHistory(), str(lake.root)
    assert history.pending_commits(uri, start, end) == 3, "a cleaner counts services too"
    assert (history.change(uri, start, end).rows, history.change(uri, start, end).files) == (3, 2)
    assert history.pending_commits(uri, end, end) == 0


def test_unread_commits_count_while_the_first_of_them_is_within_the_limit(lake: Lake) -> None:
    start = lake.commit(1, ["a"])
    first = lake.commit(3, ["a"], merged_from={"a": 1})
    end = lake.commit(5, ["a"], merged_from={"a": 3})
    history, uri = LakeHistory(), str(lake.root)
    completed, later = first.split("_")[1], end.split("_")[1]
    assert history.unread_commits(uri, start, completed) == history.unread_commits(uri, start, "") == 2
    assert history.unread_commits(uri, start, later) == 0, "its first unread commit is older: it is rebuilt in full"
    assert history.unread_commits(uri, first, later) == 1
    assert history.unread_commits(uri, end, "") == 0


def test_rows_of_replaced_file_groups_are_part_of_a_change(lake: Lake) -> None:
    start = lake.commit(1, ["a", "b"])
    lake.commit(3, ["c"], operation="CLUSTER", action="replacecommit", replaced={"p=1": ["a"]})
    end = lake.commit(5, ["d"], operation="INSERT_OVERWRITE", action="replacecommit", replaced={"p=1": ["b", "c"]})
    history, uri = LakeHistory(), str(lake.root)
    written = 1
    assert history.change(uri, start, end).rows == written + 2 + 2, "what is overwritten leaves, wherever it was moved"
    gone = lake.commit(7, [], operation="DELETE_PARTITION", action="replacecommit", replaced={"p=1": ["d"]})
    assert history.change(uri, end, gone).rows == 2


def test_rows_of_archived_files_are_counted_in_their_footers(lake: Lake) -> None:
    start = lake.commit(3, ["b"])
    old = lake.root / f"p=1/a_0-1-2_{at(1)}.parquet"
    pq.write_table(pa.table({"x": [1, 2, 3]}), old)
    (lake.folder / "history").mkdir()
    (lake.folder / "history" / f"{at(1)}_{at(1)}_0.parquet").touch()
    gone = lake.commit(5, [], operation="DELETE_PARTITION", action="replacecommit", replaced={"p=1": ["a", "b"]})
    assert LakeHistory().change(str(lake.root), start, gone).rows == 3 + 2


def test_a_folder_of_files_has_its_listing_as_frontier(tmp_path: Path) -> None:
    assert listing_hash(str(tmp_path / "none")) is None
    (tmp_path / "x.csv").write_text("id\n1\n")
    first = LakeHistory().state(str(tmp_path), "csv")
    assert (first.kind, first.format, first.frontier) == ("files", "csv", listing_hash(str(tmp_path)))
    (tmp_path / "x.csv").write_text("id\n1\n2\n")
    assert listing_hash(str(tmp_path)) != first.frontier


PLAIN = "hoodie.datasource.write.hive_style_partitioning=true\nhoodie.table.keygenerator.type=SIMPLE\n"


def with_properties(lake: Lake, *lines: str) -> None:
    file = lake.root / ".hoodie" / "hoodie.properties"
    file.write_text(file.read_text() + "\n".join(lines) + "\n")


def schema_with(partition_type: object) -> dict[str, str]:
    fields = [{"name": "p", "type": ["null", partition_type]}]
    return {"schema": json.dumps({"type": "record", "name": "t", "fields": fields})}


@pytest.mark.parametrize("type_", ["string", "int", "long", {"type": "int", "logicalType": "date"}])
def test_partitions_can_be_pruned_where_paths_spell_out_the_value(lake: Lake, type_: object) -> None:
    lake.commit(1, ["a"], extra=schema_with(type_))
    assert state_of(lake).layout.columns == ()
    with_properties(lake, PLAIN)
    assert state_of(lake).layout.columns == ("p",)


@pytest.mark.parametrize(
    ("type_", "line"),
    [
        ("string", "hoodie.table.keygenerator.type=TIMESTAMP"),
        ("string", "hoodie.datasource.write.partitionpath.urlencode=true"),
        ("string", "hoodie.datasource.write.hive_style_partitioning=false"),
        ("double", ""),
        ({"type": "long", "logicalType": "timestamp-micros"}, ""),
    ],
)
def test_partitions_are_never_pruned_where_a_path_may_be_spelt_otherwise(lake: Lake, type_: object, line: str) -> None:
    lake.commit(1, ["a"], extra=schema_with(type_))
    with_properties(lake, PLAIN, line)
    assert state_of(lake).layout.columns == ()


@pytest.mark.parametrize(
    "line",
    [
        "hoodie.timeline.layout.version=1",
        "hoodie.populate.meta.fields=false",
        "hoodie.datasource.write.drop.partition.columns=true",
    ],
)
def test_a_table_that_cannot_be_read_rightly_is_refused(lake: Lake, line: str) -> None:
    lake.commit(1, ["a"])
    with_properties(lake, line)
    with pytest.raises(NodeError) as refused:
        state_of(lake)
    assert str(lake.root) in str(refused.value)
    assert refused.value.hint
