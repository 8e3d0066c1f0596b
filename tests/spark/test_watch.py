"""`sml watch` in one process: models follow what comes in, idle rounds do no work, a signal ends it.

The first batch needs no Spark; the second does, from which on its query follows the source.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.app.lakes.local_first_engine import LocalFirstEngine
from sqlmesh_like.app.operations import watch_loop, watch_service
from sqlmesh_like.cdc.stream import continuous
from sqlmesh_like.cdc.stream.small_batches import take_small_batches
from sqlmesh_like.cli.app import main
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import IS_DELETED
from tests.planted_rows import plant
from tests.spark.ingest_lake import event

_WAIT_SECONDS = 600
SOURCE = """
version: 2
sources:
  - name: shop
    schema: ods
    ingest: {format: debezium, files: {path: landing/*.jsonl}}
    tables:
      - name: user
        ingest: {database: db, primary_key: [id]}
        columns: [{name: id, data_type: int}, {name: device, data_type: string}]
      - name: later
        ingest: {database: db, primary_key: [id]}
        columns: [{name: id, data_type: int}]
"""
MODELS = {
    "user_agg": "select device, count(*) as num from {{ source('shop', 'user') }} group by device",
    "waits": "select id from {{ source('shop', 'later') }}",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    (tmp_path / "landing").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "p"\nprofile = "lake"\n')
    target = f"{{type: spark, warehouse: {tmp_path / 'warehouse'}, schema: dws}}"
    (tmp_path / "profiles.yml").write_text(f"lake: {{target: t, outputs: {{t: {target}}}}}")
    (tmp_path / "models" / "sources.yml").write_text(SOURCE)
    for name, sql in MODELS.items():
        (tmp_path / "models" / f"{name}.sql").write_text(sql)
    return tmp_path


class Watcher(threading.Thread):
    """What happens outside while `sml watch` has the main thread; ends it by a signal, come what may."""

    def __init__(self, story: Callable[[], None]) -> None:
        super().__init__()
        self.story = story
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.story()
        except Exception as error:  # noqa: BLE001 - the test raises it
            self.error = error
        finally:
            os.kill(os.getpid(), signal.SIGTERM)


HAS_ENDED = threading.Event()


def until(is_true: Callable[[], bool], what: str) -> None:
    limit = time.monotonic() + _WAIT_SECONDS
    while not is_true():
        assert time.monotonic() < limit and not HAS_ENDED.is_set(), what
        time.sleep(0.1)


def land(project: Path, name: str, *lines: str) -> None:
    half = project / "landing" / f".{name}"
    half.write_text("".join(f"{line}\n" for line in lines))
    half.rename(project / "landing" / f"{name}.jsonl")


@pytest.mark.checklist(38, 66, 80)
def test_models_follow_and_idle_rounds_do_nothing(
    spark: SparkSession, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds: list[int] = []
    applied: list[str] = []
    here: list[bool] = []
    real_run, real_apply = watch_loop.WatchLoop._run_round, LocalFirstEngine.apply

    @contextmanager
    def shared(*_: Any) -> Iterator[Callable[[], SparkSession]]:
        yield lambda: spark

    def counted(self: watch_loop.WatchLoop) -> None:
        real_run(self)
        rounds.append(len(self.result.results))

    def taken(run: Any, on_spark: Any) -> bool:
        batches, is_here = run.ingested.batches, take_small_batches(run, on_spark)
        if run.ingested.batches > batches or not is_here:
            here.append(is_here)
        return is_here

    def noted(self: LocalFirstEngine, planned: Any, *rest: Any) -> Any:
        applied.append(planned.compiled.model.name)
        return real_apply(self, planned, *rest)

    monkeypatch.setattr(watch_service, "session_for", shared)
    monkeypatch.setattr(watch_loop, "IDLE_SECONDS", 0.2)
    monkeypatch.setattr(watch_loop.WatchLoop, "_run_round", counted)
    monkeypatch.setattr(LocalFirstEngine, "apply", noted)
    monkeypatch.setattr(continuous, "take_small_batches", taken)
    idle: list[int] = []

    def user_agg() -> int:
        return len(Timeline(str(project / "warehouse" / "dws" / "user_agg")).data_commits)

    def story() -> None:
        land(project, "1", *(event("c", {"id": n, "device": "a"}, table="user") for n in (1, 2)))
        until(lambda: user_agg() == 1, "user_agg was not built")
        moved = {"id": 2, "device": "a"}
        land(
            project,
            "2",
            event("u", {"id": 2, "device": "b"}, moved, table="user") + "\r",
            event("c", {"id": 7}, table="later") + "\r",
        )
        until(lambda: user_agg() == 2 and "waits" in applied, "the models did not follow")
        until(lambda: not rounds or rounds[-1] == 2, "waits did not join")
        land(project, "3", event("u", {"id": 1, "device": "b"}, {"id": 1, "device": "a"}, table="user"))
        until(lambda: user_agg() == 3, "Spark's query did not go on")
        before, work = len(rounds), len(applied)
        until(lambda: len(rounds) > before + 4, "there are no idle rounds")
        idle.extend(range(work, len(applied)))

    watcher = Watcher(story)
    # The signal may come when the command has ended by itself.
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        watcher.start()
        metrics = project / "metrics.jsonl"
        code = main(["watch", "--trigger", "1 second", "--metrics-file", str(metrics), "--project-dir", str(project)])
        HAS_ENDED.set()
        watcher.join()
    finally:
        signal.signal(signal.SIGTERM, before)
    printed = capsys.readouterr()
    shown = printed.out
    assert (code, watcher.error) == (143, None), (shown, printed.err)
    assert idle == []
    assert sorted(applied) == ["user_agg", "user_agg", "user_agg", "waits"]
    assert here == [True, False], "who took the first files"
    assert rounds[0] in (0, 1)
    assert "aggregate_merge" in shown
    assert "NO-OP=2" in shown
    measured = [json.loads(line) for line in metrics.read_text().splitlines()]
    assert [(each["table"], each["events"]) for each in measured if each["table"] == "ods.user"] == [
        ("ods.user", 2),
        ("ods.user", 1),
        ("ods.user", 1),
    ]
    rows = spark.read.format("hudi").load(str(project / "warehouse" / "dws" / "user_agg")).select("device", "num")
    assert sorted(map(tuple, rows.collect())) == [("b", 2)]


def test_a_wrong_row_is_an_alert_while_watching(
    spark: SparkSession, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def shared(*_: Any) -> Iterator[Callable[[], SparkSession]]:
        yield lambda: spark

    monkeypatch.setattr(watch_service, "session_for", shared)
    HAS_ENDED.clear()
    alerts = project / "alerts.jsonl"
    user_agg = Timeline(str(project / "warehouse" / "dws" / "user_agg"))

    def story() -> None:
        land(project, "1", *(event("c", {"id": n, "device": "a"}, table="user") for n in (1, 2)))
        until(lambda: Timeline(user_agg.uri).frontier is not None, "user_agg was not built")
        plant(Timeline(user_agg.uri), lambda rows: [{**rows[0], "num": 3, IS_DELETED: False}])
        until(alerts.exists, "no sample noticed the row")

    watcher = Watcher(story)
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        watcher.start()
        words = ["--trigger", "1 second", "--verify-share", "100", "--alert", f"cat >> {alerts}"]
        code = main(["watch", *words, "-s", "user_agg", "--project-dir", str(project)])
        HAS_ENDED.set()
        watcher.join()
    finally:
        signal.signal(signal.SIGTERM, before)
    printed = capsys.readouterr()
    assert (code, watcher.error) == (143, None), (printed.out, printed.err)
    sent = json.loads(alerts.read_text().splitlines()[0])
    assert (sent["kind"], sent["subject"]) == ("difference", "model.p.user_agg")
    assert sent["text"].startswith("2 rows of the table differ from the query (device='a')")


def test_a_watch_without_sources_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "models" / "alone.sql").write_text("select 1 as id")
    assert main(["watch", "-s", "alone", "--project-dir", str(project)]) == 2
    assert "nothing to watch: no ingested source is selected" in capsys.readouterr().err
