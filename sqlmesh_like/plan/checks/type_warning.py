"""What a check found that runs and is likely a mistake. Owns the value alone: reading it back needs no SQL parser."""

from __future__ import annotations

from dataclasses import dataclass

from sqlmesh_like.errors import Location


@dataclass(frozen=True)
class TypeWarning:
    """Two kinds of types in one place of a model's own file."""

    rule: str
    message: str
    location: Location
    is_refused: bool
