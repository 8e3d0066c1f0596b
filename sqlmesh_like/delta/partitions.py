"""Recompute of whole target partitions. Owns the rescan program: which partitions, and the query narrowed to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.lineage import split_columns
from sqlmesh_like.analyze.algebra.relation import Filter, Join, Relation, Scan, UnionAll, inputs, used_columns
from sqlmesh_like.delta.keys import column, key, weight
from sqlmesh_like.delta.program import Prune, RescanProgram
from sqlmesh_like.delta.program import relation as outside
from sqlmesh_like.delta.rows import rows

AFFECTED = "affected"


def rescan(source: Relation, partition_by: Sequence[str]) -> RescanProgram:
    """The rescan program of a relation that splits by all of `partition_by` (see `lineage.split_columns`)."""
    origins = split_columns(source)
    traced = {input_id: tuple(origins[name.lower()][input_id] for name in partition_by) for input_id in inputs(source)}
    used = used_columns(source)
    selects = [_touched(input_id, names, used[input_id]) for input_id, names in traced.items()]
    affected: exp.Query = selects[0]
    for select in selects[1:]:
        affected = exp.union(affected, select, distinct=True)
    values = partition_columns(len(partition_by))
    pairs = {input_id: tuple(zip(names, values, strict=True)) for input_id, names in traced.items()}
    narrowed = rows(_narrowed(source, traced))
    return RescanProgram(affected, narrowed, tuple(partition_by), Prune(AFFECTED, pairs))


def partition_columns(count: int) -> list[str]:
    return [f"_sml_p{position}" for position in range(count)]


def _touched(input_id: str, names: tuple[str, ...], used: tuple[str, ...]) -> exp.Select:
    """Distinct partition values of one input's change, before and after images, in columns that the query uses."""
    read = list(dict.fromkeys([*names, *used]))
    changed = exp.select(*[column(name) for name in read], key(), weight()).from_(outside("changes", input_id))
    total = exp.Sum(this=weight())
    netted = exp.select(*[column(name) for name in read]).from_(changed.subquery("c"))
    netted = netted.group_by(*[column(name) for name in read], key())
    netted = netted.having(exp.NEQ(this=total, expression=exp.Literal.number(0)))
    items = [
        exp.alias_(column(name), alias, quoted=True)
        for name, alias in zip(names, partition_columns(len(names)), strict=True)
    ]
    return exp.select(*items).distinct().from_(netted.subquery("t"))


def _narrowed(source: Relation, traced: Mapping[str, tuple[str, ...]]) -> Relation:
    """The relation with each input cut down to the affected partitions."""
    match source:
        case Scan():
            return Filter(source, _is_affected(traced[source.input_id]))
        case Join():
            return replace(source, left=_narrowed(source.left, traced), right=_narrowed(source.right, traced))
        case UnionAll():
            return replace(source, branches=tuple(_narrowed(branch, traced) for branch in source.branches))
    return replace(source, child=_narrowed(source.child, traced))


def _is_affected(names: tuple[str, ...]) -> exp.Expr:
    # The alias must be no column that a user can have: a bare name in the subquery is looked up here first.
    pairs = [
        exp.NullSafeEQ(this=column(alias, "_sml_affected"), expression=column(name))
        for name, alias in zip(names, partition_columns(len(names)), strict=True)
    ]
    matching = exp.select(exp.Literal.number(1)).from_(exp.alias_(exp.table_(AFFECTED), "_sml_affected", table=True))
    return exp.Exists(this=matching.where(exp.and_(*pairs)))
