"""One commit on the timeline of a table on an object store. Owns the order of the puts, and what a crash leaves.

The same files in the same order as on a disk (`instant`), for the same readers: request, inflight, markers, data files,
completed instant. A put is visible as a whole or not at all. What a rename does on a disk, a claim does here
(`store_claim`): a commit is completed once or removed once, whoever comes back from a standstill. Before its completion
the locks of the call are asked for (`stores.commit_guard`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from sqlmesh_like.errors import RetryableError, SmlError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.commits import Instant
from sqlmesh_like.hudi.reading.recent_timelines import listed_timeline
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.commit_guard import require_locks
from sqlmesh_like.hudi.stores.conditional_file import ConditionalFile
from sqlmesh_like.hudi.stores.store_client import delete_files, put_content
from sqlmesh_like.hudi.timeline import Timeline, remember_commit
from sqlmesh_like.hudi.writer.commit_encoding import (
    NOTHING_YET,
    PARTITION_FILE,
    Action,
    CommitContent,
    encode_commit,
    encode_request,
    inflight_name,
    partition_text,
)
from sqlmesh_like.hudi.writer.instant import foreign_names, next_instant
from sqlmesh_like.hudi.writer.store_claim import FOLDER, Claim, ClaimFile, claim_path, claimed_instants
from sqlmesh_like.hudi.writer.store_removal import (
    marker_folder,
    marker_paths,
    newest_undone,
    remove_commit,
    timeline_names,
)
from sqlmesh_like.secrets import scrub_text

_ATTEMPTS = 4
"""How often the completed instant is put, where it is not known whether it arrived."""


@dataclass
class StoreCommit:
    """A commit in flight on the table at `uri`. `others`: names on the timeline before it."""

    uri: str
    instant: str
    claim: ClaimFile
    others: frozenset[str] = frozenset()
    action: Action = "commit"
    _marked: list[str] = field(default_factory=list)
    _may_be_ready: bool = False

    def mark(self, path: str, *, is_new: bool) -> None:
        """Create the marker of a data file (path relative to the table) before it is written."""
        marker = f"{marker_folder(self.instant)}/{path}.marker.{'CREATE' if is_new else 'MERGE'}"
        self._marked.append(marker)
        put_content(f"{self.uri}/{marker}", b"")
        fault_point("hudi.commit.marker")

    def add_partition(self, partition: str, *, is_new: bool = True) -> None:
        """Create the metadata file of a partition; not in one that has a file (`is_new` is false)."""
        if is_new:
            place = f"{self.uri}/{partition}" if partition else self.uri
            ConditionalFile(f"{place}/{PARTITION_FILE}").put(partition_text(self.instant, partition), None)
            fault_point("hudi.commit.partition")

    def complete(self, content: CommitContent) -> str:
        """Complete the commit. Returns its frontier.

        Raises RetryableError where another writer interfered, or the locks of the call no longer hold.
        """
        require_locks(self.uri)
        names = timeline_names(self.uri)
        if inflight_name(self.instant, self.action) not in names:
            raise RetryableError(f"another writer has removed the commit {self.instant} of {self.uri}")
        if new := foreign_names(names, self.instant, self.others):
            raise RetryableError(f"another writer has begun {min(new)} in {self.uri}")
        completed, encoded = next_instant(names), encode_commit(content)
        name = f"{self.instant}_{completed}.{self.action}"
        self._may_be_ready = True
        if not self.claim.make_ready(name, encoded):
            raise RetryableError(f"another call has removed the commit {self.instant} of {self.uri}")
        fault_point("hudi.commit.staged")
        create_completed(self.uri, name, encoded)
        fault_point("hudi.commit.complete")
        remember_commit(self.uri, Instant(self.instant, completed, self.action), encoded)
        with suppress(SmlError):  # the commit is completed: the next one removes what is left of it
            self.forget()
        return f"{self.instant}_{completed}"

    def forget(self) -> None:
        """Remove the markers and the claim of a commit that is finished."""
        delete_files(self.uri, [*self._marked, claim_path(self.instant)])
        fault_point("hudi.commit.unmarked")

    def abandon(self, paths: Iterable[str] = ()) -> None:
        """Remove the commit and the files that it wrote: those that its markers name, and `paths`.

        A commit that is ready, or may be, is left to the next writer, who completes it (`finish_commits`).
        """
        if self._may_be_ready and not self._is_void():
            return
        if not self._may_be_ready:
            self.claim.make_void()  # where another call did so before, these files are left to remove all the same
        remove_commit(self.uri, self.instant, paths)

    def _is_void(self) -> bool:
        """Whether the commit can never be completed, now that it may have been allowed."""
        claim = self.claim.read()
        if claim is None:  # another call has finished it
            return not any(name.startswith(f"{self.instant}_") for name in timeline_names(self.uri))
        return claim.state == "void" or (claim.state == "open" and self.claim.make_void())


def open_store_commit(timeline: Timeline, expected: str | None, action: Action = "commit") -> StoreCommit:
    """As `instant.open_commit`, on a store, on top of the timeline as it was listed: see `complete`."""
    uri = timeline.uri
    if timeline.unfinished or timeline.frontier != expected:
        raise RetryableError(f"{uri} is at {timeline.frontier}, not at {expected}: another writer was there")
    instant = next_instant((*timeline.names, newest_undone(uri)))
    claim = ClaimFile(uri, instant)
    if not claim.take(timeline.names):
        raise RetryableError(f"another writer has begun {instant} in {uri}")
    commit = StoreCommit(uri, instant, claim, timeline.names, action)
    fault_point("hudi.commit.begin")
    try:
        place = f"{uri}/.hoodie/timeline"
        request = ConditionalFile(f"{place}/{instant}.{action}.requested")
        if request.put(encode_request(action), None) is None:
            delete_files(uri, [claim_path(instant)])
            raise RetryableError(f"another writer has begun {instant} in {uri}")
        fault_point("hudi.commit.requested")
        put_content(f"{place}/{inflight_name(instant, action)}", encode_commit(NOTHING_YET))
        fault_point("hudi.commit.inflight")
    except RetryableError:
        raise
    except BaseException:
        commit.abandon()
        raise
    return commit


def finish_commits(uri: str) -> Timeline:
    """Complete or remove what interrupted commits of this writer left, and return the table's timeline.

    The caller holds the table's lock.
    """
    with ThreadPoolExecutor(1) as pool:
        listing = pool.submit(listed_timeline, uri)
        instants = claimed_instants(folder(f"{uri}/{FOLDER}").names())
        timeline = listing.result()
    if not instants:
        return timeline
    require_locks(uri)  # else the commit that is removed may be that of the call which has them
    for instant in instants:
        _finish_one(uri, instant)
    return listed_timeline(uri)


def _finish_one(uri: str, instant: str) -> None:
    file = ClaimFile(uri, instant)
    while (claim := file.read()) is not None:
        if claim.state == "ready":
            _complete_for(uri, instant, claim)
            return
        if claim.state == "void" or file.make_void():
            remove_commit(uri, instant)
            return


def _complete_for(uri: str, instant: str, claim: Claim) -> None:
    """Complete a commit whose writer was allowed to, and may or may not have done so."""
    names = timeline_names(uri)
    is_completed = claim.name in names
    is_in_flight = any(name.startswith(f"{instant}.") and name.endswith("inflight") for name in names)
    if not is_completed and is_in_flight:
        if foreign_names(names, instant, claim.others):
            return  # another writer knows nothing of claims: as a commit in flight it is left to Hudi
        create_completed(uri, claim.name, claim.content)
    delete_files(uri, [*marker_paths(uri, instant), claim_path(instant)])


def create_completed(uri: str, name: str, content: bytes) -> None:
    """Create the file of a completed instant, once. Raises RetryableError where it is not known whether it exists."""
    file = ConditionalFile(f"{uri}/.hoodie/timeline/{name}")
    for attempt in range(_ATTEMPTS):
        try:
            if file.replace(content, None) is None:
                raise RetryableError(f"another writer has completed {name} in {uri}")
            return
        except RetryableError:
            raise
        except SmlError as error:
            problem = error.message
            time.sleep(0.2 * 2**attempt)
    hint = "run the same command again: the next call completes the commit if it is not"
    raise RetryableError(f"{scrub_text(uri)}: it is not known whether {name} was written: {problem}", hint=hint)
