"""Log lines as JSON, in the structure of dbt's events. Owns the fields that all lines have.

What drives dbt reads an event's name and its `data`: Dagster those that end a node, Airflow's Cosmos the status in
`node_info`. Source: https://docs.getdbt.com/reference/events-logging.
"""

from __future__ import annotations

import datetime
import json
import os
import threading
from collections.abc import Mapping

from sqlmesh_like.control_characters import escape_json
from sqlmesh_like.invocation_id import INVOCATION_ID

PLAIN_EVENT = "Note"
"""The event of a line that is only text."""


def json_line(
    level: str,
    message: str,
    event: str = PLAIN_EVENT,
    data: Mapping[str, object] | None = None,
    now: datetime.datetime | None = None,
) -> str:
    """Return a log line as JSON. `event`: dbt's name of it; `data`: its fields for programs, which may be none."""
    time = (now or datetime.datetime.now(datetime.UTC)).isoformat().replace("+00:00", "Z")
    info = {
        "name": event, "level": level, "msg": message, "ts": time, "invocation_id": INVOCATION_ID,
        "pid": os.getpid(), "thread": threading.current_thread().name,
    }  # fmt: skip
    return escape_json(json.dumps({"info": info, "data": data or {}}, ensure_ascii=False))
