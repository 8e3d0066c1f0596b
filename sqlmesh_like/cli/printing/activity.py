"""The phase of a call, shown after its first second: a spinner on a terminal, an event in JSON logs, nothing in pipes.

Owns its line of the terminal: other output meanwhile goes through `_Guarded`, which clears that line first. Operations
name their phases with `Reporter.phase`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, RLock, Thread
from time import perf_counter
from typing import TextIO, cast

from sqlmesh_like.cli.printing.json_log import json_line
from sqlmesh_like.cli.printing.writer import drawing_stream, plain_stream
from sqlmesh_like.control_characters import escape_line as without_controls

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_AFTER_SECONDS = 1.0
_PERIOD_SECONDS = 0.1
_CLEARED = "\r\x1b[2K"


class Activity:
    """The phase of a call, shown on `stream` by a thread of its own."""

    def __init__(self, stream: TextIO, *, is_spinning: bool, logs_json: bool, first_phase: str) -> None:
        self.started = perf_counter()
        self.has_closing_line = False
        self.warnings: list[str] = []  # warnings of the call
        self._stream = stream
        self._is_spinning = is_spinning
        self._logs_json = logs_json
        self._phase, self._phase_started, self._is_told = first_phase, self.started, False
        self._suspensions = 0
        self._is_drawn = False
        self._lock = RLock()
        self._ended = Event()
        if is_spinning or logs_json:
            Thread(target=self._watch, name="sml-activity", daemon=True).start()

    @property
    def seconds(self) -> float:
        return perf_counter() - self.started

    def closing_seconds(self) -> float:
        """Return the seconds for a closing line that the caller prints; nothing is drawn after it."""
        with self._lock:
            self.has_closing_line = True
            self._clear()
        return self.seconds

    @property
    def phase_name(self) -> str:
        return self._phase

    def phase(self, name: str) -> None:
        with self._lock:
            self._phase, self._phase_started, self._is_told = name, perf_counter(), False

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Leave the terminal to something else, such as a bar or a printed line, while the context is open."""
        with self._lock:
            self._suspensions += 1
            self._clear()
        try:
            yield
        finally:
            with self._lock:
                self._suspensions -= 1

    def end(self) -> None:
        """Remove the spinner; print the duration of a longer call, unless a closing line has it."""
        self._ended.set()
        with self._lock:
            self._clear()
            if self.has_closing_line or self.seconds < _AFTER_SECONDS:
                return
            text = f"Finished in {self.seconds:.1f}s"
            if self._is_spinning:
                self._draw(f"{text}\n")
            elif self._logs_json:
                self._draw(f"{json_line('info', text)}\n")

    def _watch(self) -> None:
        while not self._ended.wait(_PERIOD_SECONDS):
            with self._lock:
                seconds = perf_counter() - self._phase_started
                if self._ended.is_set() or self.seconds < _AFTER_SECONDS:
                    continue
                if self._is_spinning and not self._suspensions and not self.has_closing_line:
                    frame = _FRAMES[int(seconds / _PERIOD_SECONDS) % len(_FRAMES)]
                    self._draw(f"{_CLEARED}{frame} {without_controls(self._phase)} … {seconds:.0f}s")
                elif self._logs_json and not self._is_told and seconds >= _AFTER_SECONDS:
                    self._is_told = True
                    self._draw(f"{json_line('info', self._phase)}\n")

    def _draw(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
        self._is_drawn = self._is_spinning

    def _clear(self) -> None:
        if self._is_drawn:
            self._stream.write(_CLEARED)
            self._stream.flush()
            self._is_drawn = False


class _Guarded:
    """A stream of a terminal that clears the spinner's line before each write."""

    def __init__(self, stream: TextIO, activity: Activity) -> None:
        self._stream = stream
        self._activity = activity

    def write(self, text: str) -> int:
        with self._activity.suspend():
            count = self._stream.write(text)
            self._stream.flush()
            return count

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


_activities: list[Activity] = []


@contextmanager
def activity(*, quiet: bool, log_format: str) -> Iterator[None]:
    """Show the phase of a call while the context is open."""
    out, err = sys.stdout, sys.stderr
    raw_out, raw_err = drawing_stream(out), drawing_stream(err)
    is_text = log_format == "text" and not quiet
    is_spinning = is_text and err.isatty() and os.environ.get("TERM") != "dumb"
    shown = Activity(
        raw_err,
        is_spinning=is_spinning,
        logs_json=log_format == "json" and not quiet,
        first_phase="reading the project",
    )
    _activities.append(shown)
    if is_spinning:
        sys.stdout = plain_stream(cast(TextIO, _Guarded(raw_out, shown))) if out.isatty() else out
        sys.stderr = plain_stream(cast(TextIO, _Guarded(raw_err, shown)))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err
        shown.end()
        _activities.remove(shown)


def current() -> Activity | None:
    """Return the activity of the current call, None outside of the command line."""
    return _activities[-1] if _activities else None


def show_phase(name: str) -> None:
    """Set the phase of the current call, if there is one."""
    if (shown := current()) is not None:
        shown.phase(name)
