"""Inner joins with the filters and projections between them as one flat graph. Owns flattening and its SQL.

A join tree has the order in which its author wrote the tables. A change may start at any of them, and the rows that it
matches follow from the equalities, which only the graph shows. Expressions are over columns of the leaves, qualified by
the leaf's alias (`_sml_t0`, `_sml_t1`, …).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Filter, Join, Projection, Relation, columns
from sqlmesh_like.analyze.binding.expression_copies import operand, replace_nodes
from sqlmesh_like.analyze.binding.joining import factored_conjuncts
from sqlmesh_like.analyze.expressions.clock import clock_calls
from sqlmesh_like.delta.keys import column, encode
from sqlmesh_like.names import KEY

_ALIAS = "_sml_t"
_LEAF = re.compile(rf"{_ALIAS}(\d+)")
_EQUALITY = exp.EQ | exp.NullSafeEQ


@dataclass(frozen=True)
class JoinEdge:
    """One equality between expressions over two different leaves."""

    leaves: tuple[int, int]
    expressions: tuple[exp.Expr, exp.Expr]
    is_null_safe: bool

    def towards(self, leaf: int) -> tuple[int, exp.Expr, exp.Expr] | None:
        """The other leaf, its expression and that of `leaf`; None if the edge does not end at `leaf`."""
        if leaf not in self.leaves:
            return None
        own = self.leaves.index(leaf)
        return self.leaves[1 - own], self.expressions[1 - own], self.expressions[own]


@dataclass(frozen=True)
class JoinGraph:
    """All combinations of the leaves' rows that satisfy all `predicates`, with their `items` and row `key`."""

    leaves: tuple[Relation, ...]
    predicates: tuple[exp.Expr, ...]
    items: tuple[tuple[str, exp.Expr], ...]
    key: exp.Expr

    @cached_property
    def edges(self) -> tuple[JoinEdge, ...]:
        return tuple(edge for predicate in self.predicates if (edge := _edge(predicate)) is not None)

    def neighbours(self, leaf: int) -> frozenset[int]:
        return frozenset(edges[0] for edge in self.edges if (edges := edge.towards(leaf)) is not None)

    def between(self, leaves: Sequence[int]) -> frozenset[int]:
        """These leaves and those on shortest paths that connect them."""
        entries = {leaves[0]}
        for leaf in leaves[1:]:
            entries |= self._way(leaf, entries)
        return frozenset(entries)

    def _way(self, start: int, goals: Collection[int]) -> set[int]:
        """Leaves on a shortest path to one of the goals, start included; only the start if there is no path."""
        before: dict[int, int | None] = {start: None}
        ahead = deque([start])
        while ahead:
            leaf = ahead.popleft()
            if leaf in goals:
                way = set[int]()
                at: int | None = leaf
                while at is not None:
                    way.add(at)
                    at = before[at]
                return way
            for beside in sorted(self.neighbours(leaf)):
                if beside not in before:
                    before[beside] = leaf
                    ahead.append(beside)
        return {start}

    def within(self, leaves: Collection[int]) -> tuple[exp.Expr, ...]:
        """The predicates over these leaves only."""
        return tuple(predicate for predicate in self.predicates if leaves_of(predicate) <= set(leaves))

    def contract(self, core: Collection[int]) -> JoinGraph:
        """The graph with some leaves merged into leaf 0: their joined rows, with columns named by `core_column`."""
        others = [leaf for leaf in range(len(self.leaves)) if leaf not in core]
        places = {alias(leaf): alias(number) for number, leaf in enumerate(others, 1)}

        def change(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column) or not _LEAF.fullmatch(node.table):
                return node
            if node.table in places:
                return column(node.name, places[node.table])
            return column(core_column(node), alias(0))

        left = [replace_nodes(p, change) for p in self.predicates if p not in self.within(core)]
        items = tuple((name, replace_nodes(value, change)) for name, value in self.items)
        leaves = (self.leaves[min(core)], *(self.leaves[leaf] for leaf in others))
        return JoinGraph(leaves, tuple(left), items, replace_nodes(self.key, change))

    def resolve_to_leaves(self, expression: exp.Expr) -> exp.Expr:
        """An expression over the graph's output as one over columns of its leaves."""
        return substitute_columns(expression, {name.lower(): value for name, value in self.items})

    def select(self, sources: Sequence[exp.Expr], *extra: exp.Expr) -> exp.Select:
        """The graph's rows over these FROM items, one per leaf: the items, `_sml_key` and `extra`."""
        items = [exp.alias_(value.copy(), name, quoted=True) for name, value in self.items]
        shown = [*items, exp.alias_(self.key.copy(), KEY, quoted=True), *extra]
        return join_sources(shown, dict(enumerate(sources)), self.predicates)


def join_sources(
    items: Sequence[exp.Expr], sources: Mapping[int, exp.Expr], predicates: Sequence[exp.Expr], start: int = 0
) -> exp.Select:
    """SELECT of these items over FROM items by leaf, joined from `start` along the equalities."""
    query = exp.select(*items, copy=False)
    needs = [(leaves_of(predicate), predicate) for predicate in predicates]
    done: set[int] = set()
    for leaf in _order(start, sources, predicates):
        source = exp.alias_(sources[leaf], alias(leaf), table=True, quoted=True, copy=False)
        ready = [p.copy() for needed, p in needs if len(needed) > 1 and leaf in needed and needed <= {*done, leaf}]
        if not done:
            query = query.from_(source, copy=False)
        elif ready:
            query = query.join(source, on=exp.and_(*ready, copy=False), join_type="inner", copy=False)
        else:
            query = query.join(source, join_type="cross", copy=False)
        done.add(leaf)
    alone = [predicate.copy() for needed, predicate in needs if len(needed) <= 1]
    return query.where(*alone, copy=False) if alone else query


def _order(start: int, leaves: Collection[int], predicates: Sequence[exp.Expr]) -> list[int]:
    """Leaves in an order in which each is bound to earlier ones by an equality, else by any predicate, if possible.

    Without an equality Spark compares each row of one side with each row of the other.
    """
    sides = [(leaves_of(p.this), leaves_of(p.expression)) for p in predicates if isinstance(p, _EQUALITY)]
    bound = [leaves_of(predicate) for predicate in predicates]
    order = [start]
    while len(order) < len(leaves):
        done = set(order)
        rest = [leaf for leaf in sorted(leaves) if leaf not in done]
        equal = [leaf for leaf in rest if any(_follows(leaf, done, pair) for pair in sides)]
        near = [leaf for leaf in rest if any(leaf in each and {leaf} < each <= {*done, leaf} for each in bound)]
        order.append([*equal, *near, *rest][0])
    return order


def _follows(leaf: int, done: set[int], sides: tuple[frozenset[int], frozenset[int]]) -> bool:
    """Whether one side of an equality reads only this leaf and the other only leaves that are already joined."""
    return any(own == {leaf} and other and other <= done for own, other in (sides, sides[::-1]))


def is_flattened(node: Relation) -> bool:
    """Whether `flatten` makes a node part of a graph, instead of a leaf."""
    return isinstance(node, Filter | Projection) or (isinstance(node, Join) and node.kind == "inner")


def flatten(source: Relation, *, splits_clock: bool = False) -> JoinGraph:
    """The graph of a relation; a node that is not an inner join, filter or projection is a leaf.

    With `splits_clock`, filters that read the clock are leaves too.
    """
    leaves: list[Relation] = []

    def visit(node: Relation) -> _Flat:
        match node:
            case Filter() if not clock_calls(node.condition):
                below = visit(node.child)
                return replace(below, predicates=(*below.predicates, *_parts(node.condition, below.known)))
            case Filter() if not splits_clock:
                below = visit(node.child)
                predicates = (*below.predicates, *_parts(node.condition, below.known))
                return _Flat(below.known, predicates, (_key(below.keys),))  # the same key as if it were a leaf
            case Projection():
                below = visit(node.child)
                return replace(
                    below, known={i.name.lower(): substitute_columns(i.expression, below.known) for i in node.items}
                )
            case Join(kind="inner"):
                left, right = visit(node.left), visit(node.right)
                known = {**left.known, **right.known}
                own = _parts(node.condition, known) if node.condition is not None else ()
                return _Flat(known, (*left.predicates, *right.predicates, *own), (*left.keys, *right.keys))
        leaves.append(node)
        name = alias(len(leaves) - 1)
        return _Flat({c.name.lower(): column(c.name, name) for c in columns(node)}, (), (column(KEY, name),))

    flat = visit(source)
    items = tuple((c.name, flat.known[c.name.lower()]) for c in columns(source))
    return JoinGraph(tuple(leaves), flat.predicates, items, _key(flat.keys))


@dataclass(frozen=True)
class _Flat:
    """A relation as expressions over leaves: its columns, the predicates of its rows, the parts of its row key."""

    known: Mapping[str, exp.Expr]
    predicates: tuple[exp.Expr, ...]
    keys: tuple[exp.Expr, ...]


def _key(parts: Sequence[exp.Expr]) -> exp.Expr:
    return parts[0] if len(parts) == 1 else encode(parts)


def alias(leaf: int) -> str:
    return f"{_ALIAS}{leaf}"


def core_column(reference: exp.Column) -> str:
    """The name of a leaf's column in the joined rows of a core."""
    return f"{reference.table}_{reference.name}"


def leaves_of(expression: exp.Expr) -> frozenset[int]:
    """The leaves whose columns an expression reads."""
    matches = (_LEAF.fullmatch(reference.table) for reference in expression.find_all(exp.Column))
    return frozenset(int(match[1]) for match in matches if match)


def substitute_columns(expression: exp.Expr, known: Mapping[str, exp.Expr]) -> exp.Expr:
    """A copy of the expression with each unqualified column in `known` replaced by its expression there."""

    def change(node: exp.Expr) -> exp.Expr:
        is_own = isinstance(node, exp.Column) and not node.table and node.name.lower() in known
        return operand(known[node.name.lower()]) if is_own else node

    return replace_nodes(expression, change)


def unqualify_columns(expression: exp.Expr) -> exp.Expr:
    """An expression over one leaf as an expression over the leaf's relation."""

    def change(node: exp.Expr) -> exp.Expr:
        is_own = isinstance(node, exp.Column) and _LEAF.fullmatch(node.table)
        return column(node.name) if is_own else node

    return replace_nodes(expression, change)


def _parts(condition: exp.Expr, known: Mapping[str, exp.Expr]) -> tuple[exp.Expr, ...]:
    return tuple(substitute_columns(part, known) for part in factored_conjuncts(condition))


def _edge(predicate: exp.Expr) -> JoinEdge | None:
    if not isinstance(predicate, _EQUALITY):
        return None
    sides = (leaves_of(predicate.this), leaves_of(predicate.expression))
    if any(len(side) != 1 for side in sides) or sides[0] == sides[1]:
        return None
    first, second = (next(iter(side)) for side in sides)
    return JoinEdge((first, second), (predicate.this, predicate.expression), isinstance(predicate, exp.NullSafeEQ))
