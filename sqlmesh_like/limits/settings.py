"""The limits of a process that reads a project, and the error of one that is exceeded. Owns their settings.

They are variables of the environment: a project must not lift its own limits.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from sqlmesh_like.errors import Location, UsageError

SECONDS, MEMORY, FILES, OUTPUT = "SML_MAX_SECONDS", "SML_MAX_MEMORY", "SML_MAX_FILES", "SML_MAX_OUTPUT"
"""0 lifts a limit; if the first two are lifted, no child is used."""
DEFAULTS = {SECONDS: 22, MEMORY: 1500, FILES: 256, OUTPUT: 2000}
"""Seconds of a processor, megabytes, open files, and megabytes of one file."""
SECONDS_PER_FILE, MEMORY_PER_FILE = 0.25, 2
"""What a file that is read adds: a project of 1,000 models may take its time."""
FREE_BYTES, SECONDS_PER_MB, MEMORY_PER_MB = 10_000_000, 10, 100
"""What each megabyte of files adds beyond the first ten: large seeds are read, too."""


class ResourceLimitError(UsageError):
    """Reading a project takes more time, memory, files or output than it may."""


@dataclass(frozen=True)
class Limits:
    """The limits of a child; 0: none."""

    seconds: int
    memory: int
    files: int
    output: int

    @classmethod
    def of_environment(cls) -> Limits:
        """Return the limits that the environment sets. Raises UsageError for what is not a whole number."""
        return cls(*(_setting(name) for name in DEFAULTS))

    @property
    def are_lifted(self) -> bool:
        return self.seconds == self.memory == 0


def _setting(name: str) -> int:
    text = os.environ.get(name, "")
    if not text:
        return DEFAULTS[name]
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise UsageError(f"{name} must be a whole number, not {text[:50]!r}", hint=f"the default is {DEFAULTS[name]}")
    return int(text)


_WHAT = {
    SECONDS: "this takes more time of a processor than it may",
    MEMORY: "this takes more memory than it may",
    FILES: "this opens more files than it may",
    OUTPUT: "this writes more than it may",
}
_UNIT = {SECONDS: "seconds", MEMORY: "MB", FILES: "files", OUTPUT: "MB"}


def limit_error(name: str, place: Location | None, what: str | None = None) -> ResourceLimitError:
    """Return the error of an exceeded limit, by the name of its setting; `what` replaces its text."""
    value = _setting(name)
    more = " and more for a large project" if name in (SECONDS, MEMORY) else ""
    hint = f"the limit is {value:,} {_UNIT[name]}{more}: {name} in the environment sets it, 0 lifts it"
    return ResourceLimitError(what or _WHAT[name], location=place, hint=hint)
