"""How much commits to a table rewrite compared with what they change. Owns when that is too much, and the advice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlmesh_like.plan.history import CommitSummary, Volume

REBUCKET = "sml maintain --rebucket"
MERGE_ON_READ = "table_type: mor"
_MANY_TIMES = 20
"""Rewriting this many rows per changed row is worth advice."""
_SOME_BYTES, _SOME_BYTES_HERE = 16 * 1024 * 1024, 256 * 1024 * 1024
"""A commit that rewrites less costs about the same whatever the layout; the limit is higher without Spark."""
_MANY_FILES = 3
"""A table is worth a rewrite if it has this many times too many files for its size, or too few."""


@dataclass(frozen=True)
class WriteCost:
    """The newest upserts of a table: changed rows, and the rows and bytes of the files that they wrote.

    `files`: those of the whole table; `wanted_files`: how many there would be with the best number of buckets.
    """

    unique_id: str
    kind: str
    commits: int
    changed: int
    rewritten: int
    bytes: int
    files: int
    wanted_files: int
    is_local: bool = False

    @property
    def amplification(self) -> float:
        """Rows written per changed row; 1: only the change is written."""
        return self.rewritten / self.changed if self.changed else 1.0

    @property
    def advice(self) -> str | None:
        """The command or setting that would make commits, or reading, much cheaper; None if none would.

        >>> cost = WriteCost("source.p.s.t", "cow", 5, 100, 50_000, 10**9, 84, 84)
        >>> cost.amplification, cost.advice
        (500.0, 'table_type: mor')
        >>> WriteCost("source.p.s.t", "cow", 5, 100, 50_000, 10**9, 1032, 84).advice
        'sml maintain --rebucket'
        """
        is_split = self.files >= _MANY_FILES * self.wanted_files
        if is_split or self.wanted_files >= _MANY_FILES * self.files:
            return REBUCKET
        least = _SOME_BYTES_HERE if self.is_local else _SOME_BYTES
        is_costly = self.amplification >= _MANY_TIMES and self.bytes >= least * self.commits
        return MERGE_ON_READ if is_costly and self.kind == "cow" else None


def write_cost(
    unique_id: str, kind: str, commits: Sequence[CommitSummary], volume: Volume, buckets: int, *, is_local: bool
) -> WriteCost:
    """The cost of these upserts to a table of this size; `buckets`: its best number of buckets per partition.

    `is_local`: its files are on this machine.
    """
    return WriteCost(
        unique_id,
        kind,
        len(commits),
        sum(commit.changed for commit in commits),
        sum(commit.rows for commit in commits),
        sum(commit.bytes for commit in commits),
        volume.files,
        max(1, volume.partitions) * buckets,
        is_local,
    )


def describe_cost(cost: WriteCost) -> dict[str, object]:
    """The cost as `sml explain --output json` prints it."""
    return {
        "unique_id": cost.unique_id, "commits": cost.commits, "changed_rows": cost.changed,
        "rewritten_rows": cost.rewritten, "rewritten_bytes": cost.bytes,
        "write_amplification": round(cost.amplification, 1), "files": cost.files, "advice": cost.advice,
    }  # fmt: skip
