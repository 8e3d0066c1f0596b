"""Calls of `sml` that are killed or stopped. Owns the processes; `tally` what came of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from sqlmesh_like.fault_points import FAULT_VARIABLE

LIMIT = 600.0
"""Seconds after which a call counts as stuck."""


def start(root: Path, *words: str, fault: str | None = None) -> subprocess.Popen[str]:
    """A call of `sml` in a session of its own, which dies or stops at `fault`."""
    environment = {name: value for name, value in os.environ.items() if name != FAULT_VARIABLE}
    environment |= {FAULT_VARIABLE: fault} if fault else {}
    return subprocess.Popen(
        [sys.executable, "-m", "sqlmesh_like", *words], cwd=root, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip


def finished(call: subprocess.Popen[str]) -> tuple[int | None, str]:
    """Exit code and output of a call; no exit code where it had to be killed after `LIMIT`."""
    try:
        output, _ = call.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        kill_group(call)
        output, _ = call.communicate()
        return None, output
    wait_for_group(call.pid)
    return call.returncode, output


def kill_after(call: subprocess.Popen[str], seconds: float) -> tuple[int | None, str]:
    """Kill the call, with its JVM if it has one, after so long or not at all where it ended before."""
    try:
        call.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        kill_group(call)
    return finished(call)


def kill_group(call: subprocess.Popen[str]) -> None:
    os.killpg(call.pid, signal.SIGKILL)


def wait_until_stopped(call: subprocess.Popen[str]) -> None:
    """Until SIGSTOP has reached the call."""
    limit = time.monotonic() + LIMIT
    while _state(call.pid) != "T":
        assert call.poll() is None and time.monotonic() < limit, "the call did not stop"
        time.sleep(0.02)


def wait_for_group(group: int) -> None:
    """Until no process of the group is left: a JVM sees that its Python is gone, and may write until then."""
    limit = time.monotonic() + LIMIT
    while _is_there(group):
        assert time.monotonic() < limit, "a JVM outlived its Python"
        time.sleep(0.02)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _is_there(group: int) -> bool:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, owner = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:  # it ended while we looked
            continue
        if int(owner) == group and state != "Z":
            return True
    return False
