"""The columns by which rows of a table are sampled, and those that are compared at a tolerance. Owns which.

Engines hash the former, and compare the rows of some hashes.

A sample is sound for any columns: a row belongs to it by its own values, in the table and in the recompute alike, so
rows that are wrong, missing or superfluous are found with the same probability. The choice decides the cost: a
condition on the columns that rows are computed by, such as those of GROUP BY, is applied before anything is computed.
"""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.analyze.algebra.column_lineage import trace
from sqlmesh_like.analyze.algebra.lineage import window_keys
from sqlmesh_like.analyze.algebra.relation import (
    Aggregate,
    Distinct,
    Explode,
    Filter,
    Join,
    Projection,
    Relation,
    Windowed,
    columns,
)
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.delta.affected_keys import key_columns, visible_keys
from sqlmesh_like.names import Schema

_HASHED = ("tinyint", "smallint", "int", "bigint", "boolean", "string", "date", "timestamp")


def sample_columns(compiled: CompiledModel, shown: Schema) -> tuple[str, ...]:
    """Of the visible columns of a table, those by which its rows are sampled: its groups, its declared key, or all.

    None of them is a floating-point number, whose last digits may differ. Empty if there are no others.
    """
    hashed = {c.name.lower(): c.name for c in shown if c.type in _HASHED or (c.type or "").startswith("decimal")}
    relation = compiled.facts.relation
    groups = group_columns(relation) if relation is not None else ()
    for names in (groups, compiled.model.config.unique_key):
        if usable := tuple(hashed[name.lower()] for name in names if name.lower() in hashed):
            return usable
    return tuple(hashed.values())


def inexact_columns(compiled: CompiledModel, shown: Schema) -> tuple[str, ...]:
    """Of the visible columns, the floating-point numbers whose last digits may differ: all but copies of inputs."""
    relation = compiled.facts.relation
    traced = trace(relation) if relation is not None else ()
    copied = {c.name.lower() for c in traced if c.origins and set(c.origins.values()) == {"copied"}}
    return tuple(c.name for c in shown if c.type in ("double", "float") and c.name.lower() not in copied)


def group_columns(relation: Relation) -> tuple[str, ...]:
    """Columns of a relation such that rows with equal values in them are computed together, from no other rows.

    Empty if there are none or they are not known.
    """
    match relation:
        case Aggregate():
            return tuple(name for name, _ in visible_keys(relation, key_columns(len(relation.keys))))
        case Distinct():
            return tuple(column.name for column in columns(relation))
        case Windowed():
            keys = {repr(key) for key in window_keys(relation)}
            return tuple(item.name for item in relation.items if repr(item.expression) in keys)
        case Filter(child=child) | Explode(child=child) | Join(kind="semi" | "anti", left=child):
            return group_columns(child)
        case Projection():
            below = set(group_columns(relation.child))
            copied = [i for i in relation.items if isinstance(i.expression, exp.Column) and i.expression.name in below]
            return tuple(item.name for item in copied)
    return ()
