"""One writer of a table at a time. Owns taking the locks of a call, waiting for them, and refusing it in words.

On a local disk `lock_registry` keeps them. They are released when their process ends, however that happens, and a
process that is suspended keeps them. On an object store `call_locks` keeps them, for calls of all machines, and they
end some time after their process ended or stood still.
"""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from filelock import Timeout

from sqlmesh_like.app.lakes.call_locks import WAIT_HINT, CallLocks
from sqlmesh_like.app.lakes.lock_registry import Conflict, Holder, LockRegistry, Locks, Slot
from sqlmesh_like.app.lakes.store_registry import StoreRegistry
from sqlmesh_like.app.lakes.table_locks import is_of_lake
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.errors import MachineError, RetryableError
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.commit_guard import guarding
from sqlmesh_like.hudi.stores.conditional_file import lock_folder, require_conditional_writes, require_lockable
from sqlmesh_like.invocation_id import process_mark
from sqlmesh_like.names import is_local
from sqlmesh_like.remedies import remedy

_POLL_SECONDS = 0.2
_STORE_POLL_SECONDS = 1.0
_ENDING_SECONDS = 30.0
"""Seconds to wait in any case for the JVM of a killed call: it ends when it notices."""


@dataclass(frozen=True)
class HeldLocks:
    """The locks of a call; `take_also` None: the warehouse is not locked, or nothing is.

    `require_held` raises RetryableError where the call is known to have lost its locks, and asks nobody: a call that
    runs on and on ends then, since all of its commits would be refused. `changes`: how many changes the store's record
    of locks had before they were taken; None elsewhere.
    """

    warehouse: str
    take_also: Callable[[Locks], AbstractContextManager[Conflict | None]] | None = None
    require_held: Callable[[], None] = lambda: None
    changes: int | None = None

    def are_next_after(self, idle_changes: int | None) -> bool:
        """Whether no other call has held locks since `idle_changes` was asked for: what was read since then holds."""
        return idle_changes is not None and self.changes == idle_changes

    @contextmanager
    def also(self, more: Locks) -> Iterator[None]:
        """Hold further locks for a while, without waiting. Raises RetryableError where another process excludes it."""
        if self.take_also is None:
            yield
            return
        with ExitStack() as held:
            try:
                conflict = held.enter_context(self.take_also(more))
            except OSError as error:  # a full disk, or a timeout where another call is suspended as it takes locks
                raise RetryableError(f"locks of {self.warehouse} cannot be taken: {error}", hint=WAIT_HINT) from error
            if conflict is not None:
                raise RetryableError(describe_conflict(conflict, self.warehouse), hint=WAIT_HINT)
            yield


@contextmanager
def lake_lock(loaded: Loaded, command: str, locks: Locks, *, claims: bool = False) -> Iterator[HeldLocks]:
    """Hold the locks of a writing command (`table_locks`): two writers of a table would overwrite each other's commits.

    Waits up to `--lock-timeout` seconds for other processes, then raises RetryableError, which names one and what both
    want; raises MachineError where the warehouse cannot be written, or its store cannot keep two writers apart, unless
    the target has `store: {single_writer: true}`. `claims`: on a store the call takes Hudi's own lock of a table where
    it has something to write there (`commit_guard.claim_table`), and reads the table again.
    """
    warehouse = loaded.target.warehouse
    started = datetime.now(UTC).isoformat(" ", "seconds")
    holder = Holder(command, os.getpid(), socket.gethostname(), started, locks, process_mark())
    if not is_local(warehouse):
        with _store_lock(loaded, holder, claims=claims) as held:
            yield held
        return
    registry = LockRegistry(_lock_folder(warehouse))
    slot = _wait_for_locks(loaded, partial(_take_slot, registry, holder, warehouse))
    loaded.reporter.phase("working")
    try:
        yield HeldLocks(warehouse, partial(registry.also, slot))
    finally:
        registry.release(slot)


def known_holders(loaded: Loaded) -> tuple[Holder, ...]:
    """Return the calls that hold locks of the target's warehouse. Raises MachineError where it cannot be reached."""
    warehouse = loaded.target.warehouse
    if is_local(warehouse):
        place = _lock_path(warehouse)
        return LockRegistry(place).holders() if place.is_dir() else ()
    folder(warehouse)
    require_lockable(warehouse)
    entries = StoreRegistry(warehouse, loaded.target.store.lease_seconds).entries()
    return tuple(entry.seen_holder for entry in entries)


def idle_changes(loaded: Loaded) -> int | None:
    """How many changes the store's record of locks has had; None where a call is in it, and where there is none.

    Raises MachineError where no locks can be kept.
    """
    warehouse, settings = loaded.target.warehouse, loaded.target.store
    if is_local(warehouse) or settings.single_writer:
        return None
    folder(warehouse)
    require_lockable(warehouse)
    return StoreRegistry(warehouse, settings.lease_seconds).idle_changes()


@contextmanager
def _store_lock(loaded: Loaded, holder: Holder, *, claims: bool) -> Iterator[HeldLocks]:
    warehouse, settings = loaded.target.warehouse, loaded.target.store
    folder(warehouse)  # whether anything here can read it comes first
    if settings.single_writer:
        yield HeldLocks(warehouse)
        return
    require_lockable(warehouse)
    require_conditional_writes(lock_folder(warehouse))
    seconds = settings.lease_seconds
    registry, patience = StoreRegistry(warehouse, seconds), float(loaded.invocation.lock_timeout)
    locks = CallLocks(warehouse, str(uuid4()), holder, registry, seconds, claims, patience)
    _wait_for_locks(loaded, lambda: locks.take() or locks)
    loaded.reporter.phase("working")
    changes = registry.changes
    locks.start()
    try:
        with guarding(locks):
            yield HeldLocks(warehouse, locks.also, locks.require_not_lost, changes)
    finally:
        locks.release()


_Taken = TypeVar("_Taken")


def _wait_for_locks(loaded: Loaded, take: Callable[[], _Taken | Conflict]) -> _Taken:
    """Take locks, as soon as the other processes let go of them within the call's time."""
    warehouse, seconds = loaded.target.warehouse, loaded.invocation.lock_timeout
    began, is_told = time.monotonic(), False
    while True:
        taken = take()
        if not isinstance(taken, Conflict):
            return taken
        is_ending = taken.holder is not None and taken.holder.is_ending
        left = began + max(seconds, _ENDING_SECONDS if is_ending else 0) - time.monotonic()
        if left <= 0:
            raise RetryableError(describe_conflict(taken, warehouse), hint=WAIT_HINT)
        if not is_told:
            loaded.reporter.phase(f"waiting for the locks of {warehouse}")
            loaded.reporter.notify(f"waiting up to {left:.0f} seconds: {describe_conflict(taken, warehouse)}")
            is_told = True
        time.sleep(min(_POLL_SECONDS if is_local(warehouse) else _STORE_POLL_SECONDS, left))


def _take_slot(registry: LockRegistry, holder: Holder, warehouse: str) -> Slot | Conflict:
    try:
        return registry.take(holder)
    except Timeout:
        message = f"another call has been taking locks of {warehouse} for seconds: it may be suspended"
        raise RetryableError(message, hint=WAIT_HINT) from None
    except OSError as error:
        raise _not_writable(warehouse, error) from error


def _lock_path(warehouse: str) -> Path:
    return Path(folder(warehouse).path) / "_sml" / "locks"


def _lock_folder(warehouse: str) -> Path:
    place = _lock_path(warehouse)
    try:
        place.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=place).close()  # unlike `os.access`, the error says why
    except OSError as error:
        raise _not_writable(warehouse, error) from error
    return place


def _not_writable(warehouse: str, error: OSError) -> MachineError:
    hint = remedy(error, "the same command again") or "check `warehouse` in profiles.yml"
    return MachineError(f"the warehouse {warehouse} cannot be written: {error.strerror}", hint=hint)


def describe_conflict(conflict: Conflict, warehouse: str) -> str:
    """Who holds what, since when."""
    holder = conflict.holder
    if conflict.words:
        return conflict.words
    if holder is None:
        return f"another call is writing to {warehouse}"
    doing = "reading" if conflict.mode == "read" else "writing"
    what = f"writing to {warehouse}" if is_of_lake(conflict.name) else f"{doing} {conflict.name} of {warehouse}"
    who = f"process {holder.process} on {holder.host}, since {holder.since}"
    is_left = " was killed, and a process that it had started" if holder.is_ending else ""
    return f"another `sml {holder.command}`{is_left} is {what}: {who}"
