"""Tables that failed in a batch and have to catch up. Owns the record of what each still has to ingest, in log order.

The record is written before the batch counts as done, so that no crash can lose it: while a table is behind, every
batch is added to its record instead of being written to the table, because a later event must not overtake an earlier
one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from sqlmesh_like.cdc.sources.batch_marker import BatchMarker
from sqlmesh_like.cdc.sources.notes import read_notes
from sqlmesh_like.cdc.sources.offset_range import offset_range_from
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.project.nodes import SourceTable


def tables_behind(place: SourcePaths) -> Mapping[str, tuple[BatchMarker, ...]]:
    """The batches that each table that is behind still has to ingest, oldest first, by the table's name."""
    notes = folder(place.behind)
    names = {name.removesuffix(".json") for name in notes.names() if name.endswith(".json")}
    return {table.name: _read_queue(place, table) for table in place.source.tables if table.name in names}


def note(place: SourcePaths, table: SourceTable, pending: Sequence[BatchMarker]) -> None:
    """Record all batches that a table still has to ingest; an empty list removes the record: it has caught up."""
    notes = folder(place.behind)
    path = f"{notes.path}/{table.name}.json"
    if not pending:
        if notes.exists(f"{table.name}.json"):
            notes.fs.rm(path)
        return
    entries = [{"query": m.query, "batch": m.batch, "extent": json.dumps(m.extent.to_json())} for m in pending]
    notes.fs.makedirs(notes.path, exist_ok=True)
    # Write and rename: a partly written record must never be read.
    with notes.fs.open(f"{path}.new", "wb") as file:
        file.write(json.dumps(entries).encode())
    notes.fs.mv(f"{path}.new", path)


def _read_queue(place: SourcePaths, table: SourceTable) -> tuple[BatchMarker, ...]:
    data = read_notes(folder(place.behind), f"{table.name}.json")
    return tuple(BatchMarker(entry["query"], entry["batch"], offset_range_from(entry["extent"])) for entry in data)
