"""Which columns of an edited query have the values of a column of the query before, row by row. Owns the comparison.

It holds only where both have the same rows, with the same row keys. Nodes are compared from the inputs up: a node over
children that have the same rows has the same rows too if its conditions, keys and order read the same values; a column
is the same if its expression reads the same values. Proof idea: a row of a node, and its key, is a function of the rows
below and of these expressions, so equal ones give equal rows; other columns are added beside them or left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import (
    Aggregate,
    Distinct,
    Explode,
    Join,
    NodeNumbers,
    Relation,
    ScalarValue,
    Scan,
    TopK,
    UnionAll,
    Windowed,
    children,
    columns,
)
from sqlmesh_like.analyze.binding.expression_copies import replace_nodes
from sqlmesh_like.delta.edits.implied_conditions import split_conditions
from sqlmesh_like.delta.join_graph import JoinGraph, alias, flatten, is_flattened
from sqlmesh_like.delta.keys import column

CALL = "_sml_call"
"""The function around a call of an aggregate: what is inside is of the rows of a group."""
Names = Mapping[str, str]
"""By the lower-case names of columns: the first column of the old relation, in lower case, that has the same values."""


@dataclass(frozen=True)
class Same:
    """Which columns of two relations have the same values: those that have one name here."""

    before: Names
    after: Names


class OtherRowsError(Exception):
    """Raised where two relations are not known to have the same rows and keys."""


@dataclass(frozen=True)
class Values:
    """The columns of a relation by name, as expressions over what they are compared by; equal ones are the same."""

    before: Sequence[tuple[str, exp.Expr]]
    after: Sequence[tuple[str, exp.Expr]]

    @property
    def same(self) -> Same:
        known = {value: name.lower() for name, value in reversed(self.before)}
        names = [
            {name.lower(): known[value] for name, value in side if value in known} for side in (self.before, self.after)
        ]
        return Same(*names)


@dataclass
class Comparison:
    """Compares relations of two queries; source positions must have been removed (`relocated`)."""

    _numbers: NodeNumbers = field(default_factory=NodeNumbers)
    _done: dict[tuple[int, int], Same] = field(default_factory=dict)

    def same(self, before: Relation, after: Relation) -> Same:
        """The columns of two relations that have the same rows. Raises OtherRowsError."""
        pair = (self._numbers.of(before), self._numbers.of(after))
        if pair not in self._done:
            self._done[pair] = self.values(before, after).same
        return self._done[pair]

    def values(self, before: Relation, after: Relation) -> Values:
        """The columns of two relations that have the same rows, to be compared. Raises OtherRowsError."""
        if is_flattened(before) or is_flattened(after):
            return self._block(flatten(before), flatten(after))
        match before, after:
            case Scan(), Scan() if before.input_id == after.input_id:
                return Values(
                    *[[(c.name, column(f"{c.name.lower()}:{c.type}")) for c in s.schema] for s in (before, after)]
                )
            case TopK(), TopK() if (before.count, before.skipped) == (after.count, after.skipped):
                below = self.values(before.child, after.child)
                if _order(before, below) == _order_after(before, after, below):
                    return below
            case Aggregate(), Aggregate():
                return self._groups(before, after)
            case Windowed(), Windowed():
                same = self.same(before.child, after.child)
                old = [(item.name, map_columns(item.expression, same.before)) for item in before.items]
                return Values(old, [(item.name, map_columns(item.expression, same.after)) for item in after.items])
            case Join(), Join() if before.kind == after.kind:
                return self._join(before, after)
            case UnionAll(), UnionAll() if len(before.branches) == len(after.branches):
                return self._union(before, after)
            case Explode(), Explode():
                return self._elements(before, after)
            case (Distinct(), Distinct()) | (ScalarValue(), ScalarValue()):
                return self._alike(before, after)
        raise OtherRowsError

    def _block(self, before: JoinGraph, after: JoinGraph) -> Values:
        """Filters, projections and inner joins over leaves with the same rows, in the same order."""
        if len(before.leaves) != len(after.leaves):
            raise OtherRowsError
        pairs = zip(before.leaves, after.leaves, strict=True)
        same = {alias(number): self.same(*pair) for number, pair in enumerate(pairs)}
        sides = [{name: one.before for name, one in same.items()}, {name: one.after for name, one in same.items()}]
        conditions = [
            set(split_conditions(read_leaves(each, names) for each in graph.predicates))
            for graph, names in zip((before, after), sides, strict=True)
        ]
        if conditions[0] != conditions[1] or before.key != after.key:
            raise OtherRowsError
        old = [(name, read_leaves(value, sides[0])) for name, value in before.items]
        return Values(old, [(name, read_leaves(value, sides[1])) for name, value in after.items])

    def _groups(self, before: Aggregate, after: Aggregate) -> Values:
        same = self.same(before.child, after.child)
        require_same_keys(before, after, same)
        old = [(name, map_columns(value, same.before)) for name, value in over_rows(before)]
        return Values(old, [(name, map_columns(value, same.after)) for name, value in over_rows(after)])

    def _join(self, before: Join, after: Join) -> Values:
        left, right = self.same(before.left, after.left), self.same(before.right, after.right)
        same = Same({**left.before, **right.before}, {**left.after, **right.after})
        old, new = (
            None if join.condition is None else map_columns(join.condition, names)
            for join, names in ((before, same.before), (after, same.after))
        )
        if old != new:
            raise OtherRowsError
        return Values(_named_columns(before, same.before), _named_columns(after, same.after))

    def _union(self, before: UnionAll, after: UnionAll) -> Values:
        """A column is the same if it is the same one in all branches."""
        every = [self.same(*pair) for pair in zip(before.branches, after.branches, strict=True)]
        places = [{c.name.lower(): n for n, c in enumerate(columns(branch))} for branch in before.branches]
        values = []
        for number, shown in enumerate(after.schema):
            olds = set()
            for branch, same, place in zip(after.branches, every, places, strict=True):
                old = same.after.get(columns(branch)[number].name.lower())
                olds.add(None if old is None else place[old])
            (only,) = olds if len(olds) == 1 else (None,)
            is_known = only is not None and before.schema[only].type == shown.type
            values.append((shown.name, column(before.schema[only or 0].name.lower() if is_known else _UNKNOWN)))
        return Values(_own(before), values)

    def _elements(self, before: Explode, after: Explode) -> Values:
        same = self.same(before.child, after.child)
        if map_columns(after.array, same.after) != map_columns(before.array, same.before):
            raise OtherRowsError
        added = [{each.position.lower(): _PLACE, each.element.name.lower(): _ELEMENT} for each in (before, after)]
        return Values(
            _named_columns(before, {**same.before, **added[0]}), _named_columns(after, {**same.after, **added[1]})
        )

    def _alike(self, before: Relation, after: Relation) -> Values:
        """Nodes whose rows depend on all columns below: these have to be the same ones in their order."""
        ((old,), (new,)) = children(before), children(after)
        same = self.same(old, new)
        names = [
            [value for _, value in _named_columns(old, same.before)],
            [v for _, v in _named_columns(new, same.after)],
        ]
        if names[0] != names[1]:
            raise OtherRowsError
        values = [column(str(number)) for number, _ in enumerate(columns(before))]
        sides = [list(zip((c.name for c in columns(side)), values, strict=True)) for side in (before, after)]
        return Values(*sides)


def require_same_keys(before: Aggregate, after: Aggregate, same: Same) -> None:
    """Raise OtherRowsError unless rows that are the same are grouped by the same keys."""
    old = [(map_columns(key.expression, same.before), key.type) for key in before.keys]
    if old != [(map_columns(key.expression, same.after), key.type) for key in after.keys]:
        raise OtherRowsError


def map_columns(value: exp.Expr, names: Names) -> exp.Expr:
    """An expression over the columns that have the same values; one that has none is told apart."""

    def change(node: exp.Expr) -> exp.Expr:
        return _column(node.name, names) if isinstance(node, exp.Column) else node

    return replace_nodes(value, change)


def read_leaves(value: exp.Expr, names: Mapping[str, Names]) -> exp.Expr:
    """The same for columns of leaves, which are qualified by the leaf."""

    def change(node: exp.Expr) -> exp.Expr:
        return _column(node.name, names[node.table], node.table) if isinstance(node, exp.Column) else node

    return replace_nodes(value, change)


_UNKNOWN, _PLACE, _ELEMENT = "\0", "\0place", "\0element"


def _column(name: str, names: Names, table: str | None = None) -> exp.Column:
    return column(names.get(name.lower(), f"{_UNKNOWN}{name.lower()}"), table)


def over_rows(aggregate: Aggregate) -> list[tuple[str, exp.Expr]]:
    """The columns of an aggregate over those below it: each key and each call stands for itself."""
    values = {named.name.lower(): named.expression for named in aggregate.keys}
    values |= {call.name.lower(): exp.Anonymous(this=CALL, expressions=[call.call]) for call in aggregate.calls}

    def whole(node: exp.Expr) -> exp.Expr:
        is_own = isinstance(node, exp.Column) and node.name.lower() in values
        return exp.Paren(this=values[node.name.lower()].copy()) if is_own else node

    return [(item.name, replace_nodes(item.expression, whole)) for item in aggregate.items]


_Order = list[tuple[exp.Expr, bool, bool]]
_WIDER = {"int": ("bigint", "decimal(20,0)"), "bigint": ("decimal(20,0)",), "date": ("timestamp",)}
"""Types to which a cast keeps the order of values, and which of them are equal."""


def _order(before: TopK, below: Values) -> _Order:
    values = dict(below.before)
    return [(values[term.column].unnest(), term.is_descending, term.is_null_first) for term in before.order]


def _order_after(before: TopK, after: TopK, below: Values) -> _Order:
    """By which values the new rows are ordered; that of a column that is only cast to a wider type is the old one."""
    types = {value.unnest(): each.type for each, (_, value) in zip(columns(before.child), below.before, strict=True)}
    wider = {each.name: each.type for each in columns(after.child)}
    values, order = dict(below.after), _Order()
    for term in after.order:
        value = values[term.column].unnest()
        source = value.this.unnest() if isinstance(value, exp.Cast) else None
        if source is not None and wider[term.column] in _WIDER.get(types.get(source) or "", ()):
            value = source
        order.append((value, term.is_descending, term.is_null_first))
    return order


def _own(relation: Relation) -> list[tuple[str, exp.Expr]]:
    return [(each.name, column(each.name.lower())) for each in columns(relation)]


def _named_columns(relation: Relation, names: Names) -> list[tuple[str, exp.Expr]]:
    return [(each.name, _column(each.name, names)) for each in columns(relation)]
