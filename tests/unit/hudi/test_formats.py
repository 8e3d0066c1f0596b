"""What we wrote into commits is read by later versions; what later versions write is named, never guessed at."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from sqlmesh_like.cdc.sources.notes import read_notes
from sqlmesh_like.cli.app import main
from sqlmesh_like.errors import NewerVersionError, UnreadableTableError
from sqlmesh_like.hudi.commits import FORMAT, STATE_PREFIX
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.plan.history import TableRecord
from tests.local_lake import make_table
from tests.projects import enter_project
from tests.unit.hudi.test_timeline import Lake
from tests.written_table import WrittenTable

OF_THE_FIRST_RELEASE = {
    "unique_id": "model.shop.m", "fingerprint": "f", "frontier": {"source.shop.s.t": "1_2"},
    "now": "2024-01-01T00:00:00+00:00", "strategy": "row_based",
}  # fmt: skip
OF_TODAY = {
    **OF_THE_FIRST_RELEASE, "partition_by": ["d"], "buckets": 3, "rows": {"m": 1}, "repeating": [], "started": "",
    "seconds_expected": 1.5, "paces": {"row_based": 1.0}, "parts": {"where": "x"}, "meaning": "m",
    "outline": {"source": "s"}, "query": "q",
}  # fmt: skip
NEWER = {**OF_TODAY, "later": {"a": 1}}
FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\nprofile = "shop"\n',
    "profiles.yml": "shop: {target: t, outputs: {t: {type: spark, schema: dws, warehouse: lake}}}\n",
    "models/m.sql": "select 1 as a",
    "models/n.sql": "select * from {{ ref('m') }}",
}
Shown = pytest.CaptureFixture[str]


@pytest.mark.parametrize("record", [OF_THE_FIRST_RELEASE, OF_TODAY], ids=["first", "today"])
def test_a_record_of_every_release_is_read(record: dict[str, object], tmp_path: Path) -> None:
    make_table(tmp_path / "t", pa.table({"a": [1]}), json.dumps(record))
    read = LakeHistory().state(str(tmp_path / "t")).record
    assert read is not None and json.loads(read.to_json()).items() >= record.items()


def test_the_record_of_today_has_exactly_these_fields() -> None:
    """A new field is a new format to releases that do not know it: add it to `OF_TODAY`, with a default."""
    assert json.loads(TableRecord.from_json(json.dumps(OF_TODAY)).to_json()) == OF_TODAY


def test_a_broken_record_is_not_taken_for_a_newer_one(tmp_path: Path) -> None:
    make_table(tmp_path / "t", pa.table({"a": [1]}), '{"x": 1}')
    with pytest.raises(UnreadableTableError):
        LakeHistory().state(str(tmp_path / "t"))


def newer_record(root: Path) -> None:
    make_table(root, pa.table({"a": [1]}), json.dumps(NEWER))


def newer_format(root: Path) -> None:
    lake = Lake(root)
    extra = {"schema": '{"type": "record", "name": "t", "fields": []}', f"{STATE_PREFIX}format": str(FORMAT + 1)}
    lake.commit(1, ["a"], extra={**extra, f"{STATE_PREFIX}record": json.dumps(OF_TODAY)})


@pytest.mark.parametrize(
    "words",
    [
        ["explain"], ["run"], ["run", "--full-refresh"], ["build"], ["show", "m"], ["sql", "select * from m"],
        ["history", "m"], ["verify"], ["maintain"],
        ["rollback", "m", "--to", "20240101000000001", "--yes"], ["repair", "m"],
    ],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize("made", [newer_record, newer_format])
def test_a_table_of_a_newer_version_is_left_alone_and_said_so(
    made: object, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    enter_project(tmp_path, monkeypatch, FILES)
    assert callable(made)
    made(tmp_path / "lake/dws/m")
    before = contents(tmp_path / "lake/dws")
    code = main(words)
    shown = "".join(capsys.readouterr())
    assert (code, "written by a newer version of sml" in shown) == (2, True), f"{code} {shown}"
    assert "unexpected" not in shown and contents(tmp_path / "lake/dws") == before


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_commit_that_we_write_says_its_format(tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t", {"a": "int"}).create()
    table.upsert([("k", 1)])
    newest = next(iter(table.timeline.newest_first()))
    assert newest.extra[f"{STATE_PREFIX}format"] == str(FORMAT)


def test_a_newer_format_is_an_error_of_its_own(tmp_path: Path) -> None:
    newer_format(tmp_path / "t")
    with pytest.raises(NewerVersionError, match="format is 2, this one knows 1"):
        LakeHistory().state(str(tmp_path / "t"))


def test_notes_of_ingestion_of_a_newer_version_are_named(tmp_path: Path) -> None:
    (tmp_path / "now.json").write_text('{"raw.orders": "1_2"}')
    (tmp_path / "later.json").write_text('{"format": 2, "notes": []}')
    place = folder(str(tmp_path))
    assert read_notes(place, "now.json") == {"raw.orders": "1_2"}
    with pytest.raises(NewerVersionError, match=r"later\.json was written by a newer version"):
        read_notes(place, "later.json")
