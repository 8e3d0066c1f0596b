"""Two calls on one lake: the second is refused before it does anything, and may try again, or nothing is in common."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest
from filelock import FileLock

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.lakes.lock_registry import Holder, Locks, has_left_processes
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.reporter import LogReporter
from sqlmesh_like.cli.app import main
from sqlmesh_like.errors import MachineError, RetryableError
from sqlmesh_like.invocation_id import PROCESS_VARIABLE
from sqlmesh_like.project.nodes import Target

WRITES: Locks = {"dws.m": "replace"}


def loaded(warehouse: Path | str, lock_timeout: float = 0) -> Loaded:
    target = Target("p", "t", "spark", warehouse=str(warehouse))
    call = Invocation(lock_timeout=lock_timeout)
    return SimpleNamespace(target=target, invocation=call, reporter=LogReporter())  # type: ignore[return-value]


@pytest.mark.checklist(47)
@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize(("command", "name"), [("run", "dws.m"), ("ingest", "s.t")])
@pytest.mark.fault("two calls that need the same table", ends="refuses")
def test_a_second_writer_is_refused(
    command: str, name: str, scheme: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "p"\nprofile = "lake"\n')
    warehouse = tmp_path / "w"
    profile = f"lake: {{target: t, outputs: {{t: {{type: spark, schema: dws, warehouse: '{scheme}{warehouse}'}}}}}}\n"
    (tmp_path / "profiles.yml").write_text(profile)
    (tmp_path / "models").mkdir()
    (tmp_path / "in").mkdir()
    (tmp_path / "models" / "m.sql").write_text("select 1 as id")
    (tmp_path / "models" / "s.yml").write_text(
        "sources: [{name: s, ingest: {format: debezium, files: {path: in/*.jsonl}}, "
        "tables: [{name: t, ingest: {primary_key: [id]}}]}]\n"
    )
    with lake_lock(loaded(f"{scheme}{warehouse}"), "maintain", {name: "replace"}):
        assert main([command, "--project-dir", str(tmp_path)]) == 1
    shown = capsys.readouterr()
    assert f"another `sml maintain` is writing {name} of {scheme}{warehouse}: process " in shown.out + shown.err
    assert sorted(path.name for path in warehouse.iterdir()) == ["_sml"], "nothing was written"


HOLDER = """
import sys, time
from types import SimpleNamespace as N
from sqlmesh_like.app.lakes.lake_lock import lake_lock
loaded = N(target=N(warehouse=sys.argv[1]), invocation=N(lock_timeout=0), reporter=N(phase=lambda name: None))
with lake_lock(loaded, "run", {"dws.m": "replace", "dws.n": "replace", "raw.t": "read"}):
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


def test_who_holds_a_lock_is_named_also_while_it_is_stopped(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    for _ in range(2):
        wanted: Locks = {"dws.a": "replace", "dws.n": "replace", "dws.m": "read"}
        with pytest.raises(RetryableError) as refused, lake_lock(loaded(tmp_path), "run", wanted):
            pass
        who = f"process {holder.pid} on {socket.gethostname()}, since 20"
        assert f"another `sml run` is writing dws.m of {tmp_path}: {who}" in refused.value.message
        assert "--lock-timeout" in (refused.value.hint or "")
        holder.send_signal(signal.SIGSTOP)
    with lake_lock(loaded(tmp_path), "run", {"dws.a": "replace", "raw.t": "read"}):
        pass


def test_a_lock_whose_holder_was_killed_is_free_and_a_call_may_wait_for_it(
    holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    threading.Timer(0.5, holder.kill).start()
    with lake_lock(loaded(tmp_path, lock_timeout=60), "run", WRITES):
        assert holder.wait(60) == -signal.SIGKILL
    with lake_lock(loaded(tmp_path), "run", {"dws.n": "replace", "raw.t": "replace"}):
        pass


def test_a_killed_call_holds_its_locks_until_its_jvm_has_ended_which_a_call_waits_for(tmp_path: Path) -> None:
    environment = {**os.environ, PROCESS_VARIABLE: "killed"}
    holder = Holder("run", 1, socket.gethostname(), "2024-05-01 00:00:00+00:00", WRITES, "killed")
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env=environment) as jvm:
        with lake_lock(loaded(tmp_path), "run", WRITES):
            record = tmp_path / "_sml" / "locks" / "0.json"
        record.write_text(json.dumps(asdict(holder)))  # as a kill leaves it
        record.with_suffix(".lock").unlink(missing_ok=True)  # as some versions of filelock do
        assert has_left_processes(holder)
        with lake_lock(loaded(tmp_path), "run", {"dws.other": "replace"}):
            pass
        threading.Timer(1, jvm.kill).start()
        with lake_lock(loaded(tmp_path), "run", WRITES):
            assert jvm.poll() == -signal.SIGKILL, "it had ended before"
    assert not has_left_processes(holder) and not record.exists()


def test_a_call_waits_no_longer_than_it_may(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(RetryableError), lake_lock(loaded(tmp_path, lock_timeout=1), "run", WRITES):
        pass
    assert 1 <= time.monotonic() - began < 30
    assert holder.poll() is None


@pytest.mark.parametrize(
    ("held", "wanted", "is_refused"),
    [
        ("replace", "replace", True), ("replace", "append", True), ("replace", "read", True),
        ("replace", "clean", True), ("append", "clean", True), ("clean", "clean", True), ("read", "clean", True),
        ("clean", "replace", True), ("clean", "append", True), ("clean", "read", False),
        ("append", "replace", True), ("append", "append", True), ("append", "read", False),
        ("read", "replace", True), ("read", "append", False), ("read", "read", False),
    ],
)  # fmt: skip
def test_modes_exclude_each_other(held: str, wanted: str, is_refused: bool, tmp_path: Path) -> None:
    first: Locks = {"dws.m": held}  # type: ignore[dict-item]
    second: Locks = {"dws.m": wanted}  # type: ignore[dict-item]
    with lake_lock(loaded(tmp_path), "run", first):
        if is_refused:
            with pytest.raises(RetryableError), lake_lock(loaded(tmp_path), "run", second):
                pass
        else:
            with lake_lock(loaded(tmp_path), "run", second):
                pass
    with lake_lock(loaded(tmp_path), "run", second):
        pass


def test_a_call_may_hold_more_for_a_while_beside_its_own(tmp_path: Path) -> None:
    more: Locks = {"dws.m": "clean", "raw.t": "clean"}
    excluded: tuple[Locks, ...] = ({"raw.t": "append"}, {"dws.m": "read"})
    with lake_lock(loaded(tmp_path), "run", {"dws.m": "replace", "raw.t": "read"}) as held:
        with held.also(more):
            for wanted in excluded:
                with pytest.raises(RetryableError), lake_lock(loaded(tmp_path), "run", wanted):
                    pass
        with lake_lock(loaded(tmp_path), "ingest", {"raw.t": "append"}):
            with pytest.raises(RetryableError, match=r"ingest` is writing raw\.t"), held.also(more):
                pass
            with pytest.raises(RetryableError), lake_lock(loaded(tmp_path), "run", WRITES):
                pass


def test_locks_of_a_thousand_tables_take_one_file(tmp_path: Path) -> None:
    many: Locks = {f"dws.m{number}": "replace" for number in range(1000)}
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.iterdir()))
    with lake_lock(loaded(tmp_path), "run", many):
        assert len(list(descriptors.iterdir())) == before + 1
        with pytest.raises(RetryableError, match=r"dws\.m7 "), lake_lock(loaded(tmp_path), "run", {"dws.m7": "read"}):
            pass


def test_a_full_disk_keeps_nobody_from_the_lake_but_then_it_has_one_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with lake_lock(loaded(tmp_path), "run", {"dws.m": "read"}):
        pass  # it leaves a record, which says less than the next holder has
    write_text = Path.write_text
    monkeypatch.setattr(Path, "write_text", full)
    with lake_lock(loaded(tmp_path), "run", WRITES):
        monkeypatch.setattr(Path, "write_text", write_text)
        with pytest.raises(RetryableError) as refused, lake_lock(loaded(tmp_path), "run", {"dws.n": "replace"}):
            pass
    assert refused.value.message == f"another call is writing to {tmp_path}"
    with lake_lock(loaded(tmp_path), "run", WRITES):
        monkeypatch.setattr(Path, "write_text", full)
        with pytest.raises(MachineError, match="No space left"), lake_lock(loaded(tmp_path), "run", {"dws.n": "read"}):
            pass
        monkeypatch.setattr(Path, "write_text", write_text)
        with lake_lock(loaded(tmp_path), "run", {"dws.n": "read"}):
            pass


def test_a_call_that_is_suspended_while_it_takes_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlmesh_like.app.lakes.lock_registry._STEP_SECONDS", 0.1)
    (tmp_path / "_sml" / "locks").mkdir(parents=True)
    suspended, asked = FileLock(tmp_path / "_sml" / "locks" / "step.lock"), lake_lock(loaded(tmp_path), "run", WRITES)
    with suspended, pytest.raises(RetryableError) as refused, asked:
        pass
    assert "may be suspended" in refused.value.message


def test_more_is_not_held_where_it_cannot_be_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with (
        lake_lock(loaded(tmp_path), "run", WRITES) as held,
        lake_lock(loaded(tmp_path), "run", {"dws.n": "read"}),
        monkeypatch.context() as patched,
    ):
        patched.setattr(Path, "write_text", full)
        with pytest.raises(RetryableError, match="No space left"), held.also({"raw.t": "clean"}):
            pass
