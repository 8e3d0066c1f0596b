"""Parts of an artifact that was read back. Owns reading them without assumptions: any program may have written them."""

from __future__ import annotations

from collections.abc import Mapping

Artifact = Mapping[str, object]


def mapping_of(value: object) -> Artifact:
    """The value where it is a mapping, else an empty one.

    >>> mapping_of({"a": 1}), mapping_of(None)
    ({'a': 1}, {})
    """
    return value if isinstance(value, Mapping) else {}
