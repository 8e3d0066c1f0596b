"""The record of a batch in a table's commit metadata. Owns recognizing a batch that was already ingested.

A crash between two tables replays the whole batch. A query's batch numbers start again when its checkpoint is lost, so
a batch is identified by the query id and its part of the log: files, or offsets by topic and partition. Beside it the
record says of which rows a table that the source reads again has not had all yet.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType

from sqlmesh_like.cdc.sources.offset_range import OffsetRange
from sqlmesh_like.hudi.commits import STATE_PREFIX
from sqlmesh_like.hudi.timeline import Timeline

MARKER_KEY = "ingest"
_REREADS = "rereads"
_NONE: Mapping[str, Reread] = MappingProxyType({})


@dataclass(frozen=True)
class Reread:
    """A source that is reading all rows of a table again. `since`: the position in the log where it began.

    `fits`: some row has been ingested since.
    """

    since: str
    fits: bool = False


def open_rereads(timeline: Timeline) -> Mapping[str, Reread]:
    """What of a table is being read again, as its newest commit says: by origin ('': the whole table). Needs no JVM."""
    text = timeline.extra(STATE_PREFIX + MARKER_KEY)
    known = json.loads(text).get(_REREADS, {}) if text else {}
    return {origin: Reread(**each) for origin, each in known.items()}


@dataclass(frozen=True)
class BatchMarker:
    """Identity of a batch: the query that read it, its number in the query, and its part of the log."""

    query: str
    batch: int
    extent: OffsetRange

    def to_json(self, rereads: Mapping[str, Reread] = _NONE) -> str:
        """The record of a commit. `rereads`: what of its table is being read again, by origin."""
        content = {"query": self.query, "batch": self.batch, "offsets": self.extent.summary}
        if rereads:
            content[_REREADS] = {origin: asdict(each) for origin, each in rereads.items()}
        return json.dumps(content, sort_keys=True)

    def is_on(self, uri: str) -> bool:
        """Whether the newest commit of the table at `uri` with a marker is of this batch. Needs no JVM."""
        timeline = Timeline(uri)
        text = timeline.extra(STATE_PREFIX + MARKER_KEY) if timeline.exists else None
        if text is None:
            return False
        result, own = json.loads(text), json.loads(self.to_json())
        return bool(result.get("query") == own["query"] and result.get("offsets") == own["offsets"])
