"""Whether a run in which a change had no effect stores its frontier. Owns the rule.

A commit costs more than reading a small change again; a large one, or many, would be read again and again.
"""

from __future__ import annotations

from sqlmesh_like.plan.history import History
from sqlmesh_like.plan.model_plan import PlannedModel

_AFTER_COMMITS = 10
_AFTER_BYTES = 256_000_000
"""The frontier advances after this many commits of one input, or this many bytes in the files that were touched."""


def must_advance_frontier(planned: PlannedModel, history: History) -> bool:
    """Whether an empty commit should advance the table's frontier past the changes of its inputs."""
    if planned.advances:
        return True
    moved = [item for item in planned.inputs if item.has_moved and item.start and item.end]
    return sum(item.change.bytes for item in moved) >= _AFTER_BYTES or any(
        history.pending_commits(item.state.uri, item.start or "", item.end or "") >= _AFTER_COMMITS for item in moved
    )
