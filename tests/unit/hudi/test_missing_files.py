"""What a merge-on-read table lacks as of a frontier, told from timelines and listings made by hand."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import fastavro
import pytest

from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.missing_files import missing_files
from sqlmesh_like.hudi.timeline import Timeline


def at(second: int) -> str:
    return f"20240101000{second:03d}000"


def log(instant: int, group: str = "g") -> str:
    return f".{group}_{at(instant)}.log.1_0-1-2"


def base(instant: int, group: str = "g") -> str:
    return f"{group}_0-1-2_{at(instant)}.parquet"


class Lake:
    """A table of one partition; every commit takes a second."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".hoodie" / "timeline"
        self.folder.mkdir(parents=True)
        (root / ".hoodie" / "hoodie.properties").write_text("hoodie.table.type=MERGE_ON_READ\n")
        (root / "p=1").mkdir()

    @property
    def timeline(self) -> Timeline:
        return Timeline(str(self.root))

    def commit(self, requested: int, name: str, *, operation: str = "UPSERT", completed: int | None = None) -> str:
        """A commit of one file; returns its frontier."""
        file_id = name.removeprefix(".").split("_")[0]
        record = {
            "partitionToWriteStats": {"p=1": [{"fileId": file_id, "path": f"p=1/{name}", "prevCommit": "null"}]},
            "operationType": operation,
        }
        (self.root / "p=1" / name).touch()
        frontier = f"{at(requested)}_{at(completed or requested + 1)}"
        action = "commit" if operation == "COMPACT" else "deltacommit"
        (self.folder / f"{frontier}.{action}").write_text(json.dumps(record))
        if operation == "COMPACT":
            self.mark(f"{at(requested)}.compaction.requested")
        return frontier

    def mark(self, name: str) -> None:
        (self.folder / name).touch()

    def clean(self, requested: int, names: Sequence[str], kept: str = "") -> None:
        record = {"earliestCommitToRetain": kept, "partitionMetadata": {"p=1": {"deletePathPatterns": list(names)}}}
        entry = {"type": "record", "name": "e", "fields": [_field("deletePathPatterns", _array("string"))]}
        fields = [_field("earliestCommitToRetain", "string"), _field("partitionMetadata", _map(entry))]
        self._avro(f"{at(requested)}_{at(requested + 1)}.clean", fields, record)
        self._delete(names)

    def plan_clean(self, requested: int, names: Sequence[str]) -> None:
        """A clean that was cut short: the plan stands, the files are gone, or not yet."""
        record = {"filePathsToBeDeletedPerPartition": {"p=1": [{"filePath": f"{self.root}/p=1/{n}"} for n in names]}}
        entry = {"type": "record", "name": "e", "fields": [_field("filePath", "string")]}
        fields = [_field("filePathsToBeDeletedPerPartition", _map(_array(entry)))]
        self._avro(f"{at(requested)}.clean.requested", fields, record)

    def archive(self, frontier: str) -> None:
        """The commit moves to the table's history; its files stay."""
        (self.folder / f"{frontier}.deltacommit").unlink()

    def _avro(self, name: str, fields: Sequence[object], record: Mapping[str, object]) -> None:
        buffer = io.BytesIO()
        fastavro.writer(buffer, {"type": "record", "name": "c", "fields": list(fields)}, [record])
        (self.folder / name).write_bytes(buffer.getvalue())

    def _delete(self, names: Sequence[str]) -> None:
        for name in names:
            (self.root / "p=1" / name).unlink()


def _field(name: str, type_: object) -> Mapping[str, object]:
    return {"name": name, "type": type_}


def _array(items: object) -> Mapping[str, object]:
    return {"type": "array", "items": items}


def _map(values: object) -> Mapping[str, object]:
    return {"type": "map", "values": values}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "t")


def test_a_slice_is_its_base_file_and_the_logs_of_commits_that_completed_later(lake: Lake) -> None:
    first = lake.commit(1, base(1))
    second = lake.commit(3, log(3))
    lake.commit(5, base(5), operation="COMPACT")
    third = lake.commit(7, log(7))
    assert [missing_files(lake.timeline, frontier) for frontier in (first, second, third)] == [[], [], []]
    (lake.root / "p=1" / base(1)).unlink()
    assert missing_files(lake.timeline, first) == [f"p=1/{base(1)}"]
    assert missing_files(lake.timeline, second) == [], "the compaction before the next commit holds its rows"
    (lake.root / "p=1" / log(3)).unlink()
    assert missing_files(lake.timeline, third) == []
    (lake.root / "p=1" / log(7)).unlink()
    assert missing_files(lake.timeline, third) == [f"p=1/{log(7)}"]


def test_what_a_clean_took_of_archived_commits_is_missed(lake: Lake) -> None:
    archived = [lake.commit(1, base(1)), lake.commit(3, log(3))]
    start = lake.commit(5, base(5, "other"))
    lake.commit(7, log(7))
    lake.commit(9, base(9), operation="COMPACT")
    end = lake.commit(11, log(11))
    lake.clean(13, [base(1), log(3), log(7)])
    for frontier in archived:
        lake.archive(frontier)
    assert sorted(missing_files(lake.timeline, start)) == sorted([f"p=1/{base(1)}", f"p=1/{log(3)}"])
    assert missing_files(lake.timeline, start, {("p=1", "other")}) == []
    assert missing_files(lake.timeline, end) == []
    assert "cleaned" in (LakeHistory().unreadable_reason(str(lake.root), start, end) or "")


def test_a_clean_of_older_slices_takes_nothing_that_is_needed(lake: Lake) -> None:
    old = lake.commit(1, base(1))
    lake.commit(3, base(3), operation="COMPACT")
    start = lake.commit(5, log(5))
    end = lake.commit(7, log(7))
    lake.archive(old)
    lake.clean(9, [base(1)])
    assert missing_files(lake.timeline, start) == missing_files(lake.timeline, end) == []


def test_a_clean_under_way_counts_as_done(lake: Lake) -> None:
    archived = lake.commit(1, base(1))
    start = lake.commit(3, base(3, "other"))
    lake.commit(5, log(5))
    lake.commit(7, base(7), operation="COMPACT")
    lake.archive(archived)
    assert missing_files(lake.timeline, start) == []
    lake.plan_clean(9, [base(1)])
    assert [path.rpartition("/")[2] for path in missing_files(lake.timeline, start)] == [base(1)]


def test_hudi_refuses_what_is_older_than_the_last_clean_kept(lake: Lake) -> None:
    start = lake.commit(1, base(1))
    lake.commit(3, log(3))
    end = lake.commit(5, log(5))
    lake.clean(7, [], kept=at(3))
    assert missing_files(lake.timeline, start, {("p=1", "nothing")}) == [f"all before {at(3)}"]
    assert missing_files(lake.timeline, end) == []


def test_a_commit_that_a_compaction_overtook_is_no_frontier_until_it_can_be_read(lake: Lake) -> None:
    first = lake.commit(1, base(1))
    slow = lake.commit(3, log(3), completed=9)
    lake.mark(f"{at(4)}.deltacommit.inflight")
    lake.mark(f"{at(6)}.compaction.requested")
    assert lake.timeline.frontier == first, "as of the slow commit its own log file is not shown"
    assert not lake.timeline.is_settled(slow)
    last = lake.commit(4, log(4), completed=10)
    assert lake.timeline.frontier == last
    assert lake.timeline.as_of(last) == at(6)
    assert "overtaken" in (LakeHistory().unreadable_reason(str(lake.root), slow, last) or "")
