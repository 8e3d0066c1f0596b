"""The result of a check, also of one that an earlier call has made: reading it imports nothing that checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlmesh_like.errors import SqlError, require_sound
from sqlmesh_like.plan.checks.type_warning import TypeWarning


@dataclass(frozen=True)
class CheckedModels:
    """The result of a check: the first error of each broken node by unique id, and warnings of likely mistakes.

    `harmless` are the errors of ephemeral models that no built node reads: their SQL is never run.
    """

    errors: Mapping[str, SqlError]
    warnings: tuple[TypeWarning, ...]
    harmless: Mapping[str, SqlError] = field(default_factory=dict)

    def require_sound(self) -> None:
        """Raise SqlError with all errors, one below the other, if there are any."""
        require_sound(self.errors)
