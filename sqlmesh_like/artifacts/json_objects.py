"""Reading parts of an artifact without assumptions about their types: any program may have written it."""

from __future__ import annotations

from collections.abc import Mapping

Artifact = Mapping[str, object]


def mapping_of(value: object) -> Artifact:
    """Return the value if it is a mapping, else an empty one.

    >>> mapping_of({"a": 1}), mapping_of(None)
    ({'a': 1}, {})
    """
    return value if isinstance(value, Mapping) else {}
