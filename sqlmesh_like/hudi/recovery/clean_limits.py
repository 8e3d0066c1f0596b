"""What a clean says about the commits that can still be read, after a return to a savepoint before them.

A clean records the earliest commit whose files it kept, and Hudi refuses reads as of any before it, also of a
savepointed one. Once the table is back at that one it is the newest, and it is whole: the record has to name it.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import fastavro

from sqlmesh_like.hudi.commits import NOT_METADATA, NOT_SCHEMA
from sqlmesh_like.hudi.stores.store_client import put_content
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.whole_files import replace_whole
from sqlmesh_like.names import is_store

_LIMIT = "earliestCommitToRetain"


def lower_clean_limits(timeline: Timeline, instant: str) -> None:
    """Let completed cleans name this instant where they name a later one. What they removed stays recorded."""
    for each in timeline.completed:
        if each.action != "clean" or each.requested < instant:
            continue
        name = f".hoodie/timeline/{each.frontier}.clean"
        if not (content := timeline.folder.read(name)):
            continue
        try:
            reader = fastavro.reader(io.BytesIO(content))
            records: list[Any] = list(reader)
        except (*NOT_METADATA, *NOT_SCHEMA):  # whoever reads it says so
            continue
        if not any(str(record.get(_LIMIT) or "") > instant for record in records):
            continue
        target = io.BytesIO()
        assert reader.writer_schema is not None
        fastavro.writer(target, reader.writer_schema, [{**record, _LIMIT: instant} for record in records])
        _replace(timeline, name, target.getvalue())


def _replace(timeline: Timeline, name: str, content: bytes) -> None:
    if is_store(timeline.uri):
        put_content(f"{timeline.uri}/{name}", content)
        return
    replace_whole(Path(timeline.folder.path) / name, content)
