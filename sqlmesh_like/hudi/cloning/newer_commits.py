"""What a clone has beyond the table it was made of. Owns whether the table may be given it."""

from __future__ import annotations

from sqlmesh_like.errors import RetryableError
from sqlmesh_like.hudi.commits import Instant
from sqlmesh_like.hudi.timeline import Timeline


class CannotPromoteError(RetryableError):
    """A table is not to be made what its clone is: another writer was there, or files of the clone are gone."""


def newer_commits(table: Timeline, clone: Timeline) -> tuple[Instant, ...] | None:
    """Commits of a clone after the newest one of its table; None where the table has others, or other properties."""
    own = table.commit_instants
    if not own or not set(own) <= set(clone.commit_instants) or table.properties != clone.properties:
        return None
    return tuple(instant for instant in clone.commit_instants if instant > own[-1])
