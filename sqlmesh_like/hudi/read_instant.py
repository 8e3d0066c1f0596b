"""The instant at which Hudi's reader returns a frontier of a merge-on-read table. Pure; `timeline` has the instants.

Hudi assigns a log file to the newest slice of its file group that was requested before the log file's commit
*completed* (technical specification, "File layout"), and an as-of read picks slices by *requested* time. A commit that
a compaction overtook while it was written is therefore visible only as of that compaction or later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlmesh_like.hudi.commits import Instant


def read_instant(
    frontier: str, commits: Iterable[Instant], compactions: Collection[str], pending: Iterable[str]
) -> str:
    """The instant for reading a frontier: the last compaction before the next commit, since it changes no row.

    `compactions`: requested times, completed or not; `pending`: those of incomplete data commits. Later requests are
    later than all of these, so reads at the result return the same rows for as long as files are kept.

    >>> read_instant("10_11", [Instant("10", "11", "deltacommit")], ["05", "20"], [])
    '20'
    >>> read_instant("10_11", [Instant("15", "16", "deltacommit")], ["12", "20"], [])
    '12'
    """
    low = frontier.split("_")[0]
    following = {instant.requested for instant in commits} - set(compactions) | set(pending)
    limit = min((instant for instant in following if instant > low), default=None)
    return max([low, *(instant for instant in compactions if instant > low and (limit is None or instant < limit))])


def is_settled(
    frontier: str, commits: Collection[Instant], compactions: Collection[str], pending: Iterable[str]
) -> bool:
    """Whether an as-of read can return a frontier: no compaction after the read instant overtook a commit up to it.

    >>> overtaken = [Instant("10", "30", "deltacommit"), Instant("15", "16", "deltacommit")]
    >>> is_settled("10_30", overtaken, ["20"], []), is_settled("15_16", overtaken, ["20"], [])
    (False, True)
    """
    at = read_instant(frontier, commits, compactions, pending)
    later = [compaction for compaction in compactions if compaction > at]
    written = (i for i in commits if i.requested <= at and i.requested not in compactions)
    return not later or all((instant.completed or "") < min(later) for instant in written)
