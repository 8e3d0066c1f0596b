"""When tables of a source were emptied. Owns the record; `merge_sql` says what a truncate does to rows.

A dead letter that is older than a truncate must not bring its row back when it is ingested later. The table never had
that row, so only this record shows that it was deleted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from sqlmesh_like.cdc.decode.decode import Truncate
from sqlmesh_like.cdc.sources.notes import read_notes
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.project.nodes import SourceTable

_FILE = "last.json"


def note_truncates(place: SourcePaths, table: SourceTable, truncates: Iterable[Truncate]) -> None:
    """Record the last truncate of each origin ('': the whole table). Called before the rows are deleted."""
    result = list(truncates)
    if not result:
        return
    known = truncates_of(place, table)
    # A truncate that is replayed as a dead letter may be older than the last one.
    fresh = {each.origin or "": max(each.position, known.get(each.origin or "", "")) for each in result}
    notes = folder(place.truncates(table))
    path = f"{notes.path}/{_FILE}"
    notes.fs.makedirs(notes.path, exist_ok=True)
    with notes.fs.open(f"{path}.new", "wb") as file:
        file.write(json.dumps({**known, **fresh}).encode())
    notes.fs.mv(f"{path}.new", path)


def truncates_of(place: SourcePaths, table: SourceTable) -> Mapping[str, str]:
    """The log position of the last truncate, by origin."""
    notes = folder(place.truncates(table))
    if not notes.exists(_FILE):
        return {}
    data = read_notes(notes, _FILE)
    return {str(origin): str(position) for origin, position in data.items()}
