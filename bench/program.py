"""Runs a program in a separate process and measures its wall time, CPU time and peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import psutil

REPOSITORY = Path(__file__).parent.parent
_SAMPLE_SECONDS = 0.2


@dataclass(frozen=True)
class Finished:
    """A process that succeeded. `peak_bytes`: the largest sampled sum of resident memory of it and its children."""

    seconds: float
    core_seconds: float
    peak_bytes: int
    output: str


def run_program(
    words: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None, timeout: float = 4 * 3600
) -> Finished:
    """Run a program in a folder. Raises RuntimeError with the end of its output where it fails."""
    before, started = os.times(), perf_counter()
    # As in `make`: whoever installs the program has its modules compiled, and calls do not compile them anew.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        words, cwd=folder, env={**inherited, **(environment or {})},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    memory = _PeakMemory(process.pid)
    try:
        output, _ = process.communicate(timeout=timeout)
    finally:
        process.kill()
        memory.stop()
    seconds, after = perf_counter() - started, os.times()
    if process.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit {process.returncode}\n{output[-4000:]}")
    cores = after.children_user + after.children_system - before.children_user - before.children_system
    return Finished(seconds, cores, memory.peak, output)


def python(module: str, *arguments: str) -> list[str]:
    """Return the command line of a module of this repository."""
    return [sys.executable, "-m", module, *arguments]


IMPORTABLE = {"PYTHONPATH": str(REPOSITORY)}
"""Environment in which the modules of this repository can be imported from any folder."""


class _PeakMemory:
    """Samples the memory of a process and its children until it is stopped."""

    def __init__(self, pid: int) -> None:
        self.peak = 0
        self._process = psutil.Process(pid)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS):
            self.peak = max(self.peak, resident_bytes(self._process))


def resident_bytes(process: psutil.Process) -> int:
    """Return the resident bytes of a process and all its children, without those that have ended meanwhile."""
    total = 0
    with suppress(psutil.NoSuchProcess):
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += each.memory_info().rss
    return total
