"""What a clean of a copy-on-write table removes. Owns the rule, which is that of Hudi's policy KEEP_LATEST_COMMITS.

Of each file group the newest file stays, that of the earliest kept commit, and all later ones. A file group that ended
before that commit goes as a whole. Source: Hudi's `CleanPlanner`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlmesh_like.hudi.commits import FileGroup, Instant
from sqlmesh_like.hudi.missing_files import data_file, earliest_kept
from sqlmesh_like.hudi.timeline import Timeline


@dataclass(frozen=True)
class CleanPlan:
    """`earliest`: the first commit that stays readable; `newest`: the last one. `files`: paths to remove, by partition.

    Paths are relative to the table.
    """

    earliest: Instant
    newest: Instant
    files: Mapping[str, tuple[str, ...]]


def plan_clean(timeline: Timeline, retain: int) -> CleanPlan | None:
    """The clean that leaves the newest `retain` data commits readable; None where the table has no more than these.

    Where rewrites of all rows come between them, these stay as well.
    """
    commits = [commit.instant for commit in timeline.data_commits]
    if len(commits) <= retain:
        return None
    # What a former clean has removed is not readable again.
    kept = earliest_kept(timeline)
    earliest = next((each for each in commits[-retain:] if each.requested >= kept), commits[-retain])
    files: dict[str, list[str]] = defaultdict(list)
    ended = {group: commit.instant.requested for commit in timeline.commits for group in commit.replaced_groups}
    for group, versions in sorted(_versions(timeline).items()):
        files[group[0]] += _superfluous(versions, ended.get(group), earliest.requested)
    removed = {partition: tuple(paths) for partition, paths in files.items() if paths}
    return CleanPlan(earliest, timeline.commit_instants[-1], removed)


def _superfluous(versions: Mapping[str, str], ended: str | None, earliest: str) -> Iterator[str]:
    """Files of a group (`versions`: paths by instant, ascending) that no commit from `earliest` on needs.

    `ended`: the instant that replaced the group.

    >>> files = {"1": "a", "2": "b", "3": "c", "5": "d"}
    >>> [*_superfluous(files, None, "4")], [*_superfluous(files, None, "6")], [*_superfluous(files, None, "1")]
    (['a', 'b'], ['a', 'b', 'c'], [])
    >>> [*_superfluous(files, "6", "7")], [*_superfluous(files, "6", "6")], [*_superfluous(files, "4", "7")]
    (['a', 'b', 'c', 'd'], [], [])
    """
    newest = max(versions)
    if ended is not None:
        # Hudi removes nothing of a group that readers of kept commits have. One written after its end is no such group.
        if newest <= ended < earliest:
            yield from versions.values()
        return
    early = [instant for instant in versions if instant < earliest]
    kept = {newest, max(early, default="")}
    yield from (versions[instant] for instant in early if instant not in kept)


def _versions(timeline: Timeline) -> Mapping[FileGroup, Mapping[str, str]]:
    """Paths of committed files by file group and instant, instants ascending."""
    known = {instant.requested for instant in timeline.commit_instants}
    first = min(known)
    groups: dict[FileGroup, dict[str, str]] = defaultdict(dict)
    for file in sorted(filter(None, map(data_file, timeline.data_files)), key=lambda file: file.instant):
        # What is older than the timeline was archived, and so committed.
        if file.is_base and (file.instant in known or file.instant < first):
            groups[file.group][file.instant] = file.path
    return groups
