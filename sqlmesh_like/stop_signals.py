"""Ctrl-C and SIGTERM. Owns their effect on a call of the command line, which requests it by `handle_signals`.

Used as a library, the package changes no signal handlers. The first signal interrupts the current work, or is only
recorded if that must be completed (`defer_signals`); the second one ends the process at once. Either way a table has
its old or its new rows, because commits are atomic.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)
_SHOW_CURSOR = b"\x1b[?25h"


class Interrupted(KeyboardInterrupt):
    """Raised at the first signal, except within `defer_signals`."""


class _State:
    """The state of this process: signals concern all of it."""

    received: int | None = None
    deferrals = 0
    deferred_text = b""


@contextmanager
def handle_signals(deferred_text: str = "") -> Iterator[None]:
    """Handle signals while the context is open; `deferred_text` is printed where one is only recorded.

    A signal that the process was started to ignore, as by `nohup`, stays ignored. Outside of the main thread nothing is
    changed.
    """
    _State.received, _State.deferrals, _State.deferred_text = None, 0, deferred_text.encode()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _NUMBERS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _receive)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        _State.received = None


@contextmanager
def defer_signals() -> Iterator[None]:
    """Complete the work within the context: a signal is only recorded, and `is_wished` returns it."""
    _State.deferrals += 1
    try:
        yield
    finally:
        _State.deferrals -= 1


@contextmanager
def keep_deferring() -> Iterator[None]:
    """Let work that must be completed be completed, although a library replaces a handler within the context.

    PySpark's own handler of Ctrl-C, which every session that is started installs, cancels all jobs and interrupts.
    """
    before = {number: signal.getsignal(number) for number in _NUMBERS}
    yield
    for number, handler in before.items():
        other = signal.getsignal(number)
        if _is_ours(handler) and callable(other) and not _is_ours(other):
            signal.signal(number, partial(_receive_or_else, other))


def _is_ours(handler: object) -> bool:
    return handler is _receive or (isinstance(handler, partial) and handler.func is _receive_or_else)


def _receive_or_else(other: Callable[[int, FrameType | None], object], number: int, frame: FrameType | None) -> None:
    if _State.deferrals or _State.received is not None:
        _receive(number, frame)
    else:
        other(number, frame)


def is_wished() -> bool:
    """Whether a signal to stop was received."""
    return _State.received is not None


def note(number: int) -> None:
    """Record a signal that a child process gets and handles in the place of this one."""
    _State.received = number


def exit_code() -> int | None:
    """Return the exit code after a signal, by the convention of shells: 130 or 143; None where there was none."""
    return None if _State.received is None else 128 + _State.received


def note_interrupt() -> int:
    """Return the exit code after a KeyboardInterrupt, also one that a library's own handler of Ctrl-C has raised."""
    return exit_code() or 128 + signal.SIGINT


_SWALLOWING = (("<frozen importlib._bootstrap>", "cb"), (None, "__del__"))
"""File (None: any) and name of functions that Python itself calls and whose exceptions it only prints."""
_AGAIN_AFTER = 0.01


def _is_swallowed(frame: FrameType | None) -> bool:
    """Whether an exception that is raised at this frame would be lost."""
    while frame is not None:
        code = frame.f_code
        if any(code.co_name == name and file in (None, code.co_filename) for file, name in _SWALLOWING):
            return True
        frame = frame.f_back
    return False


def _receive(number: int, frame: FrameType | None) -> None:
    if _State.received is None and not _State.deferrals and _is_swallowed(frame):
        threading.Timer(_AGAIN_AFTER, os.kill, (os.getpid(), number)).start()
        return
    if _State.received is not None:
        # What hides the cursor cannot restore it any more. Locks are released with the process, and Java ends with it.
        os.write(2, _SHOW_CURSOR if os.isatty(2) else b"")
        os._exit(128 + number)
    _State.received = number
    if not _State.deferrals:
        raise Interrupted
    os.write(2, _State.deferred_text)  # not print, which may be what the signal interrupted
