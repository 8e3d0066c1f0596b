"""`sml watch` of a few events at a time: models follow them without a JVM."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sqlmesh_like.hudi.timeline import Timeline

SOURCE = """
version: 2
sources:
  - name: shop
    schema: ods
    ingest: {format: debezium, files: {path: "landing/*.jsonl"}}
    tables:
      - name: user
        ingest: {database: db, primary_key: [id]}
        columns: [{name: id, data_type: int}, {name: device, data_type: string}]
"""
MODEL = "select device, count(*) as num from {{ source('shop', 'user') }} group by device"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    (tmp_path / "landing").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "p"\nprofile = "lake"\n')
    target = f"{{type: spark, warehouse: {tmp_path / 'warehouse'}, schema: dws}}"
    (tmp_path / "profiles.yml").write_text(f"lake: {{target: t, outputs: {{t: {target}}}}}")
    (tmp_path / "models" / "sources.yml").write_text(SOURCE)
    (tmp_path / "models" / "user_agg.sql").write_text(MODEL)
    return tmp_path


def land(project: Path, name: str, op: str, after: dict[str, object], before: dict[str, object] | None = None) -> None:
    body = {"op": op, "before": before, "after": after, "source": {"db": "db", "table": "user"}, "ts_ms": 1}
    (half := project / "landing" / f".{name}").write_text(json.dumps(body) + "\n")
    half.rename(project / "landing" / f"{name}.jsonl")


def until(is_true: Callable[[], bool], watch: subprocess.Popen[str]) -> None:
    limit = time.monotonic() + 120
    while not is_true():
        assert time.monotonic() < limit and watch.poll() is None, "the models did not follow"
        time.sleep(0.1)


@pytest.mark.parametrize("words", [("watch",), ("ingest", "--continuous")])
def test_events_are_followed_without_a_jvm(project: Path, words: tuple[str, ...]) -> None:
    table = project / "warehouse" / ("dws/user_agg" if words[0] == "watch" else "ods/user")

    def has_commits(count: int) -> bool:
        return len(Timeline(str(table)).data_commits) == count

    call = [sys.executable, "-m", "sqlmesh_like", *words, "--trigger", "1 second"]
    environment = {**os.environ, "JAVA_HOME": str(project / "no_java")}
    watch = subprocess.Popen(call, cwd=project, env=environment, text=True, stdout=subprocess.PIPE)
    try:
        land(project, "1", "c", {"id": 1, "device": "a"})
        until(lambda: has_commits(1), watch)
        land(project, "2", "u", {"id": 1, "device": "b"}, {"id": 1, "device": "a"})
        until(lambda: has_commits(2), watch)
    finally:
        watch.send_signal(signal.SIGTERM)
        shown, _ = watch.communicate(timeout=60)
    assert watch.returncode == 143 and "Spark" not in shown
    if words[0] == "watch":
        assert "aggregate_merge" in shown
