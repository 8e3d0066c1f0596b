"""What dbt accepts and nothing here uses. Owns warnings about it, with position; a call gives each once."""

from __future__ import annotations

import logging

from sqlmesh_like.errors import Location

LOGGER = "sqlmesh_like.project"
"""The logger that gets them; who loads a project listens."""
_log = logging.getLogger(LOGGER)
_log.addHandler(logging.NullHandler())


def warn(location: Location | None, message: str, hint: str | None = None) -> None:
    """Tell of something that is passed over."""
    where = f"{location}: " if location else ""
    _log.warning("warning: %s%s%s", where, message, f" ({hint})" if hint else "")
