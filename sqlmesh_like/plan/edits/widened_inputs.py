"""A query over inputs whose columns have become wider, as one over what was stored of them before. Owns these types.

Proof idea: a schema change keeps values, so in the rows that a table has read, a wider column is a cast of what it was.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import (
    Named,
    Projection,
    Relation,
    Scan,
    children,
    scanned_columns,
    with_children,
)
from sqlmesh_like.delta.keys import column
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.names import Schema

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")


def is_widened(before: str | None, after: str | None) -> bool:
    """Whether a cast from one type to the other keeps each value and its text, of which row keys are made.

    >>> is_widened("int", "bigint"), is_widened("decimal(5,2)", "decimal(7,2)"), is_widened("decimal(5,2)", "double")
    (True, True, False)
    """
    if before in _INTEGERS and after in _INTEGERS:
        return _INTEGERS.index(before) < _INTEGERS.index(after)
    old, new = _DECIMAL.fullmatch(before or ""), _DECIMAL.fullmatch(after or "")
    return old is not None and new is not None and old[2] == new[2] and int(old[1]) < int(new[1])


def recorded_schema(recorded: Schema, now: Schema) -> Schema | None:
    """The columns of an input, of which some were narrower when they were recorded; None if they had other types."""
    types = {each.name: each.type for each in recorded}
    wide = {each.name: each.type for each in now}
    for name, type_ in types.items():
        if name not in wide or not (type_ == wide[name] or is_widened(type_, wide[name])):
            return None
    return tuple(replace(each, type=types.get(each.name, each.type)) for each in now)


def over_recorded_types(relation: Relation, before: Relation) -> Relation:
    """The relation over the inputs of the one before, whose narrower columns are cast; itself if there are none."""
    recorded = scanned_columns(before)
    narrower = {
        name: recorded[name]
        for name, schema in scanned_columns(relation).items()
        if name in recorded and recorded[name] != schema
    }
    return _cast(relation, narrower, {}) if narrower else relation


def _cast(relation: Relation, narrower: Mapping[str, Schema], done: dict[int, Relation]) -> Relation:
    if id(relation) not in done:
        if isinstance(relation, Scan) and relation.input_id in narrower:
            done[id(relation)] = _widen_scan(relation, narrower[relation.input_id])
        else:
            below = tuple(_cast(child, narrower, done) for child in children(relation))
            done[id(relation)] = with_children(relation, below)
    return done[id(relation)]


def _widen_scan(scan: Scan, recorded: Schema) -> Projection:
    types, items = {each.name: each.type for each in recorded}, list[Named]()
    for each in scan.schema:
        own: exp.Expr = column(each.name)
        is_cast = each.type is not None and types[each.name] != each.type
        items.append(Named(each.name, exp.cast(own, each.type, dialect=SPARK) if is_cast else own, each.type))  # type: ignore[arg-type]
    return Projection(Scan(scan.input_id, recorded), tuple(items))
