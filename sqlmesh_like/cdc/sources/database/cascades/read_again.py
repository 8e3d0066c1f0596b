"""Rows that foreign keys may have changed, as they are now. Owns the events that they become, and where there are none.

The log goes on from the position at which these events are added, and repeats what changed until they were read: each
row ends with its last change. Hence, unlike in `comparison.repair`, a row that has changes in the log is added too.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from sqlmesh_like.cdc.sources.database.cascades.row_images import NotByKeyError, RowImages
from sqlmesh_like.cdc.sources.database.comparison.rows_by_key import (
    RowsByKey,
    find_absent,
    read_images,
    read_present,
    why_not_by_key,
)
from sqlmesh_like.cdc.sources.database.comparison.side import Key
from sqlmesh_like.cdc.sources.database.comparison.unread_log import changes_in, keys_of_change
from sqlmesh_like.cdc.sources.database.connector_settings import database_of
from sqlmesh_like.cdc.sources.database.spool import number_of
from sqlmesh_like.cdc.sources.source_paths import SourcePaths


@dataclass(frozen=True)
class ReadRows:
    """`lines`: of the events; `rows`, `deletes`: how many; `whole`: tables that are read as a whole, and why."""

    lines: tuple[bytes, ...]
    rows: int
    deletes: int
    whole: Mapping[str, str]


def read_again(place: SourcePaths, keys: Mapping[str, Collection[Key]], tables: Mapping[str, RowImages]) -> ReadRows:
    """Read rows by their keys, by table. No engine may run. Raises SmlError where the database cannot be read.

    All of them are read at one moment: were a row older than the one that it refers to, what a key did between would
    be found by neither.
    """
    whole, parts = dict[str, str](), dict[str, RowsByKey]()
    for name, own in keys.items():
        part = tables[name].part
        assert part.lake.table.ingest is not None
        if why := why_not_by_key(part.lake.table, part, len(own)):
            whole[name] = why
        elif own:
            parts[name] = RowsByKey(part, tuple(sorted(own, key=str)))
    if parts:
        find_absent(place, list(parts.values()))
    read_present(place, list(parts.values()))
    lines, rows, deletes = list[bytes](), 0, 0
    for name, part_rows in parts.items():
        wanted = frozenset(part_rows.keys)
        present = [(key, line) for key, line in part_rows.lines if key is None or key in wanted]
        gone = wanted - {key for key, _ in present if key is not None}
        try:
            deleted = list(_deletes(place, tables[name], part_rows, gone))
        except NotByKeyError as reason:
            whole[name] = str(reason)
            continue
        lines += [*(line for _, line in present), *deleted]
        rows, deletes = rows + len(present), deletes + len(deleted)
    return ReadRows(tuple(lines), rows, deletes, whole)


def _deletes(place: SourcePaths, images: RowImages, rows: RowsByKey, gone: Collection[Key]) -> Iterator[bytes]:
    """Events that delete these rows. Where the table has an order, they have that of the newest event."""
    ingest, database = rows.table.ingest, database_of(place.source).database
    assert ingest is not None
    newest = _newest_events(images, rows, gone) if ingest.order_by else {}
    if rows.part.lake.exists:
        read_images(rows, sorted(gone - newest.keys(), key=str))
    for key in sorted(gone, key=str):
        if key in newest:
            yield _as_delete(newest[key])
        elif rows.has_order(key):
            yield rows.delete(key, database)
        else:
            raise NotByKeyError("a row that is gone has no value in its `order_by` columns")


def _newest_events(images: RowImages, rows: RowsByKey, wanted: Collection[Key]) -> dict[Key, bytes]:
    """The last lines about these rows that the lake has not read."""
    newest: dict[Key, bytes] = {}
    for path in sorted((images.spool.folder / "log").glob("*.gz")):
        if number_of(path) in images.part.read:
            continue
        with gzip.open(path, "rb") as lines:
            for line in lines:
                for change in changes_in(line, images.part.origin):
                    newest |= {
                        key: line for key in keys_of_change(change, rows.key) if key in wanted and key is not None
                    }
    return newest


def _as_delete(line: bytes) -> bytes:
    """The event of a line as one that deletes its row: with the same schema, so that each value has its form."""
    value, tab, key = line.rstrip(b"\n").partition(b"\t")
    message = json.loads(value)
    change = message.get("payload", message)
    row = change["before"] if change.get("after") is None else change["after"]
    change |= {"op": "d", "before": row, "after": None, "ts_ms": time.time_ns() // 10**6}
    return json.dumps(message).encode() + tab + key + b"\n"
