"""Two writers of one lake: the second is refused before it does anything, and may try again."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from filelock import FileLock

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.reporter import LogReporter
from sqlmesh_like.cli.app import main
from sqlmesh_like.errors import RetryableError
from sqlmesh_like.project.nodes import Target


@pytest.mark.checklist(47)
@pytest.mark.parametrize("command", ["run", "ingest"])
def test_a_second_writer_is_refused(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "p"\nprofile = "lake"\n')
    warehouse = tmp_path / "w"
    profile = f"lake: {{target: t, outputs: {{t: {{type: spark, schema: dws, warehouse: '{warehouse}'}}}}}}\n"
    (tmp_path / "profiles.yml").write_text(profile)
    (tmp_path / "models").mkdir()
    (tmp_path / "in").mkdir()
    (tmp_path / "models" / "m.sql").write_text("select 1 as id")
    (tmp_path / "models" / "s.yml").write_text(
        "sources: [{name: s, ingest: {format: debezium, files: {path: in/*.jsonl}}, "
        "tables: [{name: t, ingest: {primary_key: [id]}}]}]\n"
    )
    (warehouse / "_sml").mkdir(parents=True)
    with FileLock(str(warehouse / "_sml" / f"{command}.lock")):
        assert main([command, "--project-dir", str(tmp_path)]) == 1
    shown = capsys.readouterr()
    assert f"another `sml {command}` is writing to {warehouse}" in shown.out + shown.err
    assert sorted(path.name for path in warehouse.iterdir()) == ["_sml"], "nothing was written"


HOLDER = """
import sys, time
from types import SimpleNamespace as N
from sqlmesh_like.app.lakes.lake_lock import lake_lock
loaded = N(target=N(warehouse=sys.argv[1]), invocation=N(lock_timeout=0), reporter=N(phase=lambda name: None))
with lake_lock(loaded, "run"):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
        process.kill()


def loaded(warehouse: Path, lock_timeout: float = 0) -> Loaded:
    target = Target("p", "t", "spark", warehouse=str(warehouse))
    call = Invocation(lock_timeout=lock_timeout)
    return SimpleNamespace(target=target, invocation=call, reporter=LogReporter())  # type: ignore[return-value]


def test_who_holds_the_lock_is_named_also_while_it_is_stopped(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(RetryableError) as refused, lake_lock(loaded(tmp_path), "run"):
            pass
        assert f"process {holder.pid} on {socket.gethostname()}, since 20" in refused.value.message
        assert "--lock-timeout" in (refused.value.hint or "")
        holder.send_signal(signal.SIGSTOP)
    with lake_lock(loaded(tmp_path), "ingest"):
        pass


def test_a_lock_whose_holder_was_killed_is_free_and_a_call_may_wait_for_it(
    holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    threading.Timer(0.5, holder.kill).start()
    with lake_lock(loaded(tmp_path, lock_timeout=60), "run"):
        assert holder.wait(60) == -signal.SIGKILL
        known = json.loads((tmp_path / "_sml" / "run.holder.json").read_text())
        assert known["process"] == os.getpid()
    assert not (tmp_path / "_sml" / "run.holder.json").exists()


def test_a_full_disk_keeps_nobody_from_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    held, asked = lake_lock(loaded(tmp_path), "run"), lake_lock(loaded(tmp_path), "run")
    with held, pytest.raises(RetryableError) as refused, asked:
        pass
    assert refused.value.message == f"another `sml run` is writing to {tmp_path}"
