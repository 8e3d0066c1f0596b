"""At most one writer of each kind in a lake at a time. Owns the lock, the record of its holder, and waiting for it.

It is a lock of the operating system: it is released when its process ends, however that happens, and a process that is
suspended keeps it.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.errors import MachineError, RetryableError


@contextmanager
def lake_lock(loaded: Loaded, purpose: str) -> Iterator[None]:
    """Hold the lake's lock for a writing command: two at once would overwrite each other's commits.

    Waits up to `--lock-timeout` seconds for another process that holds it, then raises RetryableError, which names
    that process; raises MachineError where the warehouse cannot be written. A remote warehouse is not locked.
    """
    warehouse = loaded.target.warehouse
    if "://" in warehouse:
        yield
        return
    place = _lock_folder(warehouse)
    holder = place / f"{purpose}.holder.json"
    lock = FileLock(str(place / f"{purpose}.lock"), timeout=loaded.invocation.lock_timeout)
    if loaded.invocation.lock_timeout:
        loaded.reporter.phase(f"waiting for the lock of {warehouse}")
    try:
        lock.acquire()
    except Timeout:
        hint = "wait until it ends, then run again; or have a call wait: --lock-timeout SECONDS"
        raise RetryableError(
            f"another `sml {purpose}` is writing to {warehouse}{_described(holder)}", hint=hint
        ) from None
    loaded.reporter.phase("working")
    try:
        with suppress(OSError):  # the lock is held even where a full disk prevents this
            _note_holder(holder)
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def _lock_folder(warehouse: str) -> Path:
    place = Path(warehouse) / "_sml"
    try:
        place.mkdir(parents=True, exist_ok=True)
        if not os.access(place, os.W_OK):
            raise PermissionError(13, "Permission denied", str(place))
    except OSError as error:
        hint = "check `warehouse` in profiles.yml and the folder's permissions"
        raise MachineError(f"the warehouse {warehouse} cannot be written: {error.strerror}", hint=hint) from error
    return place


def _note_holder(path: Path) -> None:
    started = datetime.now(UTC).isoformat(" ", "seconds")
    written = path.with_suffix(f".{os.getpid()}")
    written.write_text(json.dumps({"process": os.getpid(), "host": socket.gethostname(), "since": started}))
    written.replace(path)


def _described(path: Path) -> str:
    """Describe the holder of the lock; empty where the file is missing: a new holder may not have written it yet."""
    try:
        holder = json.loads(path.read_text())
        return f": process {holder['process']} on {holder['host']}, since {holder['since']}"
    except (OSError, ValueError, LookupError, TypeError):
        return ""
