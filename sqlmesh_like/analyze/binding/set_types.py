"""The types of a set operation's columns. Owns converting both sides to the one type that Spark gives each column.

Source: Spark 3.5 `WidenSetOperationTypes`, which adds the same casts; of three branches the first two are converted
first. A column of NULLs only has the type of the other side.
"""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import (
    Aggregate,
    Distinct,
    Filter,
    Named,
    Projection,
    Relation,
    UnionAll,
    Windowed,
    columns,
)
from sqlmesh_like.analyze.spark_types.coercion import VOID, is_interval, is_nested, wider
from sqlmesh_like.names import Column, Schema


def common_schema(left: Relation, right: Relation) -> tuple[Schema, str | None]:
    """The columns of a set operation, and the name of the first whose type is not proven; names are the left side's."""
    schema: list[Column] = []
    for position, column in enumerate(columns(left)):
        type_ = _common_type(_type(left, position), _type(right, position))
        if type_ is None:
            return tuple(schema), column.name
        schema.append(Column(column.name, type_))
    return tuple(schema), None


def cast_to_schema(side: Relation, schema: Schema) -> Relation:
    """One side with the types of a set operation; itself if it has them."""
    own = columns(side)
    if all(mine.type == wanted.type for mine, wanted in zip(own, schema, strict=True)):
        return side
    items = []
    for mine, wanted in zip(own, schema, strict=True):
        value: exp.Expr = exp.column(mine.name, quoted=True)
        if mine.type != wanted.type:
            assert wanted.type is not None
            value = exp.cast(exp.Null() if mine.type is None else value, wanted.type, dialect="spark")
        items.append(Named(mine.name, value, wanted.type))
    return Projection(side, tuple(items))


def _common_type(left: str | None, right: str | None) -> str | None:
    if left == right:
        return None if left == VOID else left
    if left is None or right is None:
        return None
    type_ = wider(left, right)
    return None if type_ is None or is_interval(type_) or (is_nested(type_) and VOID not in (left, right)) else type_


def _type(relation: Relation, position: int) -> str | None:
    """A column's type; `void` for one that is NULL as it is written."""
    return columns(relation)[position].type or (VOID if _is_null(relation, position) else None)


def _is_null(relation: Relation, position: int) -> bool:
    match relation:
        case Projection() | Windowed() | Aggregate():
            expression = relation.items[position].expression.unnest()
            if not isinstance(expression, exp.Column) or isinstance(relation, Aggregate):
                return isinstance(expression, exp.Null)
            names = [column.name.lower() for column in columns(relation.child)]
            return expression.name.lower() in names and _is_null(relation.child, names.index(expression.name.lower()))
        case Filter() | Distinct():
            return _is_null(relation.child, position)
        case UnionAll():
            return all(_is_null(branch, position) for branch in relation.branches)
    return False
