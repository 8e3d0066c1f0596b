"""The record of a batch in a table's commit metadata. Owns recognizing a batch that was already ingested.

A crash between two tables replays the whole batch. A query's batch numbers start again when its checkpoint is lost, so
a batch is identified by the query id and its part of the log: files, or offsets by topic and partition.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from sqlmesh_like.cdc.sources.offset_range import OffsetRange
from sqlmesh_like.hudi.commits import STATE_PREFIX
from sqlmesh_like.hudi.timeline import Timeline

MARKER_KEY = "ingest"


@dataclass(frozen=True)
class BatchMarker:
    """Identity of a batch: the query that read it, its number in the query, and its part of the log."""

    query: str
    batch: int
    extent: OffsetRange

    def to_json(self) -> str:
        return json.dumps({"query": self.query, "batch": self.batch, "offsets": self.extent.summary}, sort_keys=True)

    def is_on(self, uri: str) -> bool:
        """Whether the newest commit of the table at `uri` with a marker is of this batch. Needs no JVM."""
        timeline = Timeline(uri)
        text = timeline.extra(STATE_PREFIX + MARKER_KEY) if timeline.exists else None
        if text is None:
            return False
        result, own = json.loads(text), json.loads(self.to_json())
        return bool(result.get("query") == own["query"] and result.get("offsets") == own["offsets"])
