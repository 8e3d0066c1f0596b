"""DISTINCT as a node. Owns that floating columns are grouped as Spark groups them."""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Distinct, Named, Projection, Relation, columns
from sqlmesh_like.analyze.spark_types.one_zero import FLOATING, with_one_zero


def distinct_rows(relation: Relation, offset: int | None) -> Distinct:
    """The rows of a relation without duplicates, with 0.0 for each zero."""
    shown = columns(relation)
    if any(column.type in FLOATING for column in shown):
        items = [(c, with_one_zero(exp.column(c.name, quoted=True), c.type)) for c in shown]
        relation = Projection(relation, tuple(Named(c.name, value, c.type) for c, value in items))
    return Distinct(relation, offset)
