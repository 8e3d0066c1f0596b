"""Warnings about what dbt accepts and nothing here uses, with position; a call shows each once."""

from __future__ import annotations

import logging

from sqlmesh_like.errors import Location

LOGGER = "sqlmesh_like.project"
"""The logger that gets them; callers that load a project add a handler."""
_log = logging.getLogger(LOGGER)
_log.addHandler(logging.NullHandler())


def warn(location: Location | None, message: str, hint: str | None = None) -> None:
    """Warn about something that is ignored."""
    where = f"{location}: " if location else ""
    _log.warning("warning: %s%s%s", where, message, f" ({hint})" if hint else "")
