"""Whether and where events are sent. Owns which file is read; variables and transports are the client's own.

The client would also read `openlineage.yml` of the folder of the call, thus of whoever wrote the project: a transport
is a class that is imported and an address that receives values of the environment. Only the environment and the user's
own folder configure it. https://openlineage.io/docs/client/python/configuration
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
    has_variable = any(
        name == "OPENLINEAGE_URL" or name.upper().startswith("OPENLINEAGE__TRANSPORT") for name in os.environ
    )
    # Without a transport the client would print the events.
    if _is_disabled() or not (has_variable or config_file() is not None):
        return None
    try:
        from sqlmesh_like.app.open_lineage.client import open_client
    except ImportError as error:
        hint = "pip install 'sqlmesh_like[lineage]', or OPENLINEAGE_DISABLED=true"
        raise MachineError("OpenLineage is configured, and its client is not installed", hint=hint) from error
    try:
        return open_client(config_file())
    except Exception as error:  # (transports raise any type of exception)
        hint = f"see {_FILE} and the environment variables OPENLINEAGE…, or OPENLINEAGE_DISABLED=true"
        first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UsageError(f"OpenLineage's client cannot be configured: {first_line}", hint=hint) from error


def config_file() -> Path | None:
    """Return the file that configures the client: the one that the environment names, else the user's own."""
    named = os.environ.get("OPENLINEAGE_CONFIG")
    files = ([Path(named)] if named else []) + [Path.home() / ".openlineage" / _FILE]
    return next((path for path in files if path.is_file()), None)


def unread_file() -> str | None:
    """Return a warning of a file in the folder of the call, which the client would read by itself and must not."""
    file = Path.cwd() / _FILE
    if _is_disabled() or not file.is_file() or ((read := config_file()) and read.samefile(file)):
        return None
    return f"{_FILE} of this folder is not read: name it by OPENLINEAGE_CONFIG, or move it to ~/.openlineage"


def _is_disabled() -> bool:
    return os.environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true"
