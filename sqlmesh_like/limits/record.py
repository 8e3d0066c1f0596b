"""What a child tells its parent, readable also after the system has ended it. Owns its form; code calls `note_…`."""

from __future__ import annotations

import math
import mmap
import os
import pickle
import re
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import cast

from sqlmesh_like.errors import Location
from sqlmesh_like.limits.settings import (
    FREE_BYTES,
    MEMORY_PER_FILE,
    MEMORY_PER_MB,
    SECONDS_PER_FILE,
    SECONDS_PER_MB,
    Limits,
)

_HALF = 2_000
_NOW, _DEAREST = 64, 64 + _HALF
"""Where the page of a record has its places."""
_FRAME = re.compile(r'File "(.*)", line (\d+) in ')


class ProcessRecord:
    """What a child tells its parent, readable also after it has been ended.

    A page holds the seconds that it may take, what it works on, since when, and what has taken most of its time so far;
    `trace` where its threads were when the system ended it, `frames` what it reported: templates with their lines,
    messages, the result.
    """

    def __init__(self) -> None:
        self.page = mmap.mmap(-1, 4096)
        self.trace = os.memfd_create("sml-trace")
        self.frames = os.memfd_create("sml-frames")

    def close(self) -> None:
        self.page.close()
        os.close(self.trace)
        os.close(self.frames)

    @property
    def seconds(self) -> float:
        return cast(float, struct.unpack_from("d", self.page)[0])

    @seconds.setter
    def seconds(self, value: float) -> None:
        struct.pack_into("d", self.page, 0, value)

    @property
    def place(self) -> Location | None:
        """What is worked on now; the file's first line where no other is known."""
        return self._place(_NOW)

    @property
    def dearest_place(self) -> Location | None:
        """What has taken most of the seconds, if these have passed: what is worked on now, or something before it."""
        started, most = struct.unpack_from("dd", self.page, 8)
        return self._place(_NOW if self.seconds - started >= most else _DEAREST)

    def note_place(self, place: Location, started: float) -> None:
        """`started`: the second at which the work on it would have begun, had it been done at once."""
        struct.pack_into("d", self.page, 8, started)
        self._set_place(_NOW, place)

    def note_dearest(self, place: Location, seconds: float) -> None:
        struct.pack_into("d", self.page, 16, seconds)
        self._set_place(_DEAREST, place)

    def _place(self, at: int) -> Location | None:
        path, _, line = self.page[at : at + _HALF].partition(b"\0")[0].decode(errors="replace").partition("\n")
        return Location(path, int(line)) if path else None

    def _set_place(self, at: int, place: Location) -> None:
        text = f"{place.path[:400]}\n{place.line or 1}".encode(errors="replace") + b"\0"
        self.page[at : at + len(text)] = text

    def report(self, *frame: object) -> None:
        unwritten = memoryview(pickle.dumps(frame, pickle.HIGHEST_PROTOCOL))
        while unwritten:
            unwritten = unwritten[os.write(self.frames, unwritten) :]

    def reports(self) -> Iterator[tuple[object, ...]]:
        os.lseek(self.frames, 0, os.SEEK_SET)
        with os.fdopen(os.dup(self.frames), "rb") as file, suppress(EOFError, pickle.UnpicklingError):
            while True:
                yield pickle.load(file)

    def template_location(self, templates: dict[str, tuple[str, str]]) -> Location | None:
        """Return the innermost line of a template of the project where the child was ended."""
        os.lseek(self.trace, 0, os.SEEK_SET)
        with os.fdopen(os.dup(self.trace), "rb") as file:
            text = file.read(1_000_000).decode(errors="replace")
        for frame in _FRAME.finditer(text):
            if frame[1] in templates:
                path, lines = templates[frame[1]]
                return Location(path, _line_of(int(frame[2]), lines))
        return None


@dataclass
class Child:
    """A child process: its record and limits, its bytes of memory at its start, and the files it has read.

    `spent`: seconds by file, without those since it was last noted what is worked on.
    """

    record: ProcessRecord
    limits: Limits
    memory: int = 0
    sends_messages: bool = False
    files: int = 0
    size: int = 0
    place: Location | None = None
    noted: float = 0.0
    spent: dict[str, float] = field(default_factory=dict)
    most: float = 0.0

    def work_on(self, place: Location) -> None:
        """Note that the time from now on is spent on another place."""
        now = time.process_time()
        if self.place is not None:
            spent = self.spent[self.place.path] = self.spent.get(self.place.path, 0.0) + now - self.noted
            if spent > self.most:
                self.most = spent
                self.record.note_dearest(self.place, spent)
        self.place, self.noted = place, now
        self.record.note_place(place, now - self.spent.get(place.path, 0.0))

    def restrict(self) -> None:
        """Set the limits that grow with what has been read."""
        megabytes = max(self.size - FREE_BYTES, 0) / 1_000_000
        if self.limits.seconds:
            seconds = self.limits.seconds + SECONDS_PER_FILE * self.files + SECONDS_PER_MB * megabytes
            self.record.seconds = seconds
            set_limit("RLIMIT_CPU", math.ceil(seconds))
        if self.limits.memory:
            memory = self.limits.memory + MEMORY_PER_FILE * self.files + MEMORY_PER_MB * megabytes
            set_limit("RLIMIT_DATA", self.memory + int(memory * 1_000_000))


class _Process:
    """This process: what it is concerns all its threads."""

    child: Child | None = None


def begin(child: Child) -> None:
    """Make this process a child with limits, to its end."""
    _Process.child = child
    child.restrict()


def set_limit(name: str, value: int) -> None:
    """Set a limit of the system for this process, as far as it may be raised."""
    import resource  # only where there is such a system

    kind = getattr(resource, name)
    most = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (value if most == resource.RLIM_INFINITY else min(value, most), most))


def has_limit(name: str) -> bool:
    """Whether the system limits this process already."""
    import resource

    return bool(resource.getrlimit(getattr(resource, name))[0] != resource.RLIM_INFINITY)


def note_file(path: str, size: int) -> None:
    """Say that a file of the project has been read: it is worked on, and the limits grow with it."""
    if (child := _Process.child) is not None:
        child.work_on(Location(path))
        child.files, child.size = child.files + 1, child.size + size
        child.restrict()


def note_place(place: Location) -> None:
    """Say what is worked on now."""
    if (child := _Process.child) is not None:
        child.work_on(place)


def note_template(path: str, lines: str) -> None:
    """Say which lines of a template those of its code are, in Jinja's form: `3=1&7=2`."""
    if (child := _Process.child) is not None:
        child.record.report("template", path, lines)


def report_message(message: object) -> None:
    """Send a message to the parent, which gets it also if the child is ended later."""
    if (child := _Process.child) is not None:
        child.record.report("message", message)


def sends_messages() -> bool:
    """Whether messages are for the parent to print."""
    return _Process.child is not None and _Process.child.sends_messages


def is_child() -> bool:
    """Whether this process works within limits already."""
    return _Process.child is not None


def _line_of(code_line: int, lines: str) -> int:
    """Return the line of a template that a line of its code belongs to.

    >>> _line_of(4, "3=1&7=2&12=5"), _line_of(9, "3=1&7=2&12=5")
    (7, 12)
    """
    best = 1
    for pair in filter(None, lines.split("&")):
        template, code = pair.split("=")
        if int(code) > code_line:
            break
        best = int(template)
    return best
