"""All inputs of a site, as one value. Owns what is collected for it; `content` decides what is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlmesh_like.artifacts.json_objects import mapping_of
from sqlmesh_like.docs.columns import LineageEdge
from sqlmesh_like.docs.plans import DocumentedModel
from sqlmesh_like.errors import SqlError
from sqlmesh_like.names import Schema
from sqlmesh_like.plan.graph import Graph
from sqlmesh_like.plan.table_facts import TableFacts

Json = Mapping[str, object]


@dataclass(frozen=True)
class SiteData:
    """The inputs of a site. Without a lake `tables` is empty; `results` and `freshness` are artifacts, if any.

    `columns` are those that the compiler knows, by unique id.
    """

    manifest: Json
    project: str
    target: str
    now: datetime
    graph: Graph
    models: Mapping[str, DocumentedModel] = field(default_factory=dict)
    tables: Mapping[str, TableFacts] = field(default_factory=dict)
    columns: Mapping[str, Schema] = field(default_factory=dict)
    edges: Iterable[LineageEdge] = ()
    results: Json | None = None
    freshness: Json | None = None
    calls: Sequence[Json] = ()
    """Calls of this target, oldest first, and the problems of its nodes, both as in `artifacts.run_history`."""
    problems: Json = field(default_factory=dict)
    errors: Mapping[str, SqlError] = field(default_factory=dict)
    """Errors of models that cannot be compiled, by unique id."""


def artifact_rows(artifact: Json | None) -> list[Json]:
    """Return the `results` of an artifact, empty where there is none."""
    rows = (artifact or {}).get("results")
    return [mapping_of(row) for row in rows] if isinstance(rows, list) else []
