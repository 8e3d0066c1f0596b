"""Which process holds which locks of a lake. Owns their files, and which locks exclude each other.

Each holder has a numbered file, which the operating system locks for as long as its process lives, and a record beside
it, which counts while the file is locked. A process that was killed may leave a JVM, which ends by itself but may still
write: until then the record counts too. A call takes all of its locks in one step, under a lock that is held for
that step alone: two calls cannot wait for each other, and a process has one file open however many tables it writes.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from sqlmesh_like.invocation_id import PROCESS_VARIABLE

Mode = Literal["read", "append", "clean", "replace"]
"""`read`: of pinned commits; `append`: of new commits, also beside readers; `clean`: removal of old commits, which has
no reader beside it except one that begins meanwhile; `replace`: anything, with nobody beside.
"""
Locks = Mapping[str, Mode]
"""The mode in which each named lock is held or wanted."""

_TOGETHER = (("read", "read"), ("read", "append"), ("read", "clean"), ("append", "read"))
"""Pairs of a wanted and a held mode of one lock that two processes may have."""
_STEP_SECONDS = 10.0
"""Seconds to wait for another call that takes or changes its locks, which takes milliseconds."""


@dataclass(frozen=True)
class Holder:
    """A process, its command and when it took the locks that it holds. `is_ending`: it was killed, its JVM is left."""

    command: str
    process: int
    host: str
    since: str
    locks: Locks
    mark: str = ""
    is_ending: bool = False


@dataclass(frozen=True)
class Conflict:
    """The first lock, by name, that another process holds in a mode that excludes the wanted one.

    `holder` is None, and `name` empty, where its record cannot be read: it is taken to hold everything. `words` say who
    holds a table's own lock on a store that is not in the record of locks: another program.
    """

    name: str = ""
    mode: Mode = "replace"
    holder: Holder | None = None
    words: str = ""


@dataclass(frozen=True)
class Slot:
    """What `LockRegistry.take` has taken."""

    number: int
    lock: FileLock
    holder: Holder


def conflict_of(wanted: Locks, holder: Holder) -> Conflict | None:
    """Return the first lock that excludes a wanted one, None where there is none.

    >>> holder = Holder("ingest", 7, "here", "2024-05-01 00:00:00+00:00", {"raw.orders": "append"})
    >>> conflict_of({"raw.orders": "read", "dws.daily": "replace"}, holder)
    >>> conflict_of({"raw.orders": "replace"}, holder).name
    'raw.orders'
    """
    for name in sorted(wanted.keys() & holder.locks.keys()):
        if (wanted[name], holder.locks[name]) not in _TOGETHER:
            return Conflict(name, holder.locks[name], holder)
    return None


class LockRegistry:
    """The holders of one lake, in a folder of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def holders(self) -> tuple[Holder, ...]:
        """The processes that hold locks, as far as their records can be read."""
        with self._step():
            others, _ = self._others()
        return tuple(holder for holder in others if holder is not None)

    def take(self, holder: Holder) -> Slot | Conflict:
        """Take all locks of a holder, or none. Raises Timeout where another call does not end its own step.

        Raises OSError where the record cannot be written and another process holds locks.
        """
        with self._step():
            others, free = self._others()
            conflict = first_conflict(holder.locks, others)
            if conflict is not None:
                return conflict
            slot = Slot(free, self._file(free), holder)
            slot.lock.acquire()
            try:
                self._write(slot, holder, is_alone=not others)
            except OSError:
                slot.lock.release()
                raise
            return slot

    @contextmanager
    def also(self, slot: Slot, more: Locks) -> Iterator[Conflict | None]:
        """Hold further locks for a while, or yield why they cannot be had. Not to be nested. Raises as `take` does."""
        with self._step():
            others, _ = self._others(slot.number)
            conflict = first_conflict(more, others)
            if conflict is None:
                wider = replace(slot.holder, locks=join_locks(slot.holder.locks, more))
                self._write(slot, wider, is_alone=not others)
        try:
            yield conflict
        finally:
            if conflict is None:
                with suppress(OSError):  # the record then names more than is held, which is safe
                    self._write(slot, slot.holder, is_alone=False)

    def release(self, slot: Slot) -> None:
        """Give all locks back."""
        try:
            with suppress(OSError), self._step():
                self._record(slot.number).unlink(missing_ok=True)
        finally:
            slot.lock.release()

    @contextmanager
    def _step(self) -> Iterator[None]:
        with FileLock(str(self._folder / "step.lock"), timeout=_STEP_SECONDS):
            yield

    def _others(self, own: int | None = None) -> tuple[list[Holder | None], int]:
        """Return the records of all other processes that hold locks, and the first number without a holder."""
        others: dict[int, Holder | None] = {}
        # Records too: filelock 3.21 to 3.29 removes a lock's file when it is released, as it is to see if it is free.
        paths = (path for kind in ("lock", "json") for path in self._folder.glob(f"[0-9]*.{kind}"))
        for number in {int(path.stem) for path in paths if path.stem.isdecimal()} - {own}:
            if not self._is_free(number):
                others[number] = self._read_holder(number)
            elif (killed := self._read_holder(number)) is not None:
                if has_left_processes(killed):
                    others[number] = replace(killed, is_ending=True)
                else:
                    self._record(number).unlink(missing_ok=True)
        free = next(number for number in count() if number not in others and number != own)
        return list(others.values()), free

    def _is_free(self, number: int) -> bool:
        try:
            with self._file(number):
                return True
        except Timeout:
            return False

    def _file(self, number: int) -> FileLock:
        return FileLock(str(self._folder / f"{number}.lock"), timeout=0)

    def _record(self, number: int) -> Path:
        return self._folder / f"{number}.json"

    def _read_holder(self, number: int) -> Holder | None:
        try:
            return Holder(**json.loads(self._record(number).read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def _write(self, slot: Slot, holder: Holder, *, is_alone: bool) -> None:
        """Replace a record. Where the disk is full, a holder that is alone needs none, and holds everything.

        A full disk must not refuse what frees space on it.
        """
        path = self._record(slot.number)
        beside = path.with_suffix(".new")  # only its number's holder writes it: what a kill leaves is overwritten
        try:
            beside.write_text(json.dumps(asdict(holder)))
            beside.replace(path)
        except OSError:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
            if not is_alone:
                raise
            path.unlink(missing_ok=True)


def has_left_processes(killed: Holder) -> bool:
    """Whether a process that a killed one had started, such as its JVM, still runs on this machine.

    Only Linux can tell, and only of processes of this user.
    """
    mark = f"{PROCESS_VARIABLE}={killed.mark}".encode()
    if not killed.mark or killed.host != socket.gethostname():
        return False
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            if mark in (path / "environ").read_bytes().split(b"\0"):  # empty where it has ended, but for its parent
                return True
    return False


def join_locks(held: Locks, more: Locks) -> Locks:
    """Return locks that are held with further ones.

    >>> join_locks({"a": "replace", "b": "read"}, {"a": "clean", "b": "clean"})
    {'a': 'replace', 'b': 'clean'}
    """
    kept = {name: mode for name, mode in held.items() if mode == "replace"}
    return {**held, **more, **kept}


def first_conflict(wanted: Locks, others: Sequence[Holder | None]) -> Conflict | None:
    """Return the first lock, by name, that one of the others excludes, None where there is none."""
    conflicts = [Conflict() if holder is None else conflict_of(wanted, holder) for holder in others]
    return min((each for each in conflicts if each is not None), key=lambda each: each.name, default=None)
