"""Spark starts for a short session where a few small files are ingested, and only there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.app.operations import ingestion
from sqlmesh_like.app.operations.ingestion import IngestRequest, ingest
from sqlmesh_like.cdc.report import IngestReport
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.cdc.sources.waiting_files import bytes_waiting
from sqlmesh_like.project.nodes import Source

FILES = {
    "pyproject.toml": '[tool.sqlmesh_like]\nname = "shop"\nprofile = "lake"\n',
    "profiles.yml": "lake:\n  target: local\n  outputs:\n    local: {type: spark, warehouse: warehouse, schema: dws}\n",
    "models/sources.yml": """
sources:
  - name: till
    schema: ods
    ingest: {format: debezium, files: {path: landing/*.jsonl}}
    tables: [{name: orders, ingest: {database: db, primary_key: [id]}}]
""",
    "landing/1.jsonl": "x" * 100,
    "landing/other.txt": "x" * 1000,
}


class Listener:
    def reading(self, source: Source, *, dead_letters: bool = False) -> None: ...

    def ingested(self, report: IngestReport) -> None: ...


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def waiting(project: Path) -> int | None:
    loaded = load(Invocation(project_dir=project))
    return bytes_waiting(loaded.project, SourcePaths(loaded.target, loaded.project.sources[0]))


def is_short(project: Path, monkeypatch: pytest.MonkeyPatch, request: IngestRequest) -> bool:
    """Whether an ingestion asks for a short session."""
    asked: list[bool] = []

    @contextmanager
    def session(*_: object, is_short: bool) -> Iterator[Callable[[], None]]:
        asked.append(is_short)
        yield lambda: None

    monkeypatch.setattr(ingestion, "session_for", session)
    for name in ("_ingest_pending", "_run_continuously", "_replay_dead_letters"):
        monkeypatch.setattr(ingestion, name, lambda *_: [])
    ingest(load(Invocation(project_dir=project)), request, Listener())
    (answer,) = asked
    return answer


def test_files_that_are_newer_than_the_last_batch_are_waiting(project: Path) -> None:
    assert waiting(project) == 100
    commits = project / "warehouse" / "_sml" / "checkpoints" / "till" / "commits"
    commits.mkdir(parents=True)
    for number, seconds in enumerate((1_000, 2_000)):
        (commits / str(number)).touch()
        os.utime(commits / str(number), (seconds, seconds))
    os.utime(project / "landing" / "1.jsonl", (1_500, 1_500))
    assert waiting(project) == 0
    (project / "landing" / "2.jsonl").write_text("x" * 30)
    (project / "landing" / "gone.jsonl").symlink_to(project / "nowhere")
    (project / "landing" / "folder.jsonl").mkdir()
    assert waiting(project) == 30


def test_only_a_few_small_files_make_a_short_session(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_short(project, monkeypatch, IngestRequest())
    assert not is_short(project, monkeypatch, IngestRequest(continuous=True))
    assert not is_short(project, monkeypatch, IngestRequest(start="earliest"))
    assert not is_short(project, monkeypatch, IngestRequest(replays_dead_letters=True))
    monkeypatch.setattr(ingestion, "_SHORT", 100)
    assert not is_short(project, monkeypatch, IngestRequest())


@pytest.mark.parametrize(
    "log", ["kafka: {bootstrap_servers: 'h:9', topics: [t]}", "files: {path: 'memory://bucket/*'}"]
)
def test_what_cannot_be_measured_here_does_not_make_a_short_session(
    project: Path, monkeypatch: pytest.MonkeyPatch, log: str
) -> None:
    path = project / "models" / "sources.yml"
    path.write_text(path.read_text().replace("files: {path: landing/*.jsonl}", log))
    monkeypatch.setattr(ingestion, "check_brokers", lambda _: None)
    monkeypatch.setattr(ingestion, "check_source", lambda *_: None)
    assert not is_short(project, monkeypatch, IngestRequest())
