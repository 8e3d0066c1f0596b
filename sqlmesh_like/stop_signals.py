"""Ctrl-C and SIGTERM. Owns their effect on a call of the command line, which requests it by `handled`.

Otherwise, in a library, nothing is changed. The first signal interrupts the current work, or is only recorded if that
is to be finished (`deferred`); the second one ends the process at once. Either way a table is the old one or the new
one: its commit is what counts.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)
_SHOW_CURSOR = b"\x1b[?25h"


class Interrupted(KeyboardInterrupt):
    """The first signal, where nothing asked to be finished."""


class _State:
    """Of this process, which is where signals arrive."""

    received: int | None = None
    deferrals = 0
    deferred_text = b""


@contextmanager
def handled(deferred_text: str = "") -> Iterator[None]:
    """Signals are ours while the context is open; `deferred_text` is told where one is a wish.

    A signal that the process was started to ignore, as by `nohup`, is ignored. In a thread nothing changes.
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
def deferred() -> Iterator[None]:
    """What goes on is finished: a signal is a wish, which `is_wished` tells."""
    _State.deferrals += 1
    try:
        yield
    finally:
        _State.deferrals -= 1


def is_wished() -> bool:
    """Whether somebody asked to stop."""
    return _State.received is not None


def exit_code() -> int | None:
    """What the process ends with after a signal, as shells say it: 130 or 143; None where there was none."""
    return None if _State.received is None else 128 + _State.received


def note_interrupt() -> int:
    """The exit code after a KeyboardInterrupt: some libraries have a handler of their own, for Ctrl-C."""
    return exit_code() or 128 + signal.SIGINT


_SWALLOWING = (("<frozen importlib._bootstrap>", "cb"), (None, "__del__"))
"""File (None: any) and name of functions that Python itself calls: an exception they raise is printed and lost."""
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
        # Whatever holds the cursor is not asked any more. Locks end with the process, so does Java.
        os.write(2, _SHOW_CURSOR if os.isatty(2) else b"")
        os._exit(128 + number)
    _State.received = number
    if not _State.deferrals:
        raise Interrupted
    os.write(2, _State.deferred_text)  # print is not for a handler: it may be what was interrupted
