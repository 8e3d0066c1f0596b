"""What of a declaration a table was made with, for good. Owns refusing another: its rows would be found no more.

Record keys are hashes of the primary key's values, and rows are found by key and partition: a table that is written
with another key, another way to spell it, or another partition would get a second copy of every row that changes.
"""

from __future__ import annotations

import json

from sqlmesh_like.errors import IngestError
from sqlmesh_like.ingest.layout import Layout

MADE = "made"
_SPELLING = 2
"""Counts how `Layout.key` has spelt a key so far."""


def made(layout: Layout) -> str:
    """The record of it in the metadata of every commit."""
    ingest, by = layout.ingest, layout.ingest.partition_by
    partition = None if by is None else [by.column, by.format, by.field]
    found = {"primary_key": list(ingest.primary_key), "partition_by": partition, "order_by": list(ingest.order_by)}
    return json.dumps({**found, "spelling": _SPELLING}, sort_keys=True)


def check_made(layout: Layout, record: str | None) -> None:
    """Raises IngestError where a table of ours was made otherwise."""
    before, now = json.loads(record or "{}"), json.loads(made(layout))
    changed = [name for name in now if before.get(name) != now[name]]
    if not changed:
        return
    name = layout.table.table
    what = f"{changed[0]} of {name} was {before.get(changed[0])} when the table was made, and is {now[changed[0]]} now"
    if "spelling" in changed:
        what = f"{name} was written by an earlier version, which spelt its keys in another way"
    raise IngestError(
        what,
        location=layout.table.declared_at,
        hint="declare it as it was, or move the table's folder away and run: sml ingest --from earliest",
    )
