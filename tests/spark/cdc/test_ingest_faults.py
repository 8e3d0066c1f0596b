"""`sml ingest` on a full disk, and with its JVM killed: it says so, and the next call has every event once."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.hudi.table_reader import read_table_rows
from sqlmesh_like.hudi.timeline import Timeline
from tests.faults.calls import LIMIT, finished, jvm_of, refused, start, wait_until_stopped
from tests.faults.file_systems import full, small_disk
from tests.spark.ingest_lake import event

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\nprofile = "lake"\n',
    "profiles.yml": """
lake:
  target: local
  outputs:
    local: {type: spark, master: "local[2]", warehouse: disk/warehouse, schema: dws}
""",
    "models/shop.yml": """
sources:
  - name: shop
    schema: ods
    ingest: {format: debezium, files: {path: "landing/*.jsonl"}}
    tables:
      - name: a
        ingest: {database: db, table: a, primary_key: [id]}
        columns: [{name: id, data_type: int}, {name: m, data_type: int}]
      - name: b
        ingest: {database: db, table: b, primary_key: [id]}
        columns: [{name: id, data_type: int}, {name: m, data_type: int}]
""",
}
KEYS = 40


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "landing").mkdir()
    return tmp_path


def _by_spark(project: Path) -> None:
    """Have Spark ingest all events: a few would be taken without it."""
    profiles = project / "profiles.yml"
    profiles.write_text(profiles.read_text().replace("schema: dws", "schema: dws, delta_engine: spark"))


def _land(project: Path, batch: int) -> None:
    """Every key of both tables, created in the first batch and updated in the others."""
    kind = "u" if batch else "c"
    lines = [
        event(kind, {"id": key, "m": batch}, {"id": key, "m": batch - 1} if batch else None, table=name)
        for name in "ab"
        for key in range(KEYS)
    ]
    (project / "landing" / f"{batch:04d}.jsonl").write_text("\n".join(lines) + "\n")


def _assert_holds(project: Path, batch: int) -> None:
    for name in "ab":
        stored = read_table_rows(table_state(Timeline(str(project / "disk" / "warehouse" / "ods" / name))), -1)
        assert stored is not None
        names = [column.name for column in stored.schema]
        rows = [dict(zip(names, row, strict=True)) for row in stored.rows]
        assert sorted((row["id"], row["m"]) for row in rows) == [(key, batch) for key in range(KEYS)], name


def _ingest(project: Path) -> None:
    code, output = finished(start(project, "ingest"))
    assert code == 0, output


@pytest.mark.release
@pytest.mark.timeout(1800)
@pytest.mark.fault("the disk is full", ends="refuses")
@pytest.mark.parametrize("by_spark", [False, True])
def test_a_full_disk_is_reported_and_after_it_every_event_counts_once(project: Path, *, by_spark: bool) -> None:
    if by_spark:
        _by_spark(project)
    with small_disk(project / "disk", megabytes=16) as disk:
        _land(project, 0)
        _ingest(project)
        _land(project, 1)
        with full(disk, free=0):
            code, output = finished(start(project, "ingest"))
        assert code in (1, 2) and "Traceback" not in output and "unexpected" not in output, output
        assert "No space left on device" in output and "free space on its file system" in output, output
        _assert_holds(project, 0)
        _ingest(project)
        _assert_holds(project, 1)


@pytest.mark.release
@pytest.mark.timeout(1800)
@pytest.mark.fault("Spark's JVM is killed", ends="recovers")
def test_a_killed_jvm_is_reported_and_after_it_every_event_counts_once(project: Path) -> None:
    _by_spark(project)
    _land(project, 0)
    _ingest(project)
    _land(project, 1)
    call = start(project, "ingest", fault="ingest.table:1:stop")
    wait_until_stopped(call)
    os.kill(jvm_of(call.pid), signal.SIGKILL)
    os.kill(call.pid, signal.SIGCONT)
    output = refused(call, within=LIMIT)
    assert "Spark's JVM was killed by SIGKILL" in output, output
    _ingest(project)
    _assert_holds(project, 1)
