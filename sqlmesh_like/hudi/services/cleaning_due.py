"""Whether cleaning a table would remove anything. Owns the count of commits, from the last clean on; no JVM.

The active timeline alone does not tell: Hudi's archiver leaves all commits since the oldest savepoint on it, so that a
table with a savepoint would be cleaned in each run.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlmesh_like.hudi.commits import Commit
from sqlmesh_like.hudi.missing_files import earliest_kept
from sqlmesh_like.hudi.timeline import Timeline


def is_cleaning_due(timeline: Timeline, commits: int) -> bool:
    """Whether more than this many data commits are there since the last clean, and older ones can be removed.

    Also where a removal of history was cut short.
    """
    if _has_remains(timeline):
        return True
    if len(timeline.commit_instants) <= commits:
        return False
    kept = earliest_kept(timeline)
    uncleaned = [commit for commit in timeline.data_commits if commit.instant.requested >= kept]
    older = uncleaned[: max(0, len(uncleaned) - commits)]
    # Without a savepoint the commits at least can be archived.
    return bool(older) and (not timeline.savepointed or _supersede(older, timeline.savepointed))


def _has_remains(timeline: Timeline) -> bool:
    """Whether an archiver was cut short that `local_clean` completes."""
    if not (timeline.before_gap and timeline.is_cow and timeline.folder.is_in_reach):
        return False
    from sqlmesh_like.hudi.services.archive import is_archive_known  # needs pyarrow

    return is_archive_known(timeline)


def _supersede(commits: Iterable[Commit], savepoints: Iterable[str]) -> bool:
    """Whether the commits superseded a file that no savepoint keeps: a cleaner that finds none records no clean."""
    written: dict[tuple[str, str], str] = {}
    for commit in commits:
        at = commit.instant.requested
        merged = [write.previous for write in commit.writes if write.previous and write.path.endswith(".parquet")]
        replaced = [written.get(group, "") for group in commit.replaced_groups]
        if any(not any(since <= savepoint < at for savepoint in savepoints) for since in (*merged, *replaced)):
            return True
        written |= {(write.partition, write.file_id): at for write in commit.writes}
    return False
