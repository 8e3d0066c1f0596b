"""When change logs stand for a range of commits, and when they go. Rows of logs are tested on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqlmesh_like.hudi.change_log import (
    FOLDER,
    ChangeLog,
    LogFile,
    NotLoggedError,
    columns_fingerprint,
    logged_columns,
    logs_between,
    read_footer,
    remove_logs,
)
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.timeline import Timeline
from tests.unit.hudi.test_timeline import Lake, at

FIRST = f"{at(10)}_{at(11)}"
COLUMNS = '{"type":"struct","fields":[]}'


def logged(previous: str, rows: int = 0, *files: LogFile) -> Mapping[str, str]:
    record = ChangeLog(previous, rows, files, columns_fingerprint(COLUMNS)).metadata
    return {f"sml.{key}": value for key, value in record.items()}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    new_lake = Lake(tmp_path / "t")
    text = "hoodie.table.type=COPY_ON_WRITE\nhoodie.table.recordkey.fields=_sml_key\n"
    (new_lake.root / ".hoodie" / "hoodie.properties").write_text(text)
    new_lake.commit(10, ["a"], operation="BULK_INSERT")
    return new_lake


def why_not(lake: Lake, end: str, start: str = FIRST) -> str:
    with pytest.raises(NotLoggedError) as raised:
        logs_between(lake.timeline, start, end)
    change = LakeHistory().change(str(lake.root), start, end)
    assert change.compared == str(raised.value) and change.read == 2 * change.bytes, "what is planned says the same"
    return str(raised.value)


def test_logs_stand_for_a_range_in_which_each_follows_the_one_before(lake: Lake) -> None:
    second = lake.commit(20, ["a"], extra=logged(FIRST, 2, LogFile("x.parquet", 70)))
    third = lake.commit(30, extra=logged(second))
    fourth = lake.commit(40, ["a"], extra=logged(third, 1, LogFile("y.parquet", 5)))
    assert [log.rows for log in logs_between(lake.timeline, FIRST, fourth)] == [2, 0, 1]
    assert [log.rows for log in logs_between(lake.timeline, second, fourth)] == [0, 1]
    assert logs_between(lake.timeline, fourth, fourth) == ()
    change = LakeHistory().change(str(lake.root), FIRST, fourth)
    assert (change.compared, change.logged, change.read) == (None, 75, 75)


@pytest.mark.parametrize(("operation", "action"), [("COMPACT", "commit"), ("CLUSTER", "replacecommit")])
def test_services_in_between_break_no_chain(lake: Lake, operation: str, action: str) -> None:
    second = lake.commit(20, ["a"], extra=logged(FIRST))
    lake.commit(25, ["b"], operation=operation, action=action)
    third = lake.commit(30, ["a"], extra=logged(second))
    assert len(logs_between(lake.timeline, FIRST, third)) == 2


def test_a_commit_without_a_log_is_none_that_logs_stand_for(lake: Lake) -> None:
    second = lake.commit(20, ["a"], extra=logged(FIRST))
    foreign = lake.commit(30, ["a"])
    last = lake.commit(40, ["a"], extra=logged(foreign))
    assert why_not(lake, last) == f"commit {at(30)} has no change log"
    assert len(logs_between(lake.timeline, foreign, last)) == len(logs_between(lake.timeline, FIRST, second)) == 1


def test_a_commit_of_another_writer_after_the_look_at_the_table(lake: Lake) -> None:
    lake.commit(20, ["a"], extra=logged(FIRST))
    last = lake.commit(30, ["a"], extra=logged(FIRST))
    assert "follows" in why_not(lake, last)


def test_a_commit_requested_earlier_and_completed_later(lake: Lake) -> None:
    """Its writer saw the table without the other one, and that one without it."""
    lake.commit(20, ["a"], extra=logged(FIRST), completed=45)
    fast = lake.commit(30, ["a"], extra=logged(FIRST))
    assert "follows" in why_not(lake, fast)


def test_a_commit_that_was_rolled_back(lake: Lake) -> None:
    second = lake.commit(20, ["a"], extra=logged(FIRST))
    last = lake.commit(30, ["a"], extra=logged(second))
    (lake.folder / f"{second}.commit").unlink()
    assert "follows" in why_not(lake, last)


@pytest.mark.parametrize("record", ["{", "[]", "7", "{}", '{"version": 1}', '{"version": 1, "files": [1]}', "null"])
def test_a_record_that_cannot_be_read(lake: Lake, record: str) -> None:
    last = lake.commit(20, ["a"], extra={"sml.change_log": record})
    assert "broken record" in why_not(lake, last)


def test_tables_of_other_keys_are_compared(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "theirs")
    lake.commit(10, ["a"])
    last = lake.commit(20, ["a"], extra=logged(FIRST))
    assert "keys" in why_not(lake, last)


def write(lake: Lake, name: str, unsure: list[bool | None]) -> LogFile:
    path = lake.root / FOLDER / name / "part-0.parquet"
    path.parent.mkdir(parents=True)
    rows = pa.table({"id": list(range(len(unsure))), "_sml_unsure": pa.array(unsure, pa.bool_())})
    metadata = {b"org.apache.spark.sql.parquet.row.metadata": COLUMNS.encode()}
    pq.write_table(rows.replace_schema_metadata(metadata), path)
    return LogFile(f"{FOLDER}/{name}/part-0.parquet", path.stat().st_size)


def test_rows_that_are_unsure_are_counted_by_the_footer(lake: Lake) -> None:
    files = [write(lake, str(n), unsure) for n, unsure in enumerate([[None, None], [None, True, True], []])]
    footers = [read_footer(lake.timeline, file) for file in files]
    assert [(footer.rows, footer.unsure) for footer in footers] == [(2, 0), (3, 2), (0, 0)]


def test_a_log_must_be_what_its_commit_says(lake: Lake) -> None:
    file = write(lake, "1", [None, None])
    assert logged_columns(lake.timeline, ChangeLog(FIRST, 2, (file,), columns_fingerprint(COLUMNS))) == COLUMNS
    with pytest.raises(NotLoggedError, match="2 rows, its commit says 3"):
        logged_columns(lake.timeline, ChangeLog(FIRST, 3, (file,), columns_fingerprint(COLUMNS)))
    with pytest.raises(NotLoggedError, match="0 rows, its commit says 3"):
        logged_columns(lake.timeline, ChangeLog(FIRST, 3))


def test_logs_that_no_commit_names_are_removed_when_none_can_be_of_a_commit_under_way(lake: Lake) -> None:
    """Instants of this lake are of 2024-01-01 00:00."""
    named = write(lake, "20240101000015-a", [None])
    lake.commit(20, ["a"], extra=logged(FIRST, 1, named))
    write(lake, "20231231235959-archived", [None])
    write(lake, "20240101000016-crashed", [None])
    write(lake, "20240102120000-writing", [None])

    def left() -> list[str]:
        return sorted(path.name for path in (lake.root / FOLDER).iterdir())

    assert remove_logs(lake.timeline, datetime(2024, 1, 1, 12, tzinfo=UTC)) == 1
    assert left() == ["20240101000015-a", "20240101000016-crashed", "20240102120000-writing"]
    lake.mark(f"{at(40)}.commit.requested")
    assert remove_logs(lake.timeline, datetime(2024, 2, 1, tzinfo=UTC)) == 0, "a commit is under way since then"
    (lake.folder / f"{at(40)}.commit.requested").unlink()
    assert remove_logs(lake.timeline, datetime(2024, 1, 2, 13, tzinfo=UTC)) == 1
    assert left() == ["20240101000015-a", "20240102120000-writing"]
    assert remove_logs(Timeline(str(lake.root / "nothing"))) == 0
