"""Whether and where events are sent. Owns finding out; variables, files and transports are the client's own.

https://openlineage.io/docs/client/python/configuration
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from sqlmesh_like.errors import MachineError, UsageError

if TYPE_CHECKING:
    from openlineage.client.client import OpenLineageClient

_FILE = "openlineage.yml"


def find_client() -> OpenLineageClient | None:
    """Return the client, None where no transport is configured: then no events are sent.

    Raises MachineError where its package is missing, UsageError where the configuration is invalid.
    """
    if not _is_configured():
        return None
    try:
        from openlineage.client.client import OpenLineageClient
    except ImportError as error:
        hint = "pip install 'sqlmesh_like[lineage]', or OPENLINEAGE_DISABLED=true"
        raise MachineError("OpenLineage is configured, and its client is not installed", hint=hint) from error
    try:
        return OpenLineageClient()
    except Exception as error:  # (transports raise any type of exception)
        hint = f"see {_FILE} and the environment variables OPENLINEAGE…, or OPENLINEAGE_DISABLED=true"
        raise UsageError(f"OpenLineage's client cannot be configured: {_first_line(error)}", hint=hint) from error


def _is_configured() -> bool:
    """Whether the client would find a transport; without one it would print the events."""
    if os.environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return False
    named = os.environ.get("OPENLINEAGE_CONFIG")
    files = ([Path(named)] if named else []) + [Path.cwd() / _FILE, Path.home() / ".openlineage" / _FILE]
    has_variable = any(
        name == "OPENLINEAGE_URL" or name.upper().startswith("OPENLINEAGE__TRANSPORT") for name in os.environ
    )
    return has_variable or any(path.is_file() for path in files)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
