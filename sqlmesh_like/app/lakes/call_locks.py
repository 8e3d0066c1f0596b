"""The locks of one call on an object store. Owns taking, renewing and losing them; `store_registry` keeps the record.

The record of the warehouse keeps calls of `sml` apart; beside it each table that is written has Hudi's own lock file
(`table_lease`), which writers of Spark, Flink or Hudi Streamer honour. A run takes that of a table once it has
something to write there: most tables of most runs have not changed, and each lock costs three requests. A thread
renews both. Whoever cannot is a stale holder, whose commits are refused (`commit_guard`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from threading import Event, RLock, Thread
from time import monotonic, sleep

from sqlmesh_like.app.lakes.lock_registry import Conflict, Holder, Locks
from sqlmesh_like.app.lakes.store_registry import StoreRegistry
from sqlmesh_like.errors import MachineError, RetryableError, SmlError
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.table_lease import Lease, TableLease
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.open_commit import settled_timeline
from sqlmesh_like.plan.side_by_side import side_by_side
from sqlmesh_like.secrets import scrub_text

_log = logging.getLogger("sqlmesh_like.locks")
WAIT_HINT = "wait until it ends, then run again; or have a call wait: --lock-timeout SECONDS"
_POLL_SECONDS = 1.0
_RENEWALS = 6
"""How many times a lock is renewed in the time for which it holds."""
_MOST_SKEW, _MOST_SILENCE = 0.15, 0.5
"""The parts of a lock's time by which this machine's clock may be off, and after which one that could not be renewed
counts as lost: together with the last attempt less than the whole."""


@dataclass
class CallLocks:
    """A guard of commits (`commit_guard.Guard`). `owner`: the call's id; `seconds`: for how long a lock holds.

    `claims`: tables' own locks are taken one by one (`claim`), and not all before the call begins. `patience`: how many
    seconds a claim waits for another writer.
    """

    warehouse: str
    owner: str
    holder: Holder
    registry: StoreRegistry
    seconds: float
    claims: bool = False
    patience: float = 0.0
    _leases: dict[str, TableLease] = field(default_factory=dict)
    _taken_over: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _lost: str = ""
    _stops: list[Callable[[], None]] = field(default_factory=list)
    _lock: RLock = field(default_factory=RLock)
    _ended: Event = field(default_factory=Event)

    @cached_property
    def _written(self) -> set[str]:
        return written_tables(self.holder.locks)

    def take(self) -> Conflict | None:
        """Take all locks of the call, or none: then return what excludes them."""
        if (conflict := self.registry.take(self.owner, self.holder)) is not None:
            return conflict
        try:
            self._require_clock()
            conflict = None if self.claims else self._take_leases(self._written)
        except BaseException:
            self._give_back()
            raise
        if conflict is not None:
            self._give_back()
        return conflict

    def start(self) -> None:
        """Renew the locks from now on, until they are released."""
        Thread(target=self._renew_until_ended, name="sml-locks", daemon=True).start()

    def release(self) -> None:
        """Give all locks back. What the store does not take now, ends by itself."""
        self._ended.set()
        self._give_back()

    def _give_back(self) -> None:
        with self._lock:
            self._release_leases(tuple(self._leases))
        with suppress(SmlError):
            self.registry.remove(self.owner)

    @contextmanager
    def also(self, more: Locks) -> Iterator[Conflict | None]:
        """Hold further locks for a while, or yield why they cannot be had."""
        with self.registry.also(self.owner, self.holder, more) as conflict:
            if conflict is not None:
                yield conflict
                return
            own = set(self._leases)
            try:
                yield self._take_leases(written_tables(more) - own)
            finally:
                with self._lock:
                    self._release_leases(tuple(self._leases.keys() - own))

    def covers(self, uri: str) -> bool:
        return f"{uri.rstrip('/')}/".startswith(f"{self.warehouse.rstrip('/')}/")

    def require_held(self, uri: str) -> None:
        table = uri.rstrip("/")
        with self._lock:
            if not self._lost and not self._renew_leases([table]):
                self._lose(f"another call has taken over the locks of {scrub_text(self.warehouse)}, or they were ended")
            reason = self._lost
            if not reason and table not in self._leases and table in self._written:
                # It may have been made since the call began.
                conflict = self._take_leases([table])
                reason = conflict.words if conflict is not None else ""
        if reason:
            raise RetryableError(
                f"{scrub_text(table)}: nothing was committed, because the locks of this call no longer hold: {reason}",
                hint="run the same command again; see `sml locks`",
            )
        if begun := self._taken_over.get(table):
            self._require_none_completed(table, begun)

    def claim(self, uri: str) -> bool:
        table = uri.rstrip("/")
        if table not in self._written:
            return False
        end = monotonic() + self.patience
        while True:
            with self._lock:
                if self._lost or table in self._leases:
                    return False
                conflict = self._take_leases([table])
                if conflict is None:
                    return table in self._leases  # none where there is no table yet
            if (left := end - monotonic()) <= 0:
                raise RetryableError(f"{scrub_text(table)}: nothing was written: {conflict.words}", hint=WAIT_HINT)
            sleep(min(_POLL_SECONDS, left))

    def require_not_lost(self) -> None:
        """Raise RetryableError where it is known that the locks are lost, without asking the store."""
        with self._lock:
            reason = self._lost
        if reason:
            raise RetryableError(
                f"the locks of this call no longer hold: {reason}", hint="run the same command again; see `sml locks`"
            )

    def on_loss(self, stop: Callable[[], None]) -> Callable[[], None]:
        with self._lock:
            self._stops.append(stop)
        return lambda: self._stops.remove(stop)

    def _require_clock(self) -> None:
        error = self.registry.clock_error
        if abs(error) > self.seconds * _MOST_SKEW:
            where = "ahead of" if error > 0 else "behind"
            raise MachineError(
                f"the clock of this machine is {abs(error):.0f} seconds {where} that of the store of "
                f"{scrub_text(self.warehouse)}: calls would not agree whose locks have ended",
                hint="set the clock (NTP), or raise `lease_seconds:` under `store:` of the target",
            )

    def _take_leases(self, tables: Collection[str]) -> Conflict | None:
        """Take the locks of those tables that exist; where one cannot be had, give these back."""
        leases = {table: TableLease(table, self.owner, self.seconds, self.registry.clock) for table in sorted(tables)}
        held = dict(zip(leases, side_by_side(self._take_lease, tuple(leases.values())), strict=True))
        with self._lock:
            self._leases |= {table: lease for table, lease in leases.items() if lease.is_taken}
        for table, other in held.items():
            if other is not None:
                self._release_leases(tuple(leases))
                return Conflict(table, words=describe_lease(table, other))
        for table, lease in leases.items():
            if lease.is_takeover:
                _log.warning(
                    "warning: the lock of %s was taken over from a call that did not end it", scrub_text(table)
                )
                # What is ready of its commits is completed now, before this call reads the table, and the rest removed.
                self._taken_over[table] = settled_timeline(table).unfinished
        return None

    def _take_lease(self, lease: TableLease) -> Lease | None:
        return lease.take(self.registry.ended, lambda: folder(lease.table).exists(".hoodie/hoodie.properties"))

    def _release_leases(self, tables: Collection[str]) -> None:
        def release(table: str) -> None:
            with suppress(SmlError):
                self._leases[table].release()

        ours = [table for table in tables if table in self._leases]
        side_by_side(release, ours)
        for table in ours:
            del self._leases[table]

    def _renew_leases(self, tables: Collection[str]) -> bool:
        """Renew the record and the locks of these tables; false where one of them is another's now."""
        ours = [self._leases[table] for table in tables if table in self._leases]
        return self.registry.renew(self.owner) and all(side_by_side(TableLease.renew, ours))

    def _renew_until_ended(self) -> None:
        renewed = monotonic()
        while not self._ended.wait(self.seconds / _RENEWALS):
            began = monotonic()
            try:
                with self._lock:
                    if self._ended.is_set() or self._lost:
                        return
                    if not self._renew_leases(tuple(self._leases)):
                        self._lose("another call has taken them over, or they were ended by `sml unlock`")
                        return
                renewed = began
            except SmlError as error:
                if monotonic() - renewed > self.seconds * _MOST_SILENCE:
                    self._lose(f"they could not be renewed for {monotonic() - renewed:.0f} seconds: {error.message}")
                    return
                _log.warning("warning: locks could not be renewed, which is tried again: %s", error.message)

    def _lose(self, reason: str) -> None:
        with self._lock:
            self._lost = reason
            stops = list(self._stops)
        _log.warning("warning: the locks of this call no longer hold: %s", reason)
        for stop in stops:
            with suppress(Exception):  # whatever it is, the commit after it is refused
                stop()

    def _require_none_completed(self, table: str, begun: Collection[str]) -> None:
        """Refuse a commit on a table whose earlier holder has completed one since its locks were taken over."""
        late = {instant.requested for instant in Timeline(table).completed} & set(begun)
        if late:
            raise RetryableError(
                f"{scrub_text(table)}: nothing was committed: the call whose locks were taken over has completed "
                f"{min(late)} meanwhile",
                hint="run the same command again",
            )


def written_tables(locks: Locks) -> set[str]:
    """The tables on a store that a call writes, by URI: other names are of the lake, of sources and destinations."""
    return {name.rstrip("/") for name, mode in locks.items() if mode != "read" and "://" in name}


def describe_lease(table: str, lease: Lease) -> str:
    """Who holds a table's own lock, as far as its file says."""
    until = datetime.fromtimestamp(lease.valid_until / 1000, UTC).isoformat(" ", "seconds")
    who = f"owner {lease.owner}, until {until} if it does not renew it"
    return f"another writer holds the lock of {scrub_text(table)}: {who}"
