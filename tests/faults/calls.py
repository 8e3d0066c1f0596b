"""Calls of `sml` that are killed or stopped. Owns the processes; `tally` what came of them.

A call is forked from a process that has imported what calls import and done nothing else: the kill of a process costs a
tenth of what it costs to start one, and a random moment falls into its work.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

from sqlmesh_like.fault_points import FAULT_VARIABLE

KILLED = -9
"""The exit code of a call that died at a step."""
LIMIT = 600.0
"""Seconds after which a call counts as stuck."""
REFUSED_WITHIN = 120.0
"""Seconds within which a call that cannot do its work says so (one, on an idle machine), unless Spark has to start."""


@dataclass(frozen=True)
class Call:
    """A call of `sml` in a process group of its own."""

    process: ForkServerProcess
    output: Path

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def ended(self, seconds: float = 0.0) -> bool:
        """Whether the call has ended, or does so within these seconds."""
        self.process.join(seconds)
        return self.process.exitcode is not None


def start(root: Path, *words: str, fault: str | None = None, largest_file: int | None = None) -> Call:
    """A call of `sml`, which dies or stops at `fault`, and writes no file of more bytes than `largest_file`."""
    environment = {name: value for name, value in os.environ.items() if name != FAULT_VARIABLE}
    environment |= {FAULT_VARIABLE: fault} if fault else {}
    handle, output = tempfile.mkstemp(prefix="sml-call-")  # not below `root`, whose disk may be full
    os.close(handle)
    process = _server().Process(target=_call, args=(str(root), words, environment, output, largest_file))
    process.start()
    return Call(process, Path(output))


@cache
def _server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.faults.preloaded", __name__])
    return context


def _call(
    root: str, words: tuple[str, ...], environment: dict[str, str], output: str, largest_file: int | None
) -> None:
    os.setsid()
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    os.chdir(root)
    os.environ.clear()
    os.environ.update(environment)
    target = os.open(output, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(target, stream)
    from sqlmesh_like.__main__ import main

    sys.argv = ["sml", *words]
    sys.exit(main())


def finished(call: Call) -> tuple[int | None, str]:
    """Exit code and output of a call; no exit code where it had to be killed after `LIMIT`."""
    is_stuck = not call.ended(LIMIT)
    if is_stuck:
        kill_group(call)
        call.process.join()
    wait_for_group(call.pid)
    output = call.output.read_text()
    call.output.unlink()
    return None if is_stuck else call.process.exitcode, output


def refused(call: Call, code: int = 1, within: float = REFUSED_WITHIN) -> str:
    """The output of a call that ends in time with this exit code, and with an error that was foreseen."""
    was_in_time = call.ended(within)
    ended_with, output = finished(call)
    assert was_in_time, f"not refused within {within:g} s: {output}"
    assert ended_with == code and "unexpected" not in output and "Traceback" not in output, output
    return output


def kill_after(call: Call, seconds: float) -> tuple[int | None, str]:
    """Kill the call, with its JVM if it has one, after so long or not at all where it ended before."""
    if not call.ended(seconds):
        kill_group(call)
    return finished(call)


def wait_for_files(folder: Path, before: Set[str], count: int, has_ended: Callable[[], bool]) -> int:
    """Until so many files that were not there before have been seen, or the process has ended; how many were seen.

    A moment in a process's work that does not depend on the machine's speed.
    """
    limit = time.monotonic() + LIMIT
    seen: set[str] = set()
    while len(seen) < count and not has_ended() and time.monotonic() < limit:
        seen |= files_below(folder) - before
        time.sleep(0.01)
    return len(seen)


def files_below(folder: Path) -> set[str]:
    return {f"{path}/{name}" for path, _, names in os.walk(folder) for name in names}


def kill_group(call: Call) -> None:
    for kill in (os.kill, os.killpg):
        with suppress(ProcessLookupError):  # it has just ended, or has no group yet
            kill(call.pid, signal.SIGKILL)


def wait_until_stopped(call: Call) -> bool:
    """Until SIGSTOP has reached the call; whether it has, before the call ended."""
    limit = time.monotonic() + LIMIT
    while not call.ended() and _state(call.pid) != "T":
        assert time.monotonic() < limit, "the call neither stopped nor ended"
        time.sleep(0.02)
    return not call.ended()


def jvm_of(pid: int) -> int:
    """The process of the JVM that a call has started."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
        except OSError:  # it ended while we looked
            continue
        if name == "java" and int(rest.split()[1]) == pid:
            return int(stat.parent.name)
    raise AssertionError("the call has no JVM")


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
