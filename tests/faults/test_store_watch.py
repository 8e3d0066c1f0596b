"""`sml watch` of a lake on a store, on a real S3 server and HDFS: it follows, ends, is killed, loses its locks."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.store_client import use_store
from sqlmesh_like.hudi.stores.table_lease import TableLease
from sqlmesh_like.hudi.table_reader import read_table_rows
from sqlmesh_like.hudi.timeline import Timeline
from tests.faults import calls
from tests.services.stores import Server
from tests.services.stores import server as server

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "p"\nprofile = "lake"\n',
    "models/sources.yml": """
version: 2
sources:
  - name: shop
    schema: ods
    ingest: {format: debezium, files: {path: landing/*.jsonl}}
    tables:
      - name: user
        ingest: {database: db, primary_key: [id]}
        columns: [{name: id, data_type: int}, {name: device, data_type: string}]
""",
    "models/user_agg.sql": "select device, count(*) as num from {{ source('shop', 'user') }} group by device",
}
WATCH = ("watch", "--trigger", "1 second")


@dataclass
class WatchedLake:
    """A project whose warehouse is in a bucket. `rows`: what the source's table must have, by key."""

    root: Path
    warehouse: str
    rows: dict[int, str] = field(default_factory=dict)
    files: int = 0

    def land(self, changes: dict[int, str | None]) -> None:
        """A file of events appears; None for a row that goes."""
        self.files += 1
        lines = []
        for key, device in changes.items():
            row = {"id": key, "device": device}
            images = {"before": {"id": key}, "after": None} if device is None else {"before": None, "after": row}
            body = {**images, "source": {"db": "db", "table": "user"}, "op": "d" if device is None else "u", "ts_ms": 1}
            lines.append(json.dumps(body))
            self.rows.pop(key, None)
            if device is not None:
                self.rows[key] = device
        half = self.root / "landing" / f".{self.files}"
        half.write_text("".join(f"{line}\n" for line in lines))
        half.rename(self.root / "landing" / f"{self.files}.jsonl")

    def stored(self, table: str) -> list[tuple[object, ...]] | None:
        timeline = Timeline(f"{self.warehouse}/{table}")
        if timeline.frontier is None:
            return None
        result = read_table_rows(table_state(timeline), -1)
        assert result is not None
        return sorted(tuple(row) for row in result.rows)

    @property
    def has_followed(self) -> bool:
        devices = [*self.rows.values()]
        counts = sorted((device, devices.count(device)) for device in {*devices})
        return self.stored("ods/user") == sorted(self.rows.items()) and self.stored("dws/user_agg") == counts

    def remains(self) -> list[str]:
        """What is left of interrupted commits."""
        paths = folder(self.warehouse).files()
        left = [path for path in paths if "/.sml_writer/" in path or "/.temp/" in path]
        return left + [each for table in ("ods/user", "dws/user_agg") for each in self._unfinished(table)]

    def _unfinished(self, table: str) -> tuple[str, ...]:
        return Timeline(f"{self.warehouse}/{table}").unfinished


@pytest.fixture
def lake(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WatchedLake:
    bucket = f"watch-{abs(hash(tmp_path)) % 10**12}"
    server.make_bucket(bucket)
    warehouse, given = f"{server.uri(bucket)}/w", server.output()
    spark = {
        **dict(given.get("spark", {})),  # type: ignore[call-overload]
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    place = {"type": "spark", "master": "local[2]", "schema": "dws", "warehouse": warehouse}
    output = {**place, **given, "spark": spark}
    files = {**FILES, "profiles.yml": json.dumps({"lake": {"target": "store", "outputs": {"store": output}}})}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "landing").mkdir()
    monkeypatch.chdir(tmp_path)
    use_store(warehouse, server.settings())
    return WatchedLake(tmp_path, warehouse)


def until(is_true: Callable[[], bool], call: calls.Call) -> None:
    """Until something happens while a watch runs."""
    limit = time.monotonic() + calls.LIMIT
    while not is_true():
        if call.ended() or time.monotonic() > limit:
            calls.kill_group(call)
            raise AssertionError(calls.finished(call)[1])
        time.sleep(0.1)


def ended_by_signal(call: calls.Call) -> str:
    os.kill(call.pid, signal.SIGTERM)
    code, output = calls.finished(call)
    assert code == 143, output
    return output


@pytest.mark.release
@pytest.mark.fault("a watch of a lake on a store is killed, and started again at once", ends="recovers")
def test_models_on_a_store_follow_and_a_killed_watch_goes_on(lake: WatchedLake) -> None:
    lake.land({key: "ab"[key % 2] for key in range(6)})
    call = calls.start(lake.root, *WATCH)
    until(lambda: lake.has_followed, call)
    lake.land({1: "a", 2: None, 7: "c"})
    until(lambda: lake.has_followed, call)
    assert "aggregate_merge" in ended_by_signal(call)
    for number, step in enumerate(("hudi.commit.staged", "ingest.begin", "hudi.commit.complete:2", "ingest.batch")):
        lake.land({1: f"x{number}", 10 + number: "b"})
        code, output = calls.finished(calls.start(lake.root, *WATCH, fault=step))
        assert code == calls.KILLED, output
        call = calls.start(lake.root, *WATCH)
        until(lambda: lake.has_followed, call)
        ended_by_signal(call)
    assert lake.remains() == []


@pytest.mark.release
@pytest.mark.fault("the locks of a watch on a store are lost while it follows", ends="refuses")
def test_a_watch_that_has_lost_its_locks_ends_and_leaves_its_events_to_the_next(lake: WatchedLake) -> None:
    lake.land({1: "a", 2: "b"})
    call = calls.start(lake.root, *WATCH)
    until(lambda: lake.has_followed, call)
    for words in (("run",), ("ingest",)):
        assert "another `sml watch` is writing" in calls.refused(calls.start(lake.root, *words))
    assert main(["unlock", "user_agg"]) == 0
    known = lake.stored("ods/user")
    lake.land({1: "c"})
    assert "the locks of this call no longer hold" in calls.refused(call)
    assert lake.stored("ods/user") == known
    behind = folder(f"{lake.warehouse}/_sml/behind/shop").names()
    assert behind == [], "the events that came are the next call's"
    call = calls.start(lake.root, *WATCH)
    until(lambda: lake.has_followed, call)
    ended_by_signal(call)
    assert lake.remains() == []


@pytest.mark.release
@pytest.mark.fault("another writer has the lock of a table that a watch on a store is to write", ends="refuses")
def test_a_watch_respects_the_lock_of_a_writer_of_hudi(lake: WatchedLake) -> None:
    lake.land({1: "a"})
    for words in (("ingest",), ("run",)):
        code, output = calls.finished(calls.start(lake.root, *words))
        assert code == 0, output
    other = TableLease(f"{lake.warehouse}/ods/user", "spark-7", 600)
    assert other.take() is None
    lake.land({1: "b"})
    refusal = calls.refused(calls.start(lake.root, *WATCH))
    assert f"another writer holds the lock of {lake.warehouse}/ods/user: owner spark-7" in refusal
    call = calls.start(lake.root, *WATCH, "--lock-timeout", "600")
    until(lambda: "waiting up to 600 seconds: another writer holds" in call.output.read_text(), call)
    assert lake.stored("ods/user") == [(1, "a")]
    other.release()
    until(lambda: lake.has_followed, call)
    ended_by_signal(call)
    assert lake.remains() == []
