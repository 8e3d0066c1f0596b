"""Which part of a merge-on-read table's history is missing. Owns checking its files, which Hudi's reader does not.

Hudi's reader lists a table's files and merges those that exist: where a cleaner removed a slice it returns fewer rows,
without an error (unless the cleaner is configured by a number of commits and records the earliest one kept).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from sqlmesh_like.hudi.commits import FileGroup, mapping_member, read_metadata
from sqlmesh_like.hudi.timeline import Timeline

_BASE = re.compile(r"(?P<file_id>[^/]+)_\d+-\d+-\d+_(?P<instant>\d{14,17})\.[a-z]+")
_LOG = re.compile(r"\.(?P<file_id>[^./][^/]*)_(?P<instant>\d{14,17})\.log\.[^/]+")
_CLEAN = re.compile(r"(?P<requested>\d{14,17})(_\d{14,17}\.clean|\.clean\.requested)")


@dataclass
class SliceFiles:
    """Files of one file group that commits of the active timeline wrote: the newest base file and the log files."""

    base: str | None = None
    since: str = ""
    logs: list[tuple[str, str, str]] = field(default_factory=list)  # completion time, path, requested time

    def files(self) -> Iterator[str]:
        """Paths of the files that a reader merges."""
        if self.base:
            yield self.base
        yield from self.own_logs()

    def own_logs(self) -> Iterator[str]:
        """The slice's log files, oldest first, without those of commits that completed before its base file."""
        yield from (path for completed, path, _ in sorted(self.logs) if completed > self.since)

    def log_instants(self) -> Iterator[str]:
        """Requested times of the commits that wrote `own_logs`."""
        yield from (requested for completed, _, requested in sorted(self.logs) if completed > self.since)


@dataclass(frozen=True)
class DataFile:
    """A data file and what its name states: its file group and the instant that wrote it."""

    group: FileGroup
    instant: str
    is_base: bool
    path: str


def lost_files(timeline: Timeline, frontier: str, groups: Collection[FileGroup] | None = None) -> list[str]:
    """Files that a read of these file groups (None: all) of a table of either type would lack as of a frontier."""
    return timeline.missing(frontier, groups) if timeline.is_cow else missing_files(timeline, frontier, groups)


def missing_files(timeline: Timeline, frontier: str, groups: Collection[FileGroup] | None = None) -> list[str]:
    """`lost_files` of a merge-on-read table, or why Hudi refuses the read."""
    at, cleans = timeline.as_of(frontier), _cleans(timeline)
    if (kept := _newest_limit(cleans)) > at:
        return [f"all before {kept}"]
    return _missing_at(timeline, at, groups, cleans)


def missing_at(timeline: Timeline, at: str) -> list[str]:
    """`missing_files` of the commits requested up to an instant, without a later compaction of the same rows.

    Whether Hudi would read these commits does not count: a savepoint keeps files that a clean says are gone.
    """
    return _missing_at(timeline, at, None, _cleans(timeline))


def _missing_at(
    timeline: Timeline, at: str, groups: Collection[FileGroup] | None, cleans: Mapping[str, Mapping[str, object]]
) -> list[str]:
    present = frozenset(timeline.folder.files())
    paths = [path for group, files in slice_files(timeline, at).items() if _in(groups, group) for path in files.files()]
    return [*(path for path in paths if path not in present), *_cleaned_files(timeline, at, groups, cleans, present)]


def earliest_kept(timeline: Timeline) -> str:
    """The commit from which the last completed clean kept everything; empty where none states one."""
    return _newest_limit(_cleans(timeline))


def _newest_limit(cleans: dict[str, Mapping[str, object]]) -> str:
    return next((text for text in map(_earliest_kept, reversed(cleans.values())) if text is not None), "")


def _in(groups: Collection[FileGroup] | None, group: FileGroup) -> bool:
    return groups is None or group in groups


def slice_files(timeline: Timeline, at: str) -> Mapping[FileGroup, SliceFiles]:
    """Newest slices of live file groups at an instant, as far as commits of the active timeline wrote them."""
    files: dict[FileGroup, SliceFiles] = defaultdict(SliceFiles)
    for commit in timeline.until(at):
        for group in commit.replaced_groups:
            files.pop(group, None)
        for write in commit.writes:
            own = files[write.partition, write.file_id]
            if _LOG.fullmatch(write.path.rpartition("/")[2]):
                own.logs.append((commit.instant.completed or "", write.path, commit.instant.requested))
            else:
                own.base, own.since = write.path, commit.instant.requested
    return files


def _cleaned_files(
    timeline: Timeline,
    at: str,
    groups: Collection[FileGroup] | None,
    cleans: Mapping[str, Mapping[str, object]],
    present: Collection[str],
) -> list[str]:
    """Files of slices that were the newest at `at` and were cleaned since, including those of archived commits.

    A cleaner never removes the newest slice of a live file group, so only groups written or replaced since are checked.
    """
    later = {key for commit in timeline.commits if commit.instant.requested > at for key in commit.touched}
    bases = [file for file in map(data_file, present) if file and file.is_base and file.instant <= at]
    lost = []
    for requested, clean in cleans.items():
        for file in filter(None, map(data_file, _paths(clean) if requested > at else ())):
            if file.instant > at or file.group not in later or not _in(groups, file.group):
                continue
            if not any(base.group == file.group and base.instant > file.instant for base in bases):
                lost.append(file.path)
    return lost


def archived_logs(timeline: Timeline, limit: str) -> Iterator[DataFile]:
    """Log files, requested up to an instant, of commits before the active timeline."""
    first = timeline.commit_instants[0].requested
    for file in filter(None, map(data_file, timeline.folder.files())):
        if not file.is_base and file.instant < first and file.instant <= limit:
            yield file


def data_file(path: str) -> DataFile | None:
    """A data file by its path; None for any other, such as Hadoop's checksum of one.

    >>> data_file("p=1/f-0_0-5-8_20240101000001000.parquet").instant
    '20240101000001000'
    >>> log = data_file("p=1/.f-0_20240101000002000.log.1_0-21-36")
    >>> log.group, log.instant
    (('p=1', 'f-0'), '20240101000002000')
    >>> data_file("p=1/..f-0_20240101000002000.log.1_0-21-36.crc"), data_file("p=1/.hoodie_partition_metadata")
    (None, None)
    """
    partition, _, name = path.rpartition("/")
    for pattern in (_LOG, _BASE):
        if match := pattern.fullmatch(name):
            return DataFile((partition, match["file_id"]), match["instant"], pattern is _BASE, path)
    return None


def _cleans(timeline: Timeline) -> dict[str, Mapping[str, object]]:
    """Metadata of cleans by requested time, ascending; of unfinished ones, the plan."""
    names = {match["requested"]: name for name in sorted(timeline.names) if (match := _CLEAN.fullmatch(name))}
    cleans: dict[str, Mapping[str, object]] = {}
    for requested, name in sorted(names.items()):
        path = f".hoodie/timeline/{name}"
        if raw := timeline.folder.read(path):
            cleans[requested] = read_metadata(raw, f"{timeline.uri}/{path}", mapping_member)
    return cleans


def _earliest_kept(clean: Mapping[str, object]) -> str | None:
    """The commit before which Hudi refuses to read after this clean; None for a plan, which Hudi does not check."""
    text = clean.get("earliestCommitToRetain")
    return text if isinstance(text, str) else None


def _paths(clean: Mapping[str, object]) -> Iterator[str]:
    """Files that a clean deletes, relative to the table."""
    done, planned = clean.get("partitionMetadata"), clean.get("filePathsToBeDeletedPerPartition")
    if isinstance(done, dict):
        for partition, entry in done.items():
            yield from (_relative(partition, path) for path in entry["deletePathPatterns"])
    elif isinstance(planned, dict):
        for partition, entries in planned.items():
            yield from (_relative(partition, entry["filePath"]) for entry in entries)


def _relative(partition: str, path: str) -> str:
    name = path.rpartition("/")[2]
    return f"{partition}/{name}" if partition else name
