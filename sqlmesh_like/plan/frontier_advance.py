"""Whether a run in which a change had no effect stores its frontier. Owns the rule.

A commit without Spark takes milliseconds on a disk, less than reading the change again: it is always made. On a store
it is several requests, and by Spark a job: there a small change is read again, while more of them may follow; a large
one, or many, would be read again and again.
"""

from __future__ import annotations

from datetime import timedelta

from sqlmesh_like.names import is_store
from sqlmesh_like.plan.history import History, completed_at
from sqlmesh_like.plan.model_plan import SMALL_INPUT, PlannedModel

_AFTER_COMMITS = 10
_AFTER_BYTES = 256_000_000
"""The frontier advances after this many commits of one input, or this many bytes in the files that were touched."""
_AT_REST = timedelta(seconds=20)
"""No further change is expected of an input whose newest commit is older."""


def must_advance_frontier(planned: PlannedModel, history: History) -> bool:
    """Whether an empty commit should advance the table's frontier past the changes of its inputs."""
    if planned.advances:
        return True
    moved = [item for item in planned.inputs if item.has_moved and item.start and item.end]
    return sum(item.change.bytes for item in moved) >= _AFTER_BYTES or any(
        history.pending_commits(item.state.uri, item.start or "", item.end or "") >= _AFTER_COMMITS for item in moved
    )


def defers_frontier(planned: PlannedModel) -> bool:
    """Whether a commit without Spark is left out: on a store, for small inputs that may change again.

    And of a slice, which stores no frontier of its own.
    """
    reads_little = sum(item.volume.bytes for item in planned.inputs if item.volume is not None) <= SMALL_INPUT
    is_left = planned.slice is not None or (is_store(planned.target.uri) and not _is_at_rest(planned))
    return reads_little and is_left


def _is_at_rest(planned: PlannedModel) -> bool:
    try:
        newest = max(completed_at(item.end) for item in planned.inputs if item.has_moved)
    except ValueError:  # an input that is no Hudi table, or none that has moved
        return True
    return newest + _AT_REST < planned.now
