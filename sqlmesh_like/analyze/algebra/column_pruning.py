"""A relation without its unused columns. Owns this one rewrite of the algebra; rows and row keys do not change.

Source: Spark's `ColumnPruning`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import (
    Aggregate,
    Distinct,
    Explode,
    Filter,
    Join,
    Named,
    OneRow,
    Projection,
    Relation,
    ScalarValue,
    Scan,
    TopK,
    UnionAll,
    Windowed,
    children,
    columns,
    expressions,
)


def prune_columns(relation: Relation) -> Relation:
    """The relation with scans and projections reduced to the columns that are read; shared nodes stay shared."""
    order = _parents_first(relation)
    needed: dict[int, set[str]] = defaultdict(set)
    needed[id(relation)] = _all(relation)
    for node in order:
        for child, names in _reads(node, needed[id(node)]):
            needed[id(child)] |= names
    made: dict[int, Relation] = {}
    for node in reversed(order):
        made[id(node)] = _over(_prune_node(node, needed[id(node)]), made)
    return made[id(relation)]


def _parents_first(relation: Relation) -> list[Relation]:
    """Every node once, each before its children."""
    relations: list[Relation] = []
    seen = set[int]()

    def visit(node: Relation) -> None:
        if id(node) in seen:
            return
        seen.add(id(node))
        for child in children(node):
            visit(child)
        relations.append(node)

    visit(relation)
    return relations[::-1]


def _reads(node: Relation, needed: set[str]) -> list[tuple[Relation, set[str]]]:
    """The columns that a node reads from each child, given those of its own that are `needed`."""
    match node:
        case OneRow() | Scan():
            return []
        case Filter():
            return [(node.child, needed | _names([node.condition]))]
        case Projection():
            return [(node.child, _names([i.expression for i in node.items if i.name.lower() in needed]))]
        case Explode():
            return [(node.child, (needed & _all(node.child)) | _names([node.array]))]
        case Join():
            read = needed | (_names([node.condition]) if node.condition is not None else set())
            return [(side, read & _all(side)) for side in (node.left, node.right)]
        case UnionAll():
            return [(branch, {name.lower() for name in _read_of(branch, node, needed)}) for branch in node.branches]
        case Distinct() | TopK() | ScalarValue():
            return [(node.child, _all(node.child))]
        case Aggregate():
            own = [key.expression for key in node.keys] + [call.call for call in node.calls]
            return [(node.child, _names(own))]
        case Windowed():
            parts = [part for partition in node.partitions for part in partition]
            return [(node.child, _names([*expressions(node), *parts]))]


def _prune_node(node: Relation, needed: set[str]) -> Relation:
    match node:
        case Scan():
            return replace(node, schema=tuple(c for c in node.schema if c.name.lower() in needed))
        case Projection():
            return replace(node, items=tuple(item for item in node.items if item.name.lower() in needed))
        case UnionAll():
            branches = tuple(_select_columns(branch, _read_of(branch, node, needed)) for branch in node.branches)
            return UnionAll(branches, tuple(column for column in node.schema if column.name.lower() in needed))
    return node


def _read_of(branch: Relation, union: UnionAll, needed: set[str]) -> list[str]:
    """The columns of a branch that stand where the needed ones of the union do."""
    pairs = zip(columns(branch), union.schema, strict=True)
    return [own.name for own, merged in pairs if merged.name.lower() in needed]


def _select_columns(relation: Relation, names: list[str]) -> Relation:
    """The relation with these of its columns only."""
    shown = [column for column in columns(relation) if column.name in names]
    if len(shown) == len(columns(relation)):
        return relation
    return Projection(relation, tuple(Named(c.name, exp.column(c.name, quoted=True), c.type) for c in shown))


def _over(node: Relation, made: dict[int, Relation]) -> Relation:
    """The node with its children replaced by their pruned versions."""
    match node:
        case OneRow() | Scan():
            return node
        case UnionAll():
            # A branch of which not all columns are read is below a projection to those.
            return replace(node, branches=tuple(made.get(id(b)) or _over(b, made) for b in node.branches))
        case Join():
            return replace(node, left=made[id(node.left)], right=made[id(node.right)])
    return replace(node, child=made[id(node.child)])


def _all(relation: Relation) -> set[str]:
    return {column.name.lower() for column in columns(relation)}


def _names(nodes: list[exp.Expr]) -> set[str]:
    return {column.name.lower() for e in nodes for column in e.find_all(exp.Column)}
