"""Plans of reads as data, on tables of empty files made by hand: which files, with which signs and joins."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqlmesh_like.errors import RetryableError
from sqlmesh_like.hudi.change_log import FOLDER, ChangeLog, LogFile, NotLoggedError, columns_fingerprint
from sqlmesh_like.hudi.commits import FileGroup, Slice
from sqlmesh_like.hudi.reading.change_plan import (
    Comparison,
    LoggedChange,
    plan_change,
    plan_comparison,
    plan_logs,
)
from sqlmesh_like.hudi.reading.rows_plan import BaseFiles, Overlay, RowKey, SliceMerge, plan_rows
from sqlmesh_like.hudi.timeline import Timeline

OURS = "hoodie.table.recordkey.fields=_sml_key\n"
THEIRS = "hoodie.table.recordkey.fields=id\n"
MODE = "hoodie.record.merge.mode=COMMIT_TIME_ORDERING\n"
A, B, C = ("p=1", "a"), ("p=1", "b"), ("p=2", "c")
NAMES = ("id", "p", "_sml_key")


def at(second: int) -> str:
    return f"20240101000{second:03d}000"


def log_columns(*names: str) -> str:
    fields = [{"name": name, "type": "string", "nullable": True, "metadata": {}} for name in names]
    return json.dumps({"type": "struct", "fields": fields})


@dataclass(frozen=True)
class Table:
    root: Path
    kind: str = "COPY_ON_WRITE"
    properties: str = OURS + MODE

    def __post_init__(self) -> None:
        (self.root / ".hoodie" / "timeline").mkdir(parents=True)
        text = f"hoodie.table.type={self.kind}\nhoodie.table.partition.fields=p\n{self.properties}"
        (self.root / ".hoodie" / "hoodie.properties").write_text(text)

    @property
    def timeline(self) -> Timeline:
        return Timeline(str(self.root))

    def commit(
        self,
        second: int,
        *groups: FileGroup,
        operation: str = "UPSERT",
        deletes: Sequence[FileGroup] = (),
        replaced: Sequence[FileGroup] = (),
        extra: Mapping[str, str] | None = None,
        in_logs: bool = False,
    ) -> str:
        """A commit that wrote a base file (`in_logs`: a log file) of each group; returns its frontier."""
        stats: dict[str, list[Mapping[str, object]]] = {}
        for group in groups:
            partition, file_id = group
            name = f".{file_id}_{at(second)}.log.1_0-1-2" if in_logs else f"{file_id}_0-1-2_{at(second)}.parquet"
            (self.root / partition).mkdir(exist_ok=True)
            (self.root / partition / name).touch()
            stat = {"fileId": file_id, "path": f"{partition}/{name}", "numUpdateWrites": 3, "prevCommit": "null"}
            stats.setdefault(partition, []).append({**stat, "numDeletes": int(group in deletes)})
        ended: dict[str, list[str]] = {}
        for partition, file_id in replaced:
            ended.setdefault(partition, []).append(file_id)
        key = "_sml_key" if "_sml_key" in self.properties else "id"
        schema = {"type": "record", "name": "t", "fields": [{"name": n, "type": "string"} for n in {key, "id", "p"}]}
        record = {
            "partitionToWriteStats": stats,
            "partitionToReplaceFileIds": ended,
            "operationType": operation,
            "extraMetadata": {"schema": json.dumps(schema), **(extra or {})},
        }
        frontier = f"{at(second)}_{at(second + 1)}"
        is_delta = self.kind == "MERGE_ON_READ" and operation not in ("COMPACT",) and not replaced
        action = "replacecommit" if replaced else "deltacommit" if is_delta else "commit"
        folder = self.root / ".hoodie" / "timeline"
        (folder / f"{frontier}.{action}").write_text(json.dumps(record))
        if operation == "COMPACT":
            (folder / f"{at(second)}.compaction.requested").touch()
        return frontier

    def log(self, previous: str, *rows: int, columns: Sequence[str] = (*NAMES, "_sml_weight")) -> Mapping[str, str]:
        """Metadata of a change log of files with so many rows each, which it writes."""
        described, files = log_columns(*columns), []
        for number, count in enumerate(rows):
            path = f"{FOLDER}/{previous}-{number}.parquet"
            (self.root / FOLDER).mkdir(exist_ok=True)
            empty = pa.table({"id": ["x"] * count}).replace_schema_metadata(
                {b"org.apache.spark.sql.parquet.row.metadata": described.encode()}
            )
            pq.write_table(empty, self.root / path)
            files.append(LogFile(path, (self.root / path).stat().st_size))
        record = ChangeLog(previous, sum(rows), tuple(files), columns_fingerprint(described))
        return {f"sml.{key}": value for key, value in record.metadata.items()}


@pytest.fixture
def cow(tmp_path: Path) -> Table:
    return Table(tmp_path / "t")


@pytest.fixture
def mor(tmp_path: Path) -> Table:
    return Table(tmp_path / "t", "MERGE_ON_READ")


def instants(source: object) -> dict[FileGroup, str]:
    """File groups of base files, and the second that wrote each."""
    assert isinstance(source, BaseFiles)
    return seconds(source.slices)


def seconds(slices: Sequence[Slice]) -> dict[FileGroup, str]:
    return {each.group: each.instant[-6:-3] for each in slices}


def compared(table: Table, start: str, end: str, why: str = "") -> Comparison:
    return plan_comparison(table.timeline, start, end, why)


def test_upserts_compare_the_files_of_the_groups_that_they_wrote(cow: Table) -> None:
    start = cow.commit(1, A, B, C)
    cow.commit(3, A)
    end = cow.commit(5, A, B, deletes=[B])
    plan = compared(cow, start, end)
    assert (instants(plan.old), instants(plan.new)) == ({A: "001", B: "001"}, {A: "005", B: "005"})
    assert plan.since == at(1)
    assert plan.superseded == {A} and not plan.is_superseded, "rows were deleted from the other group"
    assert plan.most_left == 10
    assert compared(cow, start, cow.timeline.data_commits[1].instant.frontier).is_superseded


def test_a_moved_row_is_deleted_where_it_was(cow: Table) -> None:
    start = cow.commit(1, A)
    end = cow.commit(3, A, C, deletes=[A])
    plan = compared(cow, start, end)
    assert (instants(plan.old), instants(plan.new)) == ({A: "001"}, {A: "003", C: "003"})
    assert plan.superseded == {C}


@pytest.mark.parametrize("operation", ["INSERT", "BULK_INSERT", "DELETE", "UNKNOWN"])
def test_only_upserts_promise_that_a_newer_row_replaced_an_older_one(cow: Table, operation: str) -> None:
    start = cow.commit(1, A)
    plan = compared(cow, start, cow.commit(3, A, operation=operation))
    assert (plan.superseded, plan.most_left) == (frozenset(), None)


def test_a_replaced_group_is_all_old_and_its_successor_all_new(cow: Table) -> None:
    start = cow.commit(1, A, C)
    end = cow.commit(3, B, operation="INSERT_OVERWRITE", replaced=[A])
    plan = compared(cow, start, end)
    assert (instants(plan.old), instants(plan.new)) == ({A: "001"}, {B: "003"})
    assert (plan.superseded, plan.most_left) == (frozenset(), None)


def test_clustering_moves_rows_and_removes_none(cow: Table) -> None:
    start = cow.commit(1, A)
    cow.commit(3, B, operation="CLUSTER", replaced=[A])
    plan = compared(cow, start, cow.commit(5, B))
    assert (instants(plan.old), instants(plan.new)) == ({A: "001"}, {B: "005"})
    assert (plan.since, plan.superseded, plan.most_left) == (at(1), frozenset(), 3)


def test_old_rows_are_those_of_a_rewrite_without_a_change(cow: Table) -> None:
    start = cow.commit(1, A)
    cow.commit(3, B, operation="INSERT_OVERWRITE_TABLE", replaced=[A], extra={"sml.rewrite": "test"})
    plan = compared(cow, start, cow.commit(5, B))
    assert (instants(plan.old), instants(plan.new), plan.since) == ({B: "003"}, {B: "005"}, at(3))


def test_the_key_is_stored_or_composed_as_at_the_end(cow: Table, tmp_path: Path) -> None:
    start = cow.commit(1, A)
    assert compared(cow, start, cow.commit(3, A)).key == RowKey(is_stored=True)
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        theirs = Table(tmp_path / kind, kind, THEIRS + MODE)
        start = theirs.commit(1, A)
        middle = theirs.commit(3, A)
        assert compared(theirs, start, middle).key == RowKey(is_stored=False)
        end = theirs.commit(5, A, operation="INSERT")
        assert compared(theirs, start, end).key == RowKey(is_stored=False, has_number=True)


def test_frontiers_and_files_that_are_gone_are_refused(cow: Table) -> None:
    start = cow.commit(1, A, C)
    end = cow.commit(3, A)
    with pytest.raises(RetryableError, match="no longer on its timeline"):
        plan_change(cow.timeline, f"{at(9)}_{at(10)}", end, NAMES)
    (cow.root / f"p=2/c_0-1-2_{at(1)}.parquet").unlink()
    with pytest.raises(RetryableError, match="1 data files of"):
        plan_rows(cow.timeline, end, NAMES)
    assert compared(cow, start, end), "no commit of the range touched it"
    (cow.root / f"p=1/a_0-1-2_{at(1)}.parquet").unlink()
    with pytest.raises(RetryableError, match="are missing"):
        plan_change(cow.timeline, start, end, NAMES)


def test_rows_of_some_partitions_are_those_of_their_files(cow: Table) -> None:
    cow.commit(1, A, B, C)
    end = cow.commit(3, B)
    assert instants(plan_rows(cow.timeline, end, NAMES, {"p=1"}).source) == {A: "001", B: "003"}
    assert instants(plan_rows(cow.timeline, end, NAMES).source) == {A: "001", B: "003", C: "001"}


def test_a_change_is_its_logs_by_their_columns(cow: Table) -> None:
    first = cow.commit(1, A)
    second = cow.commit(3, A, extra=cow.log(first, 2, 1))
    third = cow.commit(5, extra=cow.log(second))
    wide = (*NAMES, "v", "_sml_weight")
    fourth = cow.commit(7, A, extra=cow.log(third, 4, columns=wide))
    end = cow.commit(9, A, extra=cow.log(fourth, 1, columns=wide))
    plan = plan_change(cow.timeline, first, end, NAMES)
    assert isinstance(plan, LoggedChange)
    assert [(len(log.schema), len(log.paths), log.rows) for log in plan.logs] == [(4, 2, 3), (5, 2, 5)]
    assert plan_change(cow.timeline, second, third, ("_sml_rows",)) == LoggedChange(()), "nothing changed"


@pytest.mark.parametrize(
    ("columns", "asked", "why"),
    [
        ((*NAMES, "_sml_weight"), (*NAMES, "_sml_rows"), "asked for that change logs lack"),
        (NAMES, NAMES, "other columns than this version writes"),
        (("id", "_sml_weight"), NAMES, "other columns than this version writes"),
    ],
)
def test_logs_without_needed_columns_are_not_read(
    cow: Table, columns: Sequence[str], asked: Sequence[str], why: str
) -> None:
    start = cow.commit(1, A)
    end = cow.commit(3, A, extra=cow.log(start, 2, columns=columns))
    with pytest.raises(NotLoggedError, match=why):
        plan_logs(cow.timeline, start, end, asked)
    plan = plan_change(cow.timeline, start, end, asked)
    assert isinstance(plan, Comparison) and why in plan.why


def test_without_log_files_base_files_have_all_columns(mor: Table) -> None:
    frontier = mor.commit(1, A, C)
    for columns in (NAMES, (*NAMES, "_sml_rows")):
        assert instants(plan_rows(mor.timeline, frontier, columns).source) == {A: "001", C: "001"}


def test_change_logs_replace_rows_of_the_groups_that_were_written_since(mor: Table) -> None:
    first = mor.commit(1, A, B, C)
    second = mor.commit(3, A, in_logs=True, extra=mor.log(first, 2))
    empty = mor.commit(5, A, in_logs=True, extra=mor.log(second))
    end = mor.commit(7, C, in_logs=True, extra=mor.log(empty, 1))
    source = plan_rows(mor.timeline, end, NAMES).source
    assert isinstance(source, Overlay)
    assert (seconds(source.whole), seconds(source.changed)) == ({B: "001"}, {A: "001", C: "001"})
    assert [log.rows for log in source.logs] == [2, 1], "oldest first"
    assert source.identity == ("_sml_key", "p")
    narrow = plan_rows(mor.timeline, end, NAMES, {"p=1"}).source
    assert isinstance(narrow, Overlay)
    assert (seconds(narrow.whole), seconds(narrow.changed)) == ({B: "001"}, {A: "001"})
    assert len(source.paths) == 5


def test_a_compaction_makes_base_files_of_what_was_logged(mor: Table) -> None:
    first = mor.commit(1, A, B)
    second = mor.commit(3, A, in_logs=True, extra=mor.log(first, 2))
    mor.commit(5, A, operation="COMPACT")
    end = mor.commit(7, B, in_logs=True, extra=mor.log(second, 1))
    source = plan_rows(mor.timeline, end, NAMES).source
    assert isinstance(source, Overlay)
    assert (seconds(source.whole), seconds(source.changed)) == ({A: "005"}, {B: "001"})
    assert [log.rows for log in source.logs] == [1]


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ((*NAMES, "_sml_rows"), "columns are asked for that change logs lack"),
        (("id", "_sml_key"), "its partitions are of a column that change logs lack"),
    ],
)
def test_columns_that_change_logs_lack_are_merged(mor: Table, columns: Sequence[str], why: str) -> None:
    first = mor.commit(1, A)
    end = mor.commit(3, A, in_logs=True, extra=mor.log(first, 1))
    assert plan_rows(mor.timeline, end, columns, {"p=1"}).source == SliceMerge(at(3), why, frozenset({"p=1"}))


def test_a_commit_without_visible_changes_may_have_changed_hidden_columns(mor: Table) -> None:
    first = mor.commit(1, A)
    end = mor.commit(3, A, in_logs=True, extra=mor.log(first))
    assert isinstance(plan_rows(mor.timeline, end, (*NAMES, "_sml_rows")).source, SliceMerge)
    assert isinstance(plan_rows(mor.timeline, end, NAMES).source, BaseFiles)


def test_tables_of_other_writers_are_merged(tmp_path: Path) -> None:
    theirs = Table(tmp_path / "t", "MERGE_ON_READ", THEIRS + MODE)
    frontier = theirs.commit(1, A)
    assert plan_rows(theirs.timeline, frontier, NAMES).source == SliceMerge(
        at(1), "its rows have keys of another writer"
    )
    ours = Table(tmp_path / "ours", "MERGE_ON_READ")
    frontier = ours.commit(1, A, operation="INSERT")
    assert plan_rows(ours.timeline, frontier, NAMES).source == SliceMerge(
        at(1), "another writer may have repeated keys"
    )


def test_merged_slices_are_compared_by_number_where_every_change_has_a_new_one(mor: Table) -> None:
    start = mor.commit(1, A, B, C)
    end = mor.commit(3, A, in_logs=True)
    plan = compared(mor, start, end, "why")
    old, new = (SliceMerge(at(second), "why", frozenset({"p=1"}), frozenset({A})) for second in (1, 3))
    assert (plan.old, plan.new, plan.since, plan.most_left) == (old, new, at(1), 3)
    assert plan.superseded == frozenset() and not plan.is_superseded, "what log files remove shows when they are merged"


@pytest.mark.parametrize("properties", ["hoodie.table.partial.update.mode=KEEP_VALUES\n", ""])
def test_merges_that_combine_rows_are_compared_by_content(tmp_path: Path, properties: str) -> None:
    mode = MODE if properties else "hoodie.record.merge.mode=CUSTOM\n"
    table = Table(tmp_path / "t", "MERGE_ON_READ", OURS + mode + properties)
    start = table.commit(1, A)
    assert compared(table, start, table.commit(3, A, in_logs=True)).since is None


def test_a_merge_into_may_write_some_columns_alone(mor: Table) -> None:
    start = mor.commit(1, A)
    end = mor.commit(3, A, in_logs=True, extra={"_hoodie.spark.sql.merge.into.prepped": "true"})
    assert compared(mor, start, end).since is None


def test_the_old_rows_are_read_as_of_the_compaction_that_holds_them(mor: Table) -> None:
    start = mor.commit(1, A)
    mor.commit(3, A, operation="COMPACT")
    plan = compared(mor, start, mor.commit(5, A, in_logs=True))
    assert isinstance(plan.old, SliceMerge) and isinstance(plan.new, SliceMerge)
    assert (plan.old.instant, plan.new.instant, plan.since) == (at(3), at(5), at(1))
