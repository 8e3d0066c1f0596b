"""A likely mistake that a check found. Owns the value alone: reading it back needs no SQL parser."""

from __future__ import annotations

from dataclasses import dataclass

from sqlmesh_like.errors import Location


@dataclass(frozen=True)
class TypeWarning:
    """Two kinds of types that meet at one location in a model's own file. `is_refused`: Spark refuses to convert."""

    rule: str
    message: str
    location: Location
    is_refused: bool
