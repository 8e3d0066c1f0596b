"""Asks before each commit whether the locks of the call still hold. Owns who answers; `app.lakes` takes the locks.

A call whose heartbeat failed, or that stood still for longer than its locks last, is a stale holder: another one may
have taken over, and its commit would come on top of a table that it has never read. Tables that no lock of this process
covers, as on this machine, are not asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Protocol


class Guard(Protocol):
    """The locks of one call."""

    def covers(self, uri: str) -> bool:
        """Whether the table is below the warehouse whose locks these are."""
        ...

    def require_held(self, uri: str) -> None:
        """Renew the locks of a table before a commit. Raises RetryableError where they are lost."""
        ...

    def claim(self, uri: str) -> bool:
        """Take the own lock of a table that the call will write, if it has not got it yet: whether it was taken now.

        Raises RetryableError where another writer has it.
        """
        ...

    def on_loss(self, stop: Callable[[], None]) -> Callable[[], None]:
        """Have `stop` called when the locks are lost; return what ends that."""
        ...


class _Guards:
    """The guards of this process, the latest last."""

    def __init__(self) -> None:
        self._all: list[Guard] = []
        self._lock = Lock()

    def add(self, guard: Guard) -> None:
        with self._lock:
            self._all.append(guard)

    def remove(self, guard: Guard) -> None:
        with self._lock:
            self._all.remove(guard)

    def of(self, uri: str) -> Guard | None:
        with self._lock:
            return next((each for each in reversed(self._all) if each.covers(uri)), None)


@cache
def _guards() -> _Guards:
    return _Guards()


@contextmanager
def guarding(guard: Guard) -> Iterator[None]:
    """Ask this guard before each commit, while the context is open."""
    _guards().add(guard)
    try:
        yield
    finally:
        _guards().remove(guard)


def claim_table(uri: str) -> bool:
    """Before work for a commit: whether this process has taken the table's own lock just now, so that what it knows of
    the table has to be read again.

    Raises RetryableError where another writer has it.
    """
    guard = _guards().of(uri)
    return guard is not None and guard.claim(uri)


def require_locks(uri: str) -> None:
    """Raises RetryableError where this process has taken locks that cover a table, and they no longer hold."""
    if (guard := _guards().of(uri)) is not None:
        guard.require_held(uri)


@contextmanager
def guarded_commit(uri: str, stop: Callable[[], None]) -> Iterator[None]:
    """A commit to a table: it begins only while its locks hold, and `stop` is called if they are lost before its end.

    Raises RetryableError where they do not hold.
    """
    guard = _guards().of(uri)
    if guard is None:
        yield
        return
    guard.require_held(uri)
    forget = guard.on_loss(stop)
    try:
        yield
    finally:
        forget()
