"""The id of this process's call, one in its log lines, its artifacts and its templates, as dbt's `invocation_id`."""

from __future__ import annotations

import os
import uuid

INVOCATION_ID = str(uuid.uuid4())
PROCESS_VARIABLE = "SML_PROCESS"
"""The environment variable by which the JVM of a process is recognized when that was killed."""


def process_mark() -> str:
    """Return the value of that variable. A process that was forked has the id of its parent, but another mark."""
    return f"{INVOCATION_ID}.{os.getpid()}"
