"""Which call holds which locks of a lake on an object store. Owns their file, and when a holder no longer counts.

One file of the warehouse, `_sml/locks/holders.json`, has a record for each call. It is only ever replaced as it was
seen (a conditional put), so that a call takes all of its locks in one step, as on a local disk. A record counts until
its time has passed, which its call extends while it lives; on the machine of a killed call it ends at once. The file
names such a call until its time has passed, because the locks of its tables are still there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import random
from time import sleep, time

from sqlmesh_like.app.lakes.lock_registry import (
    Conflict,
    Holder,
    Locks,
    first_conflict,
    has_left_processes,
    join_locks,
)
from sqlmesh_like.errors import NewerVersionError, RetryableError
from sqlmesh_like.hudi.stores.conditional_file import ConditionalFile, Version, lock_folder
from sqlmesh_like.hudi.stores.table_lease import Clock
from sqlmesh_like.secrets import scrub_text

VERSION = 1
_ATTEMPTS = 40
"""How often a change of the record is tried: each failure is another call's success."""


@dataclass(frozen=True)
class Entry:
    """A call in the file. `owner`: its id, also in the locks of its tables. `valid_until`: ms since the epoch.

    `machine` and `began` tell whether its process still runs: empty where the system does not say.
    """

    owner: str
    holder: Holder
    valid_until: int
    machine: str = ""
    began: str = ""

    def counts_at(self, seconds: float) -> bool:
        """Whether its locks hold at this time."""
        return self.valid_until > seconds * 1000 and not (self.was_killed and not has_left_processes(self.holder))

    @property
    def was_killed(self) -> bool:
        """Whether its process has ended, of this machine since that was started; false where that is not known."""
        return bool(self.machine) and self.machine == this_machine() and began_at(self.holder.process) != self.began

    @property
    def seen_holder(self) -> Holder:
        """Its holder, which may be one whose process was killed and left a JVM."""
        return replace(self.holder, is_ending=self.was_killed)


@dataclass(frozen=True)
class _Record:
    """The file's content. `changes`: how many it has had; `ended`: those that a call has seen to have ended, until when
    their locks have time left. A version that does not know of them has written none.
    """

    entries: tuple[Entry, ...] = ()
    changes: int = 0
    ended: Mapping[str, int] = field(default_factory=dict)


class StoreRegistry:
    """The holders of one lake."""

    def __init__(self, warehouse: str, seconds: float, clock: Clock = time) -> None:
        self._warehouse, self._seconds, self.clock = warehouse, seconds, clock
        self._file = ConditionalFile(f"{lock_folder(warehouse)}/holders.json")
        self.ended: set[str] = set()  # owners that were seen not to count any more
        self._put = (0.0, 0.0)  # before and after the last put
        self.changes = 0
        """How many changes the record had before the one made here last."""

    def entries(self) -> tuple[Entry, ...]:
        """The records that count, in the order in which they were made."""
        return self._valid_entries(_parse_record(self._file.read(), self._warehouse))

    def idle_changes(self) -> int | None:
        """How many changes the record has had; None where it names a call, even one that no longer counts."""
        record = _parse_record(self._file.read(), self._warehouse)
        return None if record.entries else record.changes

    def take(self, owner: str, holder: Holder) -> Conflict | None:
        """Take all locks of a holder, or none: then return what excludes them."""

        def with_own(others: tuple[Entry, ...]) -> tuple[Entry, ...] | Conflict:
            conflict = first_conflict(holder.locks, [entry.seen_holder for entry in others])
            own = Entry(owner, holder, self._end(), this_machine(), began_at(holder.process))
            return conflict or (*others, own)

        taken = self._change(with_own)
        return taken if isinstance(taken, Conflict) else None

    def renew(self, owner: str) -> bool:
        """Extend the locks of a call; false where they are gone."""
        kept: list[bool] = []

        def extend_locks(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
            kept[:] = [any(entry.owner == owner for entry in entries)]
            end = self._end()
            return tuple(replace(entry, valid_until=end) if entry.owner == owner else entry for entry in entries)

        self._change(extend_locks)
        return kept == [True]

    @contextmanager
    def also(self, owner: str, holder: Holder, more: Locks) -> Iterator[Conflict | None]:
        """Hold further locks for a while, or yield why they cannot be had."""

        def with_more(entries: tuple[Entry, ...]) -> tuple[Entry, ...] | Conflict:
            others = [entry.seen_holder for entry in entries if entry.owner != owner]
            wider = replace(holder, locks=join_locks(holder.locks, more))
            return first_conflict(more, others) or _with(entries, owner, wider)

        done = self._change(with_more)
        conflict = done if isinstance(done, Conflict) else None
        try:
            yield conflict
        finally:
            if conflict is None:
                self._change(lambda entries: _with(entries, owner, holder))

    def remove(self, *owners: str) -> None:
        """Give the locks of calls back."""
        self._change(lambda entries: tuple(entry for entry in entries if entry.owner not in owners))

    def _change(self, new: Callable[[tuple[Entry, ...]], tuple[Entry, ...] | Conflict]) -> tuple[Entry, ...] | Conflict:
        """Replace the records by what `new` makes of those that count, again until nobody was faster.

        Raises RetryableError where others always are.
        """
        for attempt in range(_ATTEMPTS):
            seen = self._file.read()
            record = _parse_record(seen, self._warehouse)
            entries = new(self._valid_entries(record))
            if isinstance(entries, Conflict):
                return entries
            before = self.clock()
            holders, ended = [asdict(entry) for entry in entries], self._early_ends(record)
            changed = {"version": VERSION, "sequence": record.changes + 1, "holders": holders, "ended": ended}
            if self._file.replace(json.dumps(changed).encode(), seen) is not None:
                self._put, self.changes = (before, self.clock()), record.changes
                return entries
            sleep(random() * min(attempt, 10) / 10)
        message = f"the record of locks of {scrub_text(self._warehouse)} could not be replaced {_ATTEMPTS} times"
        raise RetryableError(message, hint="run the same command again")

    def _valid_entries(self, record: _Record) -> tuple[Entry, ...]:
        now = self.clock()
        counting = tuple(entry for entry in record.entries if entry.counts_at(now))
        self.ended |= {entry.owner for entry in record.entries} - {entry.owner for entry in counting}
        self.ended |= record.ended.keys()
        return counting

    def _early_ends(self, record: _Record) -> dict[str, int]:
        """Until when (ms since the epoch) the locks of those have time left that have ended nevertheless."""
        now = self.clock()
        killed = {entry.owner: entry.valid_until for entry in record.entries if not entry.counts_at(now)}
        return {owner: end for owner, end in {**record.ended, **killed}.items() if end > now * 1000}

    @property
    def clock_error(self) -> float:
        """Seconds by which this machine's clock is at least ahead of the store's, by the last change of the record."""
        stored, (before, after) = self._file.changed_at(), self._put
        return min(after - stored, 0.0) or max(before - stored - 1, 0.0)  # some stores have whole seconds

    def _end(self) -> int:
        return int((self.clock() + self._seconds) * 1000)


def _with(entries: tuple[Entry, ...], owner: str, holder: Holder) -> tuple[Entry, ...]:
    return tuple(replace(entry, holder=holder) if entry.owner == owner else entry for entry in entries)


def _parse_record(seen: Version | None, warehouse: str) -> _Record:
    if seen is None:
        return _Record()
    what = f"the record of locks of {scrub_text(warehouse)}"
    try:
        record = json.loads(seen.content)
        if record["version"] != VERSION:
            raise NewerVersionError(what, f"its version is {record['version']}")
        entries = tuple(Entry(**{**entry, "holder": Holder(**entry["holder"])}) for entry in record["holders"])
        return _Record(entries, int(record["sequence"]), dict(record.get("ended", {})))
    except (ValueError, TypeError, KeyError) as error:
        raise NewerVersionError(what, f"it cannot be read ({type(error).__name__})") from error


def this_machine() -> str:
    """This machine since it was started, and its processes' numbers; empty where the system does not say.

    Containers may share a name and have processes of the same numbers: their namespaces differ.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes().decode().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def began_at(process: int) -> str:
    """When a process of this machine began, in ticks since the machine was started; empty where there is none."""
    try:
        fields = Path(f"/proc/{process}/stat").read_bytes().decode(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]
