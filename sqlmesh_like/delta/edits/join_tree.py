"""Inner, left, semi and anti joins with filters and projections between them, as leaves in order. Owns that form.

It says what `delta.join_graph` does not: which leaves are joined by LEFT JOIN, and how a row key is made of theirs. A
condition on columns of the left side holds above a left join if and only if it holds below, so all conditions but those
of left joins, and all semi and anti joins, are conditions of all rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Filter, Join, JoinKind, Projection, Relation, Scan, columns
from sqlmesh_like.analyze.binding.expression_copies import replace_nodes
from sqlmesh_like.analyze.binding.joining import factored_conjuncts
from sqlmesh_like.delta.edits.changed_rows import select_columns
from sqlmesh_like.delta.join_graph import alias, leaves_of, substitute_columns
from sqlmesh_like.delta.keys import column
from sqlmesh_like.delta.rows import from_item, subquery

KeyTree = int | tuple["KeyTree", ...]
"""How a row key is made: that of a leaf, or the encoded list of several keys."""


@dataclass(frozen=True)
class Leaf:
    """A relation that is joined. `on`: the conditions of its join, which an inner one has as those of all rows."""

    relation: Relation
    kind: JoinKind = "inner"
    on: tuple[exp.Expr, ...] = ()

    @property
    def filters(self) -> bool:
        """Whether it decides which rows there are, and shows no column (`semi`, `anti`)."""
        return self.kind in ("semi", "anti")


@dataclass(frozen=True)
class JoinTree:
    """Joined leaves, by number, whose rows meet all `conditions`, with their `items` and how their `key` is made.

    Expressions are over the columns of leaves, qualified by its alias; those of `on` read the leaf and earlier ones.
    """

    leaves: Mapping[int, Leaf]
    conditions: tuple[exp.Expr, ...]
    items: tuple[tuple[str, exp.Expr], ...]
    key: KeyTree

    def renumber(self, numbers: Mapping[int, int]) -> JoinTree:
        """The tree with other numbers of leaves."""

        def of(values: Sequence[exp.Expr]) -> tuple[exp.Expr, ...]:
            return tuple(renumber_columns(value, numbers) for value in values)

        leaves = {numbers[number]: replace(leaf, on=of(leaf.on)) for number, leaf in self.leaves.items()}
        items = tuple((name, renumber_columns(value, numbers)) for name, value in self.items)
        return JoinTree(leaves, of(self.conditions), items, _renumber_key(self.key, numbers))


def join_tree(relation: Relation) -> JoinTree:
    """The tree of a relation; right and full joins, and nodes other than joins, filters and projections, are leaves."""
    leaves: dict[int, Leaf] = {}

    def leaf(node: Relation) -> int:
        leaves[len(leaves)] = Leaf(node)
        return len(leaves) - 1

    def leaf_columns(node: Relation, number: int) -> dict[str, exp.Expr]:
        return {c.name.lower(): column(c.name, alias(number)) for c in columns(node)}

    def visit(node: Relation) -> _Part:
        match node:
            case Filter():
                below = visit(node.child)
                return _Part(below.known, (*below.conditions, *_parts(node.condition, below.known)), below.keys)
            case Projection():
                below = visit(node.child)
                known = {item.name.lower(): substitute_columns(item.expression, below.known) for item in node.items}
                return _Part(known, below.conditions, below.keys)
            case Join(kind="inner"):
                left, right = visit(node.left), visit(node.right)
                known = {**left.known, **right.known}
                conditions = (*left.conditions, *right.conditions, *_parts(node.condition, known))
                return _Part(known, conditions, (*left.keys, *right.keys))
            case Join(kind="left" | "semi" | "anti"):
                left, number = visit(node.left), leaf(node.right)
                known = {**left.known, **leaf_columns(node.right, number)}
                leaves[number] = Leaf(node.right, node.kind, _parts(node.condition, known))
                if leaves[number].filters:
                    return _Part(left.known, left.conditions, (_key(left.keys),))
                return _Part(known, left.conditions, ((_key(left.keys), number),))
        number = leaf(node)
        return _Part(leaf_columns(node, number), (), (number,))

    made = visit(relation)
    items = tuple((c.name, made.known[c.name.lower()]) for c in columns(relation))
    return JoinTree(leaves, made.conditions, items, _key(made.keys))


@dataclass(frozen=True)
class _Part:
    """A relation as expressions over leaves: its columns, the conditions of its rows, the parts of its row key."""

    known: Mapping[str, exp.Expr]
    conditions: tuple[exp.Expr, ...]
    keys: tuple[KeyTree, ...]


def _key(parts: tuple[KeyTree, ...]) -> KeyTree:
    return parts[0] if len(parts) == 1 else parts


def _parts(condition: exp.Expr | None, known: Mapping[str, exp.Expr]) -> tuple[exp.Expr, ...]:
    return () if condition is None else tuple(substitute_columns(part, known) for part in factored_conjuncts(condition))


def renumber_columns(value: exp.Expr, numbers: Mapping[int, int]) -> exp.Expr:
    """An expression over leaves that have other numbers."""
    aliases = {alias(before): alias(after) for before, after in numbers.items()}

    def change(node: exp.Expr) -> exp.Expr:
        return column(node.name, aliases[node.table]) if isinstance(node, exp.Column) else node

    return replace_nodes(value, change)


def _renumber_key(key: KeyTree, numbers: Mapping[int, int]) -> KeyTree:
    return numbers[key] if isinstance(key, int) else tuple(_renumber_key(part, numbers) for part in key)


def leaves_in(key: KeyTree) -> frozenset[int]:
    """The leaves whose keys a key is made of."""
    return frozenset((key,)) if isinstance(key, int) else frozenset().union(*map(leaves_in, key))


def without_leaves(key: KeyTree, gone: Collection[int]) -> KeyTree:
    """How the key would be made without some leaves."""
    if isinstance(key, int):
        return key
    return _key(tuple(without_leaves(part, gone) for part in key if not leaves_in(part) <= set(gone)))


def joined_leaves(
    query: exp.Select, added: Mapping[int, Leaf], conditions: Sequence[exp.Expr], every: Sequence[exp.Expr]
) -> exp.Select:
    """The query joined with leaves, in their order, where `conditions` are true; `every`: all that is read of them.

    Its FROM has all other leaves that expressions read.
    """
    left, later = list(conditions), list(added)
    read = [*every, *(each for leaf in added.values() for each in leaf.on)]
    for number, leaf in added.items():
        later.remove(number)
        item = leaf_item(number, added, read)
        ready = [each for each in left if number in leaves_of(each) and leaves_of(each).isdisjoint(later)]
        if leaf.kind == "left":
            query = query.join(item, on=exp.and_(*[each.copy() for each in leaf.on or [exp.true()]]), join_type="left")
        elif ready:
            query = query.join(item, on=exp.and_(*[each.copy() for each in ready]), join_type="inner")
            left = [each for each in left if each not in ready]
        else:
            query = query.join(item, join_type="cross")
    return query.where(*left) if left else query


def leaf_item(number: int, leaves: Mapping[int, Leaf], read: Sequence[exp.Expr]) -> exp.Expr:
    """A leaf as FROM item, with the columns that expressions read."""
    relation = leaves[number].relation
    names = {c.name.lower() for each in read for c in each.find_all(exp.Column) if c.table == alias(number)}
    rows = from_item(relation) if isinstance(relation, Scan) else subquery(select_columns(relation, names))
    return exp.alias_(rows, alias(number), table=True, quoted=True)
