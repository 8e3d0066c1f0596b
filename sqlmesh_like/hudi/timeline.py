"""A Hudi table's timeline, read without a JVM. Owns commits, frontiers and file slices; reads no rows.

The layout is Hudi's timeline layout 2 (table versions 8 and 9): `.hoodie/timeline/<requested>_<completed>.<action>`
holds Avro metadata of a completed instant, `<requested>.<action>.requested` and `.inflight` mark one under way.
Instants are `yyyyMMddHHmmssSSS` in UTC. Source: Hudi's technical specification, "Timeline" and "File layout".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlmesh_like.hudi.commits import Commit, FileGroup, Instant, Size, Slice, parse_commit
from sqlmesh_like.hudi.read_instant import is_settled, read_instant
from sqlmesh_like.hudi.reading.kept_property import kept_property
from sqlmesh_like.hudi.storage import Folder, folder
from sqlmesh_like.hudi.unfinished_table import properties_of

TIMELINE = ".hoodie/timeline"
"""The folder of instants, relative to the table."""
_COMPLETED = re.compile(r"(?P<requested>\d{14,17})_(?P<completed>\d{14,17})\.(?P<action>[a-z]+)")
_PENDING = re.compile(r"(?P<requested>\d{14,17})(?:\.(?P<action>[a-z]+))?\.(?:requested|inflight)")
ARCHIVED_FILE = re.compile(r"(?P<oldest>\d{14,17})_(?P<newest>\d{14,17})_(?P<level>\d+)\.parquet")
"""The name of a file of the history: its instants, and how often it was merged."""
_BASE_FILE = re.compile(r"(?P<file_id>.+)_\d+-\d+-\d+_(?P<instant>\d{14,17})\.parquet")
_COMMIT_ACTIONS = {"commit", "deltacommit", "replacecommit"}
_SERVICE_ACTIONS = {
    "clean", "compaction", "logcompaction", "clustering", "indexing", "rollback", "restore", "savepoint",
}  # fmt: skip
_KEYED_OPERATIONS = {"UPSERT", "UPSERT_PREPPED", "DELETE", "DELETE_PREPPED", "DELETE_PARTITION"}


class Timeline:
    """The timeline of one table as it was when this object was created; create a new one to see later commits.

    `until`: ignore everything requested after this instant, without reading its metadata. `names`: those of the
    timeline's files, where they have just been listed.
    """

    def __init__(self, uri: str, until: str | None = None, names: Iterable[str] | None = None) -> None:
        self.uri = uri.rstrip("/")
        self.folder: Folder = folder(self.uri)
        names = self.folder_names() if names is None else names
        self._names = [name for name in names if until is None or not _is_later(name, until)]
        self._decoded = _still_there(self.uri, self.names)

    @kept_property
    def names(self) -> frozenset[str]:
        """Names of the timeline's files: as long as they are the same, the table is."""
        return frozenset(self._names)

    def folder_names(self) -> list[str]:
        return self.folder.names(TIMELINE)

    @kept_property
    def properties(self) -> Mapping[str, str]:
        """`hoodie.properties` of the table; empty where there is no table."""
        for name in ("hoodie.properties", "hoodie.properties.backup"):
            with suppress(FileNotFoundError):  # to ask first whether it is there would be a request more
                return properties_of(self.folder.read(f".hoodie/{name}").decode())
        return {}

    @property
    def exists(self) -> bool:
        return bool(self.properties)

    @property
    def is_cow(self) -> bool:
        return self.properties.get("hoodie.table.type") == "COPY_ON_WRITE"

    @property
    def has_metadata_table(self) -> bool:
        """Whether Hudi keeps a metadata table of its files, as its restore to a savepoint makes one."""
        return bool(self.properties.get("hoodie.table.metadata.partitions"))

    @property
    def partition_fields(self) -> tuple[str, ...]:
        fields = self.properties.get("hoodie.table.partition.fields", "")
        return tuple(field.split(":")[0] for field in fields.split(",") if field)

    @kept_property
    def completed(self) -> tuple[Instant, ...]:
        """Completed instants of the active timeline in requested order."""
        matches = (_COMPLETED.fullmatch(name) for name in self._names)
        return tuple(sorted(Instant(m["requested"], m["completed"], m["action"]) for m in matches if m))

    @kept_property
    def pending(self) -> tuple[str, ...]:
        """Requested times of data actions that have not completed, ascending."""
        done = {instant.requested for instant in self.completed}
        matches = (_PENDING.fullmatch(name) for name in self._names)
        names = {m["requested"]: m["action"] for m in matches if m and (m["action"] or "") not in _SERVICE_ACTIONS}
        services = {
            name.split(".")[0] for name in self._names if not _SERVICE_ACTIONS.isdisjoint(name.split(".")[1:-1])
        }
        return tuple(sorted(set(names) - done - services))

    @kept_property
    def unfinished(self) -> tuple[str, ...]:
        """Requested times of all actions that have not completed, services too, ascending.

        Not of savepoints, whose instant is that of a commit: what a killed deletion left may outlast the commit.
        """
        done = {instant.requested for instant in self.completed}
        matches = (_PENDING.fullmatch(name) for name in self._names)
        return tuple(sorted({m["requested"] for m in matches if m and m["action"] != "savepoint"} - done))

    @kept_property
    def savepointed(self) -> tuple[str, ...]:
        """Requested times of the commits that have a savepoint, ascending."""
        return tuple(instant.requested for instant in self.completed if instant.action == "savepoint")

    @kept_property
    def commits(self) -> tuple[Commit, ...]:
        """All completed commits of the active timeline, services included, in requested order."""
        return tuple(reversed(tuple(self.newest_first())))

    def newest_first(self) -> Iterator[Commit]:
        """All completed commits from the newest on, each read on demand: the newest ones are mostly sufficient."""
        return (self._commit(instant) for instant in reversed(self.commit_instants))

    @kept_property
    def commit_instants(self) -> tuple[Instant, ...]:
        """Instants of `commits`, without reading any of them; without those that precede a gap (`before_gap`)."""
        return tuple(instant for instant in self._all_commit_instants if instant not in self.before_gap)

    @kept_property
    def before_gap(self) -> frozenset[Instant]:
        """Commits that are still on the active timeline although later ones were archived.

        With `hoodie.archive.beyond.savepoint` Hudi's archiver keeps savepointed commits and archives those after them.
        The timeline is read from the end of the gap. A savepoint that was deleted leaves its commit before it.
        """
        return frozenset(each for each in self._all_commit_instants if each.requested <= self.archived_until)

    @kept_property
    def _all_commit_instants(self) -> tuple[Instant, ...]:
        return tuple(instant for instant in self.completed if instant.action in _COMMIT_ACTIONS)

    @kept_property
    def archived_until(self) -> str:
        """The newest instant in the table's history, by the names of its files; empty where there is none.

        The archiver always leaves newer commits: a history without any is that of another copy of the table.
        """
        newest = max(
            (match["newest"] for match in map(ARCHIVED_FILE.fullmatch, self.history_names) if match), default=""
        )
        return newest if any(instant.requested > newest for instant in self._all_commit_instants) else ""

    @property
    def data_commits(self) -> tuple[Commit, ...]:
        return tuple(commit for commit in self.commits if commit.is_data)

    @property
    def frontier(self) -> str | None:
        """The last completed data instant before the first incomplete one; None where nothing was committed.

        For a merge-on-read table, the last such instant that can be read (`read_instant.is_settled`).
        """
        readable = (c.instant for c in self.newest_first() if c.is_data and self.is_readable(c.instant))
        return next((instant.frontier for instant in readable), None)

    @property
    def newest_commit(self) -> str | None:
        """The newest commit, services included, as a frontier; None where there is none."""
        return self.commit_instants[-1].frontier if self.commit_instants else None

    @property
    def newest_readable(self) -> str | None:
        """The frontier where it is the newest data commit; None where a newer one is under way or was cut short."""
        newest = next((commit.instant for commit in self.newest_first() if commit.is_data), None)
        return newest.frontier if newest is not None and newest.frontier == self.frontier else None

    def is_readable(self, instant: Instant) -> bool:
        """Whether readers may see a commit: none is incomplete before it, and Hudi's reader can return it."""
        return (not self.pending or instant.requested < self.pending[0]) and self.is_settled(instant.frontier)

    @kept_property
    def compactions(self) -> frozenset[str]:
        """Requested times of compactions on the active timeline, completed or not."""
        names = (name for name in self._names if ".compaction." in name and not name.startswith("."))
        return frozenset(name.split(".")[0] for name in names)

    def as_of(self, frontier: str) -> str:
        """The instant at which Hudi's reader returns a frontier."""
        return read_instant(frontier, self.commit_instants, self.compactions, self.pending)

    def is_settled(self, frontier: str) -> bool:
        """Whether Hudi's reader can return a frontier."""
        return is_settled(frontier, self.commit_instants, self.compactions, self.pending)

    def holds(self, frontier: str) -> bool:
        """Whether this frontier is still on the active timeline.

        A restore removes the commits that it undoes from the timeline, and leaves the files of all others as they were.
        """
        return any(instant.frontier == frontier for instant in self.commit_instants)

    def between(self, start: str, end: str) -> tuple[Commit, ...]:
        """Commits (services too) after the frontier `start` up to and including `end` and rewrites of its rows."""
        low, high = self.snapshot_instant(start), self.snapshot_instant(end)
        return tuple(self._commit(instant) for instant in self.commit_instants if low < instant.requested <= high)

    def snapshot_instant(self, frontier: str) -> str:
        """Requested time of the last rewrite of a frontier's rows, otherwise of the frontier itself."""
        instant = frontier.split("_")[0]
        for commit in (self._commit(later) for later in self.commit_instants if later.requested > instant):
            if commit.is_data:
                break
            if commit.is_rewrite:
                instant = commit.instant.requested
        return instant

    def until(self, requested: str) -> Iterator[Commit]:
        """Commits (services too) requested up to and including an instant, in requested order."""
        return (self._commit(instant) for instant in self.commit_instants if instant.requested <= requested)

    def extra(self, key: str) -> str | None:
        """The value of a metadata key in the newest data commit or rewrite that has it; services are skipped."""
        for commit in self.newest_first():
            if (commit.is_data or commit.is_rewrite) and key in commit.extra:
                return commit.extra[key]
        return None

    def schema_json(self, frontier: str) -> str | None:
        """Avro schema (JSON) of the table as of a frontier."""
        requested = frontier.split("_")[0]
        for commit in self.newest_first():
            if commit.instant.requested <= requested and commit.extra.get("schema"):
                return commit.extra["schema"]
        return None

    def repeats_keys(self, frontier: str) -> bool:
        """Whether rows may share a partition and a record key as of a frontier.

        Writers of this project always upsert, which keeps keys unique; others may insert without a lookup, also in
        commits that are archived.
        """
        if not self.properties.get("hoodie.table.recordkey.fields"):
            return False  # Hudi generates the keys
        limit = frontier.split("_")[0]
        foreign = [c.operation for c in self.data_commits if c.instant.requested <= limit and not c.is_ours]
        return bool(foreign) and (self.is_archived or any(name not in _KEYED_OPERATIONS for name in foreign))

    @kept_property
    def is_archived(self) -> bool:
        """Whether older commits were moved from the active timeline to the table's history."""
        return any(name.endswith(".parquet") for name in self.history_names)

    @kept_property
    def history_names(self) -> tuple[str, ...]:
        """Names of the files in `.hoodie/timeline/history`, to which the archiver moves instants."""
        return tuple(self.folder.names(f"{TIMELINE}/history")) if "history" in self.names else ()

    def footer(self, path: str) -> Mapping[str, str]:
        """Key-value metadata of one data file (path relative to the table)."""
        import pyarrow.parquet as pq  # takes longer to import than a run with nothing to do should last

        with self.folder.data_file(path) as file:
            metadata = pq.read_schema(file).metadata or {}
        return {key.decode(): value.decode(errors="replace") for key, value in metadata.items()}

    def file_columns(self, path: str) -> Sequence[Any]:
        """The columns of one data file, as pyarrow's fields."""
        import pyarrow.parquet as pq

        with self.folder.data_file(path) as file:
            return list(pq.read_schema(file))

    def count(self, path: str) -> int:
        """Number of rows of one data file, by its footer."""
        import pyarrow.parquet as pq

        with self.folder.data_file(path) as file:
            return int(pq.read_metadata(file).num_rows)

    def slices(self, frontier: str) -> dict[FileGroup, Slice]:
        """Newest base file of each live file group as of a frontier (key: partition, file id).

        Files of commits on the active timeline come from their metadata; older ones from the listing, where all files
        from before the first active instant are committed.
        """
        return self.slices_at(self.snapshot_instant(frontier))

    def slices_at(self, limit: str) -> dict[FileGroup, Slice]:
        """`slices` of the commits requested up to an instant, without a later rewrite of the same rows."""
        slices = self._slices_before_active(limit)
        for commit in self.until(limit):
            for group in commit.replaced_groups:
                slices.pop(group, None)
            for write in commit.writes:
                if write.path.endswith(".parquet"):
                    key = (write.partition, write.file_id)
                    slices[key] = Slice(write.partition, write.file_id, write.path, commit.instant.requested)
        return slices

    def sizes(self, frontier: str) -> dict[FileGroup, Size]:
        """Size of each live file group as of a frontier, including logs.

        From commits alone where all are on the active timeline, otherwise also from a listing of older files.
        """
        limit = self.snapshot_instant(frontier)
        sizes = self._sizes_before_active(limit) if self.is_archived else {}
        for commit in self.until(limit):
            for group in commit.replaced_groups:
                sizes.pop(group, None)
            for write in commit.writes:
                key = (write.partition, write.file_id)
                if write.path.endswith(".parquet"):
                    sizes[key] = Size(write.bytes, write.rows)
                else:
                    below = sizes.get(key, Size(0, 0))
                    rows = None if below.rows is None else below.rows + write.inserts
                    sizes[key] = Size(below.bytes + write.bytes, rows)
        return sizes

    def missing(self, frontier: str, groups: Collection[FileGroup] | None = None) -> list[str]:
        """Slices as of a frontier that are gone, among these file groups (default: all).

        A cleaned slice of an archived commit is in no listing: only the commit that merged or replaced it refers to it.
        """
        missing = self.missing_at(self.snapshot_instant(frontier))
        return [path for key, path in missing.items() if groups is None or key in groups]

    def missing_at(self, limit: str) -> dict[FileGroup, str]:
        """`missing` among `slices_at` an instant, by file group."""
        slices, born = self.slices_at(limit), set[FileGroup]()
        gone = {key: file_slice.path for key, file_slice in slices.items() if file_slice.path not in self.data_files}
        for commit in self.commits:
            if commit.instant.requested <= limit:
                continue
            for key in commit.replaced_groups - slices.keys() - born:
                gone.setdefault(key, f"{key[0]}/{key[1]}")
            for write in commit.writes:
                key = (write.partition, write.file_id)
                if write.previous is None:
                    born.add(key)
                elif write.previous <= limit and (key not in slices or slices[key].instant != write.previous):
                    gone.setdefault(key, f"{write.partition}/{write.file_id} of {write.previous}")
        return gone

    def _slices_before_active(self, limit: str) -> dict[FileGroup, Slice]:
        """Newest base file of each file group by the listing, among those from before the active timeline."""
        # Instants under way count: files that a crashed writer left before the first commit are not committed.
        # An archiver that was cut short, too, leaves instants on the timeline that do not count.
        active = [instant.requested for instant in self.completed if instant.requested > self.archived_until]
        first = min([*active, *self.pending], default="")
        slices: dict[FileGroup, Slice] = {}
        for path in self.data_files:
            partition, _, name = path.rpartition("/")
            match = _BASE_FILE.fullmatch(name)
            if not match or match["instant"] >= first or match["instant"] > limit:
                continue
            key = (partition, match["file_id"])
            if key not in slices or slices[key].instant < match["instant"]:
                slices[key] = Slice(partition, match["file_id"], path, match["instant"])
        for instant in self.before_gap:
            for group in self._commit(instant).replaced_groups:
                slices.pop(group, None)
        return slices

    def _sizes_before_active(self, limit: str) -> dict[FileGroup, Size]:
        sizes = self.folder.sizes()
        return {key: Size(sizes.get(base.path, 0), None) for key, base in self._slices_before_active(limit).items()}

    @kept_property
    def data_files(self) -> frozenset[str]:
        """Paths of all Parquet files below the table, relative to it."""
        return frozenset(
            path for path in self.folder.files() if path.endswith(".parquet") and not path.startswith(".hoodie/")
        )

    def _commit(self, instant: Instant) -> Commit:
        if instant not in self._decoded:
            self._decoded[instant] = self._read_commit(instant)
        return self._decoded[instant]

    def _read_commit(self, instant: Instant) -> Commit:
        name = f".hoodie/timeline/{instant.requested}_{instant.completed}.{instant.action}"
        return parse_commit(instant, self.folder.read(name), f"{self.uri}/{name}")


@dataclass
class _TableCommits:
    """Commits of one table that this process has read, by instant."""

    uri: str
    known: dict[Instant, Commit] = field(default_factory=dict)


@cache
def _table_commits(uri: str) -> _TableCommits:
    """The cache of a table's commits: the file of a completed instant never changes, and its name is unique."""
    return _TableCommits(uri)


def remember_commit(uri: str, instant: Instant, content: bytes) -> None:
    """Note a commit that this process has completed, so that its file need not be read."""
    name = f".hoodie/timeline/{instant.requested}_{instant.completed}.{instant.action}"
    _table_commits(uri).known[instant] = parse_commit(instant, content, f"{uri}/{name}")


def _is_later(name: str, instant: str) -> bool:
    """
    >>> _is_later("20240101000003000.inflight", "20240101000001000"), _is_later("history", "20240101000001000")
    (True, False)
    """
    return name[:1].isdigit() and name[: len(instant)] > instant


def forget_commits(uri: str) -> None:
    """Drop a table's cached commits, so that files damaged since they were read are noticed."""
    _table_commits(uri.rstrip("/")).known.clear()


def _still_there(uri: str, listed: frozenset[str]) -> dict[Instant, Commit]:
    """The cached commits of a table, after removing those that are no longer listed, to bound memory."""
    commits = _table_commits(uri)
    known = commits.known.copy()  # one step: another thread may add to it
    kept = {i: c for i, c in known.items() if f"{i.requested}_{i.completed}.{i.action}" in listed}
    commits.known = kept
    return kept
