"""Which of two rows of a key a table keeps. Owns checking that its properties agree with this project's writers."""

from __future__ import annotations

from collections.abc import Iterable

from sqlmesh_like.hudi.timeline import Timeline

_MERGING = ("merge", "payload", "precombine", "ordering", "partial.update")
"""Parts of the names of Hudi options that decide between two rows of a key."""


def merges_as_declared(timeline: Timeline, ordering: tuple[str, ...], options: Iterable[str]) -> bool:
    """Whether the last commit wins or, with `ordering`, the row with the higher order. `options`: the user's names."""
    properties = timeline.properties
    mode = "EVENT_TIME_ORDERING" if ordering else "COMMIT_TIME_ORDERING"
    if properties.get("hoodie.record.merge.mode") != mode or properties.get("hoodie.table.partial.update.mode"):
        return False
    if ordering and properties.get("hoodie.table.ordering.fields") != ",".join(ordering):
        return False
    return not any(part in name for name in options for part in _MERGING)
