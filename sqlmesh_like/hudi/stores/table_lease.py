"""A table's lock file, in the place and form of Hudi's `StorageBasedLockProvider` (RFC-91). Owns taking, renewing it.

`<table>/.hoodie/.locks/table_lock.json` holds `{"expired": false, "validUntil": <ms>, "owner": "<uuid>"}`. Its owner
renews it by conditional puts; `expired` is true once it was released, and the file stays; one whose validity has passed
may be taken over. Writers of Spark, Flink or Hudi Streamer with that provider and this one exclude each other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from time import time

from sqlmesh_like.errors import NewerVersionError
from sqlmesh_like.hudi.stores.conditional_file import ConditionalFile, Version
from sqlmesh_like.secrets import scrub_text

Clock = Callable[[], float]
"""Seconds since the epoch."""

LOCK_FOLDER = ".hoodie/.locks/"
"""Of a table's own lock, relative to the table."""


@dataclass(frozen=True)
class Lease:
    """What the file of a table says. `valid_until`: milliseconds since the epoch."""

    owner: str
    valid_until: int
    is_released: bool = False

    def encode(self) -> bytes:
        """
        >>> Lease("me", 1700000000000).encode()
        b'{"expired":false,"validUntil":1700000000000,"owner":"me"}'
        """
        record = {"expired": self.is_released, "validUntil": self.valid_until, "owner": self.owner}
        return json.dumps(record, separators=(",", ":")).encode()

    def holds_at(self, seconds: float) -> bool:
        """Whether nobody else may take it at this time."""
        return not self.is_released and self.valid_until > seconds * 1000


def parse_lease(content: bytes, uri: str) -> Lease:
    """
    >>> parse_lease(b'{"expired":true,"validUntil":5,"owner":"x"}', "s3a://b/t")
    Lease(owner='x', valid_until=5, is_released=True)

    Raises NewerVersionError for another form: what it means is not guessed.
    """
    try:
        record = json.loads(content)
        return Lease(str(record["owner"]), int(record["validUntil"]), bool(record["expired"]))
    except (ValueError, TypeError, KeyError) as error:
        raise NewerVersionError(
            f"the lock of {scrub_text(uri)}", "it is not a record of Hudi's lock provider"
        ) from error


class TableLease:
    """The lock of one table, for one owner. Not to be used by several threads at once."""

    def __init__(self, table: str, owner: str, seconds: float, clock: Clock = time) -> None:
        self.table = table
        self.is_takeover = False
        self._owner, self._seconds, self._clock = owner, seconds, clock
        self._file = ConditionalFile(lock_uri(table))
        self._seen: Version | None = None

    @property
    def is_taken(self) -> bool:
        return self._seen is not None

    def take(self, ended: Collection[str] = (), is_table: Callable[[], bool] = lambda: True) -> Lease | None:
        """Take the lock; return the lease of another owner that excludes it, None where it is taken.

        `ended`: owners that are known to be gone, whatever time their leases have left. Where there is no lock file yet
        and `is_table` says no, none is made: in a folder with nothing but a lock Hudi would look for a table.
        """
        while True:
            seen = self._file.read()
            if seen is None and not is_table():
                return None
            held = None if seen is None else parse_lease(seen.content, self.table)
            if held is not None and held.owner not in (self._owner, *ended) and held.holds_at(self._clock()):
                return held
            self.is_takeover = held is not None and not held.is_released and held.owner != self._owner
            if (taken := self._file.replace(self._next().encode(), seen)) is not None:
                self._seen = taken
                return None

    def renew(self) -> bool:
        """Extend the lease; false where it was taken over, or ended by `sml unlock`."""
        assert self._seen is not None
        renewed = self._file.replace(self._next().encode(), self._seen)
        self._seen = renewed or self._seen
        return renewed is not None

    def release(self) -> None:
        """Give the lock back, unless another owner has it."""
        if self._seen is not None:
            held = parse_lease(self._seen.content, self.table)
            self._file.replace(Lease(self._owner, held.valid_until, is_released=True).encode(), self._seen)
            self._seen = None

    def _next(self) -> Lease:
        return Lease(self._owner, int((self._clock() + self._seconds) * 1000))


def lock_uri(table: str) -> str:
    """The file of a table's lock."""
    return f"{table.rstrip('/')}/{LOCK_FOLDER}table_lock.json"


def end_lease(table: str, owner: str | None = None) -> Lease | None:
    """End the lease of a table that this owner (None: anybody) has, and return it; None where there is none."""
    file = ConditionalFile(lock_uri(table))
    while (seen := file.read()) is not None:
        held = parse_lease(seen.content, table)
        if held.is_released or owner not in (None, held.owner):
            return None
        if file.replace(Lease(held.owner, held.valid_until, is_released=True).encode(), seen) is not None:
            return held
    return None
