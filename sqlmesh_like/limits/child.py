"""The child process in which a project is read, and how its parent waits for it. Owns both, and when there is one."""

from __future__ import annotations

import ctypes
import errno
import faulthandler
import math
import os
import pickle
import select
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, TypeVar, cast

from sqlmesh_like import secrets, stop_signals
from sqlmesh_like.errors import Location, SmlError
from sqlmesh_like.limits import record as records
from sqlmesh_like.limits.record import Child, ProcessRecord
from sqlmesh_like.limits.settings import FILES, MEMORY, OUTPUT, SECONDS, Limits, ResourceLimitError, limit_error

T = TypeVar("T")
_OWN_THREADS = frozenset({"MainThread", "sml-activity", "sml-template-limits"})
_PATIENCE, _PATIENCE_FACTOR = 60.0, 10.0
"""Seconds on the clock, and those for each second of a processor, after which a child counts as stuck."""
_NO_MEMORY = 71
"""The exit code of a child that has no memory left even to say so."""
_PARENT_DEATH = 1  # PR_SET_PDEATHSIG

is_on = True
"""Whether children are used at all; tests of other things set it to False."""


def runs_limited(*, beside_threads: bool = False) -> bool:
    """Whether `run_limited` uses a child here.

    Only Linux limits a process's memory and tells why it ended; and a process with threads of others, such as one that
    has started Java, is not forked: what they hold would stay locked in the child. `beside_threads`: it is nothing
    that the work needs.
    """
    if not is_on or records.is_child() or sys.platform != "linux" or Limits.of_environment().are_lifted:
        return False
    if records.has_limit("RLIMIT_FSIZE"):  # what a child tells is a file in memory, which may be larger
        return False
    if beside_threads:
        return True
    names = {thread.name for thread in threading.enumerate()} - {threading.current_thread().name}
    return names <= _OWN_THREADS and len(os.listdir("/proc/self/task")) <= threading.active_count()  # noqa: PTH208


def run_limited(
    work: Callable[[], T], on_message: Callable[[object], None] | None = None, *, is_call: bool = False
) -> T:
    """Return what `work` returns, or raise what it raises, from a child with the limits of the environment.

    Secrets that it learns are known here, too. `on_message`: gets what it reports instead of printing it. `is_call`:
    the work is a whole call of the command line, which prints, and gets the signals sent to this process. Raises
    ResourceLimitError if the child uses more than it may.
    """
    if records.is_child():
        return work()
    limits, record = Limits.of_environment(), ProcessRecord()
    record.seconds = limits.seconds or math.inf
    sys.stdout.flush()
    sys.stderr.flush()
    asked = _signals() if is_call else set[signal.Signals]()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, asked)
    alive, end = os.pipe()
    parent = os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: `runs_limited` knows them
        pid = os.fork()
    if pid == 0:
        os.close(alive)
        child = Child(record, limits, sends_messages=on_message is not None)
        _be_child(work, child, parent, before if is_call else None)
    os.close(end)
    try:
        status, is_stuck = _wait_for_call(pid, record, asked) if is_call else _wait(pid, record, alive)
        return cast(T, _result(record, status, limits, on_message, is_stuck=is_stuck))
    finally:
        os.close(alive)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        record.close()


def limit_memory() -> None:
    """Limit the memory of this process, which is a call of the command line, from now on to its end.

    For what a target of type duckdb computes: DuckDB's own limit does not count the values that it is working on. No
    Java is started on such a target, which would inherit the limit.
    """
    memory = Limits.of_environment().memory
    if is_on and memory and not records.is_child() and sys.platform == "linux":
        records.set_limit("RLIMIT_DATA", _data_size() + memory * 1_000_000)


# -- the child -----------------------------------------------------------------------------------------------------


def _be_child(
    work: Callable[[], object], child: Child, parent: int, mask: set[int | signal.Signals] | None
) -> NoReturn:
    """`mask`: the blocked signals of a call of the command line; None: the parent gets all signals."""
    code = 1
    try:
        _enter_limits(child, parent)
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        else:  # the parent is interrupted, and ends this process
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        outcome: tuple[str, object]
        try:
            outcome = "value", work()
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException as error:  # noqa: BLE001 (whatever it is, the parent raises it)
            if not isinstance(error, SmlError):
                error.add_note("".join(traceback.format_exception(error)))  # a traceback is not sent
            outcome = "error", _as_limit(error, child.record) or error
            if isinstance(error, stop_signals.Interrupted):  # the parent's own signals may not include this one
                outcome = "interrupted", stop_signals.exit_code()
        _report_end(child.record, *outcome)
        code = 0
    except MemoryError:
        code = _NO_MEMORY
    finally:
        os._exit(code)


def _enter_limits(child: Child, parent: int) -> None:
    limits, trace = child.limits, child.record.trace
    ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    faulthandler.enable(file=trace)
    # The previous action of the signal, which ends the process, comes after its threads have been written down.
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    faulthandler.register(signal.SIGXCPU, file=trace, all_threads=True, chain=True)
    records.set_limit("RLIMIT_CORE", 0)
    if limits.files:
        records.set_limit("RLIMIT_NOFILE", limits.files + max(map(int, os.listdir("/proc/self/fd"))))  # noqa: PTH208
    if limits.output:
        records.set_limit("RLIMIT_FSIZE", limits.output * 1_000_000)
    child.memory = _data_size()
    records.begin(child)


def _data_size() -> int:
    """Return the bytes of this process that RLIMIT_DATA counts."""
    with Path("/proc/self/status").open("rb") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(b"VmData"))


def _as_limit(error: BaseException, record: ProcessRecord) -> ResourceLimitError | None:
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError) or number == errno.ENOMEM:
        return limit_error(MEMORY, record.place)
    if number in (errno.EMFILE, errno.EFBIG):
        return limit_error(FILES if number == errno.EMFILE else OUTPUT, record.place)
    return None


def _report_end(record: ProcessRecord, kind: str, value: object) -> None:
    try:
        record.report(kind, value, secrets.spellings())
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError):
        if kind != "error":
            record.report("unsendable", None, secrets.spellings())
            return
        record.report("error", RuntimeError(f"{type(value).__name__}: {value}"), secrets.spellings())
    except (MemoryError, OSError) as error:
        record.report("error", _as_limit(error, record) or error, secrets.spellings())


# -- the parent ----------------------------------------------------------------------------------------------------


class UnsendableError(Exception):
    """What the work returned cannot be sent from one process to another."""


def _signals() -> set[signal.Signals]:
    asked = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    return {number for number in asked if signal.getsignal(number) is not signal.SIG_IGN} | {signal.SIGCHLD}


def _wait(pid: int, record: ProcessRecord, alive: int) -> tuple[int, bool]:
    """Return the status with which the child ends, and whether it was stuck. If interrupted, it is ended."""
    poll, started, is_stuck = select.poll(), time.monotonic(), False
    poll.register(alive, select.POLLIN | select.POLLHUP)
    try:
        while not poll.poll(1000):
            if _is_stuck(record, started):
                is_stuck = True
                _end_stuck(pid)
                break
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        _reap(pid)
        raise
    return _reap(pid), is_stuck


def _reap(pid: int) -> int:
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:  # reaped already, or by a handler of the program that uses this package
        return 0


def _wait_for_call(pid: int, record: ProcessRecord, asked: set[signal.Signals]) -> tuple[int, bool]:
    """The same, while signals sent to this process are sent on; a terminal sends its own to both."""
    started, received = time.monotonic(), 0
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status, False
        info = signal.sigtimedwait(asked, 1.0)
        if info is None:
            if _is_stuck(record, started):
                _end_stuck(pid)
                return os.waitpid(pid, 0)[1], True
        elif info.si_signo != signal.SIGCHLD:
            received += 1
            stop_signals.note(info.si_signo)
            if received > 1 or info.si_code <= 0:  # the second one ends at once, even within a step of C code
                os.kill(pid, signal.SIGKILL if received > 1 else info.si_signo)


def _is_stuck(record: ProcessRecord, started: float) -> bool:
    return time.monotonic() - started > _PATIENCE + _PATIENCE_FACTOR * record.seconds


def _end_stuck(pid: int) -> None:
    os.kill(pid, signal.SIGXCPU)  # writes down where its threads are
    time.sleep(0.5)
    os.kill(pid, signal.SIGKILL)


def _result(
    record: ProcessRecord, status: int, limits: Limits, on_message: Callable[[object], None] | None, *, is_stuck: bool
) -> object:
    templates: dict[str, tuple[str, str]] = {}
    outcome: tuple[object, ...] | None = None
    for frame in record.reports():
        if frame[0] == "template":
            path, lines = cast(tuple[str, str], frame[1:])
            templates[path.encode("ascii", "backslashreplace").decode()] = path, lines
        elif frame[0] == "message" and on_message is not None:
            on_message(frame[1])
        else:
            outcome = frame
    if outcome is None:
        if stop_signals.is_wished():
            raise KeyboardInterrupt
        raise _error_of_end(status, record, record.template_location(templates), limits, is_stuck=is_stuck)
    kind, value, spellings = outcome
    secrets.learn_spellings(cast(tuple[str, ...], spellings))
    if kind == "interrupted":
        stop_signals.note(cast(int, value) - 128)
        raise KeyboardInterrupt
    if kind == "error":
        raise cast(BaseException, value)
    if kind == "unsendable":
        raise UnsendableError
    return value


def _error_of_end(
    status: int, record: ProcessRecord, traced: Location | None, limits: Limits, *, is_stuck: bool
) -> ResourceLimitError:
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    place = traced or record.place
    if is_stuck:
        return limit_error(SECONDS, place, "this does not come to an end")
    if number == signal.SIGXCPU:
        return limit_error(SECONDS, traced or record.dearest_place)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == _NO_MEMORY:
        return limit_error(MEMORY, place)
    if number == signal.SIGXFSZ:
        return limit_error(OUTPUT, place)
    if number == signal.SIGKILL:
        return limit_error(MEMORY, place, "the process that read this was killed, likely for want of memory")
    name = signal.Signals(number).name if number else f"exit code {os.waitstatus_to_exitcode(status)}"
    memory = f"it is nested too deep, or needs more than the {limits.memory:,} MB of {MEMORY}"
    return ResourceLimitError(f"the process that read this ended with {name}", location=place, hint=memory)
