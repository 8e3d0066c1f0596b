"""Recompute of whole target partitions. Owns the rescan program: which partitions, and the query narrowed to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.lineage import split_columns
from sqlmesh_like.analyze.algebra.relation import (
    Filter,
    Join,
    OneRow,
    Relation,
    Scan,
    UnionAll,
    inputs,
    scanned_columns,
    used_columns,
)
from sqlmesh_like.analyze.algebra.zero_signs import tells_zeros_apart
from sqlmesh_like.delta.affected_keys import affected_keys, key_columns
from sqlmesh_like.delta.keys import column
from sqlmesh_like.delta.program import Prune, RescanProgram
from sqlmesh_like.delta.program import relation as outside
from sqlmesh_like.delta.rows import net, rows

AFFECTED = "affected"


def rescan(source: Relation, partition_by: Sequence[str]) -> RescanProgram:
    """The rescan program of a relation that splits by all of `partition_by` (see `lineage.split_columns`)."""
    origins = split_columns(source)
    traced = {input_id: tuple(origins[name.lower()][input_id] for name in partition_by) for input_id in inputs(source)}
    used, schemas = used_columns(source), scanned_columns(source)
    touched: list[tuple[list[exp.Expr], exp.Expr]] = []
    for input_id, names in traced.items():
        wanted = {name.lower() for name in (*names, *used[input_id])}  # the columns that the query uses
        read = [each for each in schemas[input_id] if each.name.lower() in wanted]
        netted = net(outside("changes", input_id), read, has_zero_signs=tells_zeros_apart(source)).subquery("t")
        touched.append(([column(name) for name in names], netted))
    values = key_columns(len(partition_by))
    pairs = {input_id: tuple(zip(names, values, strict=True)) for input_id, names in traced.items()}
    narrowed = rows(_restrict_inputs(source, traced))
    return RescanProgram(affected_keys(touched), narrowed, tuple(partition_by), Prune(AFFECTED, pairs))


def _restrict_inputs(source: Relation, traced: Mapping[str, tuple[str, ...]]) -> Relation:
    """The relation with each input restricted to the affected partitions."""
    match source:
        case OneRow():
            return source
        case Scan():
            return Filter(source, _is_affected(traced[source.input_id]))
        case Join():
            return replace(
                source, left=_restrict_inputs(source.left, traced), right=_restrict_inputs(source.right, traced)
            )
        case UnionAll():
            return replace(source, branches=tuple(_restrict_inputs(branch, traced) for branch in source.branches))
    return replace(source, child=_restrict_inputs(source.child, traced))


def _is_affected(names: tuple[str, ...]) -> exp.Expr:
    # A reserved alias: a bare name in the subquery is looked up here first and must not match it.
    pairs = [
        exp.NullSafeEQ(this=column(alias, "_sml_affected"), expression=column(name))
        for name, alias in zip(names, key_columns(len(names)), strict=True)
    ]
    matching = exp.select(exp.Literal.number(1)).from_(exp.alias_(exp.table_(AFFECTED), "_sml_affected", table=True))
    return exp.Exists(this=matching.where(exp.and_(*pairs)))
