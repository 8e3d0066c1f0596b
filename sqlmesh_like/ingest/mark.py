"""The record of a batch in a table's commit metadata. Owns recognizing a batch that is there already.

A crash between two tables replays the whole batch; the query's own batch number starts again when a checkpoint is lost,
so a batch is the query id and the files themselves.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlmesh_like.engine.commits import STATE_PREFIX
from sqlmesh_like.engine.timeline import Timeline

KEY = "ingest"


@dataclass(frozen=True)
class Mark:
    """What one batch took in. `last` is the newest file; `digest` covers all (modification time in ms, path)."""

    query: str
    batch: int
    files: int
    last: str
    digest: str

    def to_json(self) -> str:
        offsets = {"files": self.files, "last": self.last, "digest": self.digest}
        return json.dumps({"query": self.query, "batch": self.batch, "offsets": offsets}, sort_keys=True)

    def is_on(self, uri: str) -> bool:
        """Whether the newest ingested commit of the table at `uri` is of this batch. Needs no JVM."""
        timeline = Timeline(uri)
        text = timeline.extra(STATE_PREFIX + KEY) if timeline.exists else None
        if text is None:
            return False
        found, own = json.loads(text), json.loads(self.to_json())
        return bool(found.get("query") == own["query"] and found.get("offsets") == own["offsets"])


def mark_of(query: str, batch: int, files: Sequence[tuple[int, str]]) -> Mark:
    """The mark of a batch of files, each (modification time in ms, path).

    >>> mark_of("q", 0, [(2, "b"), (1, "a")]).last
    'b'
    """
    ordered = sorted(files)
    text = "\n".join(f"{time} {path}" for time, path in ordered)
    last = ordered[-1][1] if ordered else ""
    return Mark(query, batch, len(ordered), last, hashlib.sha256(text.encode()).hexdigest()[:16])
