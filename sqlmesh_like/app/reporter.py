"""The listener to which an operation reports while it runs. Owns the port, and the listener that logs.

What an operation returns is its result; a listener gets only what would be too late then: warnings, progress,
downloads. The command line prints it, the Python API hands it to `logging`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal, Protocol

from sqlmesh_like.run.result import RunResult
from sqlmesh_like.run.schedule import Listener

Level = Literal["debug", "info", "warn", "error"]
OnProgress = Callable[[str, int, int], None]
"""Called with a file's name, the bytes that have arrived, and all its bytes."""
_LOGGER = logging.getLogger("sqlmesh_like")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}


class Notify(Protocol):
    """Takes one line for people."""

    def __call__(self, text: str, level: Level = "info") -> None: ...


class Reporter(Protocol):
    """Told what concerns a call as a whole."""

    def notify(self, text: str, level: Level = "info") -> None: ...

    def phase(self, name: str) -> None:
        """What the call does from here on, e.g. "starting Spark": what may take longer than a second."""
        ...

    def downloading(self) -> AbstractContextManager[OnProgress]:
        """Files are fetched, such as the jars of Spark, while the context is open."""
        ...


class RunListener(Listener, Protocol):
    """Told of each node, of what is to be known besides, and of the end, before artifacts are written."""

    def notify(self, text: str, level: Level = "info") -> None: ...

    def finished(self, result: RunResult) -> None: ...


class LogReporter:
    """Hands what is told to the logger `sqlmesh_like`, as libraries do; each text once."""

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
