"""A merge-on-read table as its base files and the change logs since. Owns when these are equivalent to its log files.

Hudi merges log files record by record. A commit's own log (`change_log`) has the rows as the commit left them, so the
table consists of the newest row of each key in the logs and of the base files' rows with other keys. The log of a
commit that a base file already includes agrees with that file, whichever of a file group's files is the newest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlmesh_like.hudi.change_log import ChangeLog, NotLoggedError, chained, log_of
from sqlmesh_like.hudi.commits import Slice
from sqlmesh_like.hudi.missing_files import DataFile, FileGroup, archived_logs, slice_files
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import KEY


@dataclass(frozen=True)
class LoggedSlices:
    """Base files, and the change logs of the commits since, oldest first.

    `whole`: base files of file groups that none of these commits wrote to. `changed`: the others. `at`: partition
    columns, which identify a row together with `KEY`.
    """

    whole: tuple[Slice, ...]
    changed: tuple[Slice, ...]
    logs: tuple[ChangeLog, ...]
    at: tuple[str, ...]

    @property
    def bases(self) -> tuple[Slice, ...]:
        return (*self.whole, *self.changed)

    @property
    def paths(self) -> list[str]:
        """All files, relative to the table."""
        return [*(base.path for base in self.bases), *(file.path for log in self.logs for file in log.files)]


def logged_slices(timeline: Timeline, frontier: str) -> LoggedSlices:
    """A merge-on-read table as of a frontier. Raises NotLoggedError where its change logs do not have all of it."""
    if timeline.properties.get("hoodie.table.recordkey.fields") != KEY:
        raise NotLoggedError("its rows have keys of another writer")
    if timeline.repeats_keys(frontier):
        raise NotLoggedError("another writer may have repeated keys")
    limit = timeline.as_of(frontier)
    slices = timeline.slices(f"{limit}_")
    if timeline.is_archived and any(_is_unmerged(file, slices) for file in archived_logs(timeline, limit)):
        raise NotLoggedError("it has log files of archived commits")
    instants = {instant for files in slice_files(timeline, limit).values() for instant in files.log_instants()}
    # From the oldest commit on whose log files count. Commits that a base file already includes do no harm.
    commits = [
        commit
        for commit in (timeline.until(limit) if instants else ())
        if commit.is_data and commit.instant.requested >= min(instants)
    ]
    logs = chained(commits, log_of(commits[0]).previous) if commits else ()
    touched = set[FileGroup]().union(*(commit.touched for commit in commits))
    whole = tuple(each for group, each in slices.items() if group not in touched)
    changed = tuple(each for group, each in slices.items() if group in touched)
    return LoggedSlices(whole, changed, logs, timeline.partition_fields)


def _is_unmerged(file: DataFile, slices: Mapping[FileGroup, Slice]) -> bool:
    return file.group not in slices or slices[file.group].instant < file.instant
