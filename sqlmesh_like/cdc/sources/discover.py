"""Undeclared tables, ingested under `discover: true`. Owns their names, their keys and the record of both.

A table is recorded before its first row is written, so that its name never changes; a later declaration takes
precedence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sqlmesh_like.cdc.schema.limits import MAX_NAME
from sqlmesh_like.cdc.sources.notes import read_notes
from sqlmesh_like.cdc.sources.route import route
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import NodeId, TableName, shorten_name, storable_name
from sqlmesh_like.project.nodes import IngestTable, SourceTable

SourceName = tuple[str | None, str | None, str]
"""Database, schema and name of a table at its source."""


def with_discovered(place: SourcePaths) -> SourcePaths:
    """Add the tables discovered so far to the source, except those that were declared since. Reads their record."""
    source = place.source
    if source.ingest is None or not source.ingest.discover:
        return place
    declared = replace(source, tables=tuple(table for table in source.tables if not is_discovered(table)))
    entries = [(name, entry) for name, entry in _read_notes(place).items() if route(declared, *_origin(entry)) is None]
    tables = (_table(place, name, entry) for name, entry in entries)
    return SourcePaths(place.target, replace(declared, tables=(*declared.tables, *tables)))


def discover(place: SourcePaths, keys: Mapping[SourceName, Sequence[str]]) -> SourcePaths:
    """Add tables for these source tables, with the key columns that their events state; record their final names."""
    fresh = {source: key for source, key in keys.items() if route(place.source, *source) is None}
    if not fresh:
        return place
    known = dict(_read_notes(place))
    for source, key in sorted(fresh.items(), key=repr):
        name = _name(place, source, known)
        known[name] = {"origin": list(source), "key": [storable_name(column) for column in key]}
    notes = folder(place.discovered)
    path = f"{notes.path}/tables.json"
    notes.fs.makedirs(notes.path, exist_ok=True)
    with notes.fs.open(f"{path}.new", "wb") as file:
        file.write(json.dumps(known, indent=1).encode())
    notes.fs.mv(f"{path}.new", path)
    return with_discovered(place)


def is_discovered(table: SourceTable) -> bool:
    """Whether the table was discovered, not declared."""
    return bool(table.meta.get("discovered"))


def _table(place: SourcePaths, name: str, entry: Mapping[str, object]) -> SourceTable:
    source, (database, schema, table) = place.source, _origin(entry)
    key = entry["key"]
    assert isinstance(key, list)
    assert source.ingest is not None
    ingest = IngestTable(
        database,
        f"{schema}.{table}" if schema else table,
        tuple(map(str, key)),
        zero_dates=source.ingest.zero_dates,
        time_zone=source.ingest.time_zone,
        updates="partial" if source.ingest.format == "ogg" else "full",
    )
    return SourceTable(
        unique_id=NodeId.parse(f"{source.name}.{name}"),
        source_name=source.name,
        name=name,
        table=TableName(source.schema, name),
        location=None,
        format="hudi",
        ingest=ingest,
        columns=(),
        description="",
        tags=(),
        meta={"discovered": True},
        declared_at=source.declared_at,
    )


def _origin(entry: Mapping[str, object]) -> SourceName:
    origin = entry["origin"]
    assert isinstance(origin, list)
    database, schema, table = origin
    return database, schema, str(table)


def _name(place: SourcePaths, source: SourceName, known: Iterable[str]) -> str:
    """A name that no table of the source or the lake has yet."""
    taken = {*known, *(table.table.identifier for table in place.source.tables), place.dead_letters.identifier}
    taken = {name.lower() for name in taken}  # some file systems and all catalogs ignore case
    for name in _candidates(source):
        uri = f"{place.target.warehouse}/{place.source.schema}/{name}"
        if name.lower() not in taken and not Timeline(uri).exists:
            return name
    raise AssertionError("numbers never end")


def _candidates(source: SourceName) -> Iterator[str]:
    """
    >>> from itertools import islice
    >>> list(islice(_candidates(("db", "public", "t$")), 4))
    ['t_', 'public_t_', 'db_public_t_', 'db_public_t__2']
    """
    database, schema, table = (
        "" if part is None else shorten_name(re.sub(r"\W", "_", part), MAX_NAME) for part in source
    )
    names = [
        table,
        f"{schema}_{table}" if schema else f"{database}_{table}",
        "_".join(filter(None, (database, schema, table))),
    ]
    yield from dict.fromkeys(names)
    number = 2
    while True:
        yield f"{names[-1]}_{number}"
        number += 1


def _read_notes(place: SourcePaths) -> Mapping[str, Mapping[str, object]]:
    notes = folder(place.discovered)
    data = read_notes(notes, "tables.json") if notes.exists("tables.json") else {}
    assert isinstance(data, dict)
    return data
