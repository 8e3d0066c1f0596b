"""What a catalog was told of a table. Owns the note, and whether a commit would be news to the catalog.

A catalog knows a table's columns and partitions, not its rows: a commit that changes neither needs no call to it.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass

from sqlmesh_like.hudi.catalogs.catalog_settings import metastore_uri
from sqlmesh_like.hudi.services.timeline_files import write_file
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import TableName
from sqlmesh_like.project.nodes import Target

_NOTE = ".hoodie/.sml_registered"


@dataclass(frozen=True)
class Registration:
    """A catalog took the table `table` of a target as it is at `frontier`. `address`: of a Hive metastore."""

    catalog: str
    address: str
    table: str
    frontier: str


def note_registration(timeline: Timeline, target: Target, table: TableName) -> None:
    """Note that the target's catalog knows a table's columns and partitions. The caller holds the table's locks."""
    if timeline.frontier is not None:
        registration = Registration(target.catalog, metastore_uri(target), str(table), timeline.frontier)
        write_file(timeline.folder, _NOTE, json.dumps(asdict(registration)).encode())


def is_registered(timeline: Timeline, target: Target, table: TableName, partitions: Collection[str]) -> bool:
    """Whether the target's catalog knows the columns of a table, its partitions, and these (paths in the table).

    Where it is not known, it is not: the table may have been made anew, or written by others.
    """
    try:
        known = Registration(**json.loads(timeline.folder.read(_NOTE)))
    except (FileNotFoundError, ValueError, TypeError):
        return False
    then, now = known.frontier, timeline.frontier
    if known != Registration(target.catalog, metastore_uri(target), str(table), then) or now is None:
        return False
    if not timeline.holds(then) or timeline.schema_json(then) != timeline.schema_json(now):
        return False
    return {*_partitions(timeline, now), *partitions} <= _partitions(timeline, then)


def _partitions(timeline: Timeline, frontier: str) -> set[str]:
    return {partition for partition, _ in timeline.slices(frontier)}
