"""One writer of a table at a time. Owns taking the locks of a call, waiting for them, and refusing it in words.

`lock_registry` keeps them. They are released when their process ends, however that happens, and a process that is
suspended keeps them.
"""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from filelock import Timeout

from sqlmesh_like.app.lakes.lock_registry import Conflict, Holder, LockRegistry, Locks, Slot
from sqlmesh_like.app.lakes.table_locks import is_of_lake
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.errors import MachineError, RetryableError
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.invocation_id import process_mark
from sqlmesh_like.remedies import remedy

_POLL_SECONDS = 0.2
_ENDING_SECONDS = 30.0
"""Seconds to wait in any case for the JVM of a killed call: it ends when it notices."""
_HINT = "wait until it ends, then run again; or have a call wait: --lock-timeout SECONDS"


@dataclass(frozen=True)
class HeldLocks:
    """The locks of a call; `registry` None: the warehouse is remote and is not locked."""

    warehouse: str
    registry: LockRegistry | None = None
    slot: Slot | None = None

    @contextmanager
    def also(self, more: Locks) -> Iterator[None]:
        """Hold further locks for a while, without waiting. Raises RetryableError where another process excludes it."""
        if self.registry is None or self.slot is None:
            yield
            return
        with ExitStack() as held:
            try:
                conflict = held.enter_context(self.registry.also(self.slot, more))
            except OSError as error:  # a full disk, or a timeout where another call is suspended as it takes locks
                raise RetryableError(f"locks of {self.warehouse} cannot be taken: {error}", hint=_HINT) from error
            if conflict is not None:
                raise RetryableError(_described(conflict, self.warehouse), hint=_HINT)
            yield


@contextmanager
def lake_lock(loaded: Loaded, command: str, locks: Locks) -> Iterator[HeldLocks]:
    """Hold the locks of a writing command (`table_locks`): two writers of a table would overwrite each other's commits.

    Waits up to `--lock-timeout` seconds for other processes, then raises RetryableError, which names one and what both
    want; raises MachineError where the warehouse cannot be written. A remote warehouse is not locked.
    """
    warehouse = loaded.target.warehouse
    if not folder(warehouse).is_local:
        yield HeldLocks(warehouse)
        return
    registry = LockRegistry(_lock_folder(warehouse))
    started = datetime.now(UTC).isoformat(" ", "seconds")
    holder = Holder(command, os.getpid(), socket.gethostname(), started, locks, process_mark())
    if loaded.invocation.lock_timeout:
        loaded.reporter.phase(f"waiting for the locks of {warehouse}")
    slot = _taken(registry, holder, warehouse, loaded.invocation.lock_timeout)
    loaded.reporter.phase("working")
    try:
        yield HeldLocks(warehouse, registry, slot)
    finally:
        registry.release(slot)


def _taken(registry: LockRegistry, holder: Holder, warehouse: str, seconds: float) -> Slot:
    began = time.monotonic()
    while True:
        try:
            taken = registry.take(holder)
        except Timeout:
            message = f"another call has been taking locks of {warehouse} for seconds: it may be suspended"
            raise RetryableError(message, hint=_HINT) from None
        except OSError as error:
            raise _not_writable(warehouse, error) from error
        if isinstance(taken, Slot):
            return taken
        is_ending = taken.holder is not None and taken.holder.is_ending
        left = began + max(seconds, _ENDING_SECONDS if is_ending else 0) - time.monotonic()
        if left <= 0:
            raise RetryableError(_described(taken, warehouse), hint=_HINT)
        time.sleep(min(_POLL_SECONDS, left))


def _lock_folder(warehouse: str) -> Path:
    place = Path(folder(warehouse).path) / "_sml" / "locks"
    try:
        place.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=place).close()  # unlike `os.access`, the error says why
    except OSError as error:
        raise _not_writable(warehouse, error) from error
    return place


def _not_writable(warehouse: str, error: OSError) -> MachineError:
    hint = remedy(error, "the same command again") or "check `warehouse` in profiles.yml"
    return MachineError(f"the warehouse {warehouse} cannot be written: {error.strerror}", hint=hint)


def _described(conflict: Conflict, warehouse: str) -> str:
    holder = conflict.holder
    if holder is None:
        return f"another call is writing to {warehouse}"
    doing = "reading" if conflict.mode == "read" else "writing"
    what = f"writing to {warehouse}" if is_of_lake(conflict.name) else f"{doing} {conflict.name} of {warehouse}"
    who = f"process {holder.process} on {holder.host}, since {holder.since}"
    is_left = " was killed, and a process that it had started" if holder.is_ending else ""
    return f"another `sml {holder.command}`{is_left} is {what}: {who}"
