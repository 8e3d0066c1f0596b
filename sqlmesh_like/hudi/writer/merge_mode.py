"""Which of two rows of a key a table keeps. Owns checking whether that is as its writers here declare it."""

from __future__ import annotations

from collections.abc import Iterable

from sqlmesh_like.hudi.timeline import Timeline

_MERGING = ("merge", "payload", "precombine", "ordering", "partial.update")
"""Parts of names of Hudi's options by which a writer decides between two rows of a key."""


def merges_as_declared(timeline: Timeline, ordering: tuple[str, ...], options: Iterable[str]) -> bool:
    """Whether the last commit wins or, by `ordering`, the row of the higher order; `options`: names of the user's."""
    properties = timeline.properties
    mode = "EVENT_TIME_ORDERING" if ordering else "COMMIT_TIME_ORDERING"
    if properties.get("hoodie.record.merge.mode") != mode or properties.get("hoodie.table.partial.update.mode"):
        return False
    if ordering and properties.get("hoodie.table.ordering.fields") != ",".join(ordering):
        return False
    return not any(part in name for name in options for part in _MERGING)
