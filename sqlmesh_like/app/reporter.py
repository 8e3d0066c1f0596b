"""The listener to which an operation reports while it runs. Owns the port, and the listener that logs.

An operation returns its result; a listener gets only what must be known earlier: warnings, progress, downloads. The
command line prints it, the Python API logs it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal, Protocol

from sqlmesh_like.errors import SmlError
from sqlmesh_like.run.result import RunResult
from sqlmesh_like.run.schedule import Listener

Level = Literal["debug", "info", "warn", "error"]
OnProgress = Callable[[str, int, int], None]
"""Called with a file's name, the number of bytes that have arrived, and its size in bytes."""
_LOGGER = logging.getLogger("sqlmesh_like")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}


def refuse_warnings(warnings: Iterable[str], error: type[SmlError]) -> None:
    """Raise the error with the first of the warnings, if there is one: `--warn-error` makes them errors."""
    texts = list(dict.fromkeys(warnings))
    if texts:
        hint = f"--warn-error makes warnings errors; there are {len(texts)}"
        raise error(texts[0].removeprefix("warning: "), hint=hint)


class Notify(Protocol):
    """Reports one line for people."""

    def __call__(self, text: str, level: Level = "info") -> None: ...


class Reporter(Protocol):
    """Receives messages that concern a call as a whole."""

    def notify(self, text: str, level: Level = "info") -> None: ...

    def phase(self, name: str) -> None:
        """Report what the call does from here on, e.g. "starting Spark", where it may take longer than a second."""
        ...

    def downloading(self) -> AbstractContextManager[OnProgress]:
        """Report downloads, such as the jars of Spark, while the context is open."""
        ...


class RunListener(Listener, Protocol):
    """Receives each node, messages, and the end of the run; `finished` is called before artifacts are written."""

    def notify(self, text: str, level: Level = "info") -> None: ...

    def finished(self, result: RunResult) -> None: ...


class LogReporter:
    """Logs to the logger `sqlmesh_like`; each text of `notify` once."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def notify(self, text: str, level: Level = "info") -> None:
        if text not in self._said:
            self._said.add(text)
            _LOGGER.log(_LEVELS[level], "%s", text)

    def phase(self, name: str) -> None:
        _LOGGER.debug("%s", name)

    @contextmanager
    def downloading(self) -> Iterator[OnProgress]:
        seen: set[str] = set()

        def log_once(name: str, _arrived: int, total: int) -> None:
            if name not in seen:
                seen.add(name)
                _LOGGER.info("fetching %s (%.0f MB)", name, total / 1e6)

        yield log_once
