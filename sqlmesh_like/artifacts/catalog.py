"""`catalog.json` in the shape of dbt's schema v1: actual columns and sizes of tables in the lake. Owns the shape.

Tables that do not exist yet are left out, and so are views, which the compiler inlines.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from pathlib import Path

from sqlmesh_like import __version__
from sqlmesh_like.artifacts.files import timestamp, write_json
from sqlmesh_like.invocation_id import INVOCATION_ID
from sqlmesh_like.names import NodeId, TableName
from sqlmesh_like.plan.table_facts import TableFacts
from sqlmesh_like.project.nodes import ColumnDoc

CATALOG_SCHEMA = "https://schemas.getdbt.com/dbt/catalog/v1.json"
_STATS = {
    "row_count": ("Rows", "Rows as reported by the commits; an estimate where older commits are archived"),
    "bytes": ("Size", "Bytes of all live files"),
    "file_count": ("File groups", "Live file groups"),
    "partition_count": ("Partitions", "Partitions with rows"),
    "last_modified": ("Last modified", "Completion of the newest commit, in UTC"),
    "frontier": ("Frontier", "The last data instant that a reader sees"),
}


def write_catalog(path: Path, content: Mapping[str, object], now: datetime.datetime | None = None) -> None:
    """Write the content that `catalog` returned. Raises MachineError where the file cannot be written."""
    metadata = {
        "dbt_schema_version": CATALOG_SCHEMA,
        "dbt_version": __version__,
        "generated_at": timestamp(now or datetime.datetime.now(datetime.UTC)),
        "invocation_id": INVOCATION_ID,
        "env": {},
    }
    write_json(path, {"metadata": metadata, **content})


def catalog(
    tables: Iterable[TableFacts],
    names: Mapping[str, TableName],
    docs: Mapping[str, Mapping[str, ColumnDoc]],
    descriptions: Mapping[str, str],
) -> dict[str, object]:
    """Return the content of catalog.json: existing tables by unique id, sources separate from models and seeds.

    The keys of `names`, `docs` and `descriptions` are unique ids.
    """
    facts_by_id = {facts.unique_id: facts for facts in tables}
    entries = {
        unique_id: _entry(facts, names[unique_id], docs.get(unique_id, {}), descriptions.get(unique_id))
        for unique_id, facts in sorted(facts_by_id.items())
        if facts.state.exists
    }
    errors = [f"{facts.unique_id}: {facts.problem}" for facts in facts_by_id.values() if facts.problem]
    return {
        "nodes": {i: entry for i, entry in entries.items() if NodeId.parse(i).kind != "source"},
        "sources": {i: entry for i, entry in entries.items() if NodeId.parse(i).kind == "source"},
        "errors": errors or None,
    }


def _entry(
    facts: TableFacts, name: TableName, docs: Mapping[str, ColumnDoc], description: str | None
) -> dict[str, object]:
    columns = {
        column.name: {
            "type": column.type or "",
            "index": number,
            "name": column.name,
            "comment": docs[column.name].description or None if column.name in docs else None,
        }
        for number, column in enumerate(facts.columns, 1)
    }
    kind = {"cow": "hudi copy_on_write", "mor": "hudi merge_on_read"}.get(facts.state.kind, facts.state.format)
    metadata = {
        "type": kind,
        "schema": name.schema,
        "name": name.identifier,
        "database": None,
        "comment": description or None,
        "owner": None,
    }
    return {"metadata": metadata, "columns": columns, "stats": _stats(facts), "unique_id": facts.unique_id}


def _stats(facts: TableFacts) -> Mapping[str, object]:
    volume, commits = facts.volume, facts.commits
    values: dict[str, object] = {}
    if facts.state.kind in ("cow", "mor"):
        values = {
            "row_count": volume.rows,
            "bytes": volume.bytes,
            "file_count": volume.files,
            "partition_count": volume.partitions,
            "last_modified": commits[-1].time if commits else None,
            "frontier": facts.state.frontier,
        }
    has_stats = {"id": "has_stats", "label": "Has Stats?", "value": bool(values), "include": False, "description": ""}
    return {"has_stats": has_stats} | {
        key: {"id": key, "label": _STATS[key][0], "value": value, "include": True, "description": _STATS[key][1]}
        for key, value in values.items()
    }
