"""Column lineage of a whole project as plain values: one edge from a column to a column that is computed from it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmesh_like.analyze.algebra.column_lineage import ColumnLineage, ColumnOrigin, InfluenceRole
from sqlmesh_like.names import Column, Schema
from sqlmesh_like.plan.lineage import Lineage
from sqlmesh_like.render.rendered import RenderedProject

LineageEdge = tuple[str, str, str, str, str]
"""Input's unique id and column, reader's unique id and column (`*`: all of them), and how the first contributes to the
second: copied, computed, aggregated; filters, joins or groups where it only determines the reader's rows."""


def column_edges(rendered: RenderedProject, lineage: Lineage) -> tuple[list[LineageEdge], dict[str, Schema]]:
    """Return all edges, and each model's columns with the types that the compiler knows. Raises SqlError."""
    edges: list[LineageEdge] = []
    columns: dict[str, Schema] = {}
    for model in rendered.models:
        traced = lineage.direct(model) or ()
        columns[model.unique_id] = tuple(Column(column.name, column.type) for column in traced)
        edges += [
            (origin.input_id, origin.column, model.unique_id, column.name, how)
            for column in traced
            for origin, how in column.origins.items()
        ]
        edges += _deciding_edges(model.unique_id, traced)
    return edges, columns


def _deciding_edges(unique_id: str, columns: Sequence[ColumnLineage]) -> list[LineageEdge]:
    """Return edges of columns that determine rows, with one edge to `*` where they do so for all columns."""
    readers: dict[tuple[ColumnOrigin, InfluenceRole], list[str]] = {}
    for column in columns:
        for origin, roles in column.influences.items():
            for role in roles:
                readers.setdefault((origin, role), []).append(column.name)
    return [
        (origin.input_id, origin.column, unique_id, name, role)
        for (origin, role), names in readers.items()
        for name in (["*"] if len(names) == len(columns) else names)
    ]
