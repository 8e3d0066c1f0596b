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
    Filter,
    Join,
    NodeNumbers,
    Projection,
    Relation,
    ScalarValue,
    Scan,
    TopK,
    UnionAll,
    Windowed,
    children,
    columns,
)
from sqlmesh_like.analyze.binding.expression_copies import replaced
from sqlmesh_like.delta.join_graph import JoinGraph, flatten
from sqlmesh_like.delta.keys import column

CALL = "_sml_call"
"""The function around a call of an aggregate: what is inside is of the rows of a group."""
Same = Mapping[str, str]
"""The column of the old relation, by the lower-case name of the new one that has its values."""


class OtherRowsError(Exception):
    """Raised where two relations are not known to have the same rows and keys."""


@dataclass(frozen=True)
class Values:
    """The columns of a relation by name, as expressions over what they are compared by; equal ones are the same."""

    before: Sequence[tuple[str, exp.Expr]]
    after: Sequence[tuple[str, exp.Expr]]

    @property
    def same(self) -> Same:
        known = {value: name for name, value in reversed(self.before)}
        return {name.lower(): known[value] for name, value in self.after if value in known}


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
        if _is_in_block(before) or _is_in_block(after):
            return self._block(flatten(before), flatten(after))
        match before, after:
            case Scan(), Scan() if before.input_id == after.input_id:
                return Values(
                    *[[(c.name, column(f"{c.name.lower()}:{c.type}")) for c in s.schema] for s in (before, after)]
                )
            case TopK(), TopK() if (before.count, before.skipped) == (after.count, after.skipped):
                same = self.same(before.child, after.child)
                order = [(_named(t.column, same), t.is_descending, t.is_null_first) for t in after.order]
                if order == [(t.column.lower(), t.is_descending, t.is_null_first) for t in before.order]:
                    return self.values(before.child, after.child)
            case Aggregate(), Aggregate():
                return self._groups(before, after)
            case Windowed(), Windowed():
                same = self.same(before.child, after.child)
                items = [(item.name, read(item.expression, same)) for item in after.items]
                return Values([(item.name, read(item.expression)) for item in before.items], items)
            case Join(), Join() if before.kind == after.kind:
                return self._join(before, after)
            case UnionAll(), UnionAll() if len(before.branches) == len(after.branches):
                return self._union(before, after)
            case (Explode(), Explode()) | (Distinct(), Distinct()) | (ScalarValue(), ScalarValue()):
                return self._alike(before, after)
        raise OtherRowsError

    def _block(self, before: JoinGraph, after: JoinGraph) -> Values:
        """Filters, projections and inner joins over leaves with the same rows, in the same order."""
        if len(before.leaves) != len(after.leaves):
            raise OtherRowsError
        pairs = zip(before.leaves, after.leaves, strict=True)
        same = {f"_sml_t{number}": self.same(*pair) for number, pair in enumerate(pairs)}
        conditions = [
            {read_leaves(each) for each in before.predicates},
            {read_leaves(p, same) for p in after.predicates},
        ]
        if conditions[0] != conditions[1] or before.key != after.key:
            raise OtherRowsError
        items = [(name, read_leaves(value, same)) for name, value in after.items]
        return Values([(name, read_leaves(value)) for name, value in before.items], items)

    def _groups(self, before: Aggregate, after: Aggregate) -> Values:
        same = self.same(before.child, after.child)
        keys = [(read(key.expression, same), key.type) for key in after.keys]
        if keys != [(read(key.expression), key.type) for key in before.keys]:
            raise OtherRowsError
        items = [(name, read(value, same)) for name, value in over_rows(after)]
        return Values([(name, read(value)) for name, value in over_rows(before)], items)

    def _join(self, before: Join, after: Join) -> Values:
        same = {**self.same(before.left, after.left), **self.same(before.right, after.right)}
        conditions = (before.condition and read(before.condition), after.condition and read(after.condition, same))
        if conditions[0] != conditions[1]:
            raise OtherRowsError
        return Values(_own(before), [(each.name, column(_named(each.name, same))) for each in columns(after)])

    def _union(self, before: UnionAll, after: UnionAll) -> Values:
        """A column is the same if it is the same one in all branches."""
        every = [self.same(*pair) for pair in zip(before.branches, after.branches, strict=True)]
        places = [{c.name.lower(): n for n, c in enumerate(columns(branch))} for branch in before.branches]
        values = []
        for number, shown in enumerate(after.schema):
            olds = set()
            for branch, same, place in zip(after.branches, every, places, strict=True):
                old = same.get(columns(branch)[number].name.lower())
                olds.add(None if old is None else place[old.lower()])
            (only,) = olds if len(olds) == 1 else (None,)
            is_known = only is not None and before.schema[only].type == shown.type
            values.append((shown.name, column(before.schema[only or 0].name.lower() if is_known else _UNKNOWN)))
        return Values(_own(before), values)

    def _alike(self, before: Relation, after: Relation) -> Values:
        """Nodes whose rows depend on all columns below: these have to be the same ones in their order."""
        ((old,), (new,)) = children(before), children(after)
        same = self.same(old, new)
        if [_named(each.name, same) for each in columns(new)] != [each.name.lower() for each in columns(old)]:
            raise OtherRowsError
        if isinstance(before, Explode) and isinstance(after, Explode) and read(after.array, same) != read(before.array):
            raise OtherRowsError
        pairs = zip(columns(before), columns(after), strict=True)
        return Values(_own(before), [(new.name, column(old.name.lower())) for old, new in pairs])


def read(value: exp.Expr, same: Same | None = None) -> exp.Expr:
    """An expression with its columns named as in the old relation; without `same` it is one over that."""

    def change(node: exp.Expr) -> exp.Expr:
        return column(_named(node.name, same)) if isinstance(node, exp.Column) else node

    return replaced(value, change)


def read_leaves(value: exp.Expr, same: Mapping[str, Same] | None = None) -> exp.Expr:
    """The same for columns of leaves, which are qualified by the leaf."""

    def change(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        return column(_named(node.name, None if same is None else same[node.table]), node.table)

    return replaced(value, change)


_UNKNOWN = "\0"


def _named(name: str, same: Same | None) -> str:
    """The old name of a new column, in lower case; one that no column has where there is none."""
    if same is None:
        return name.lower()
    old = same.get(name.lower())
    return f"{_UNKNOWN}{name.lower()}" if old is None else old.lower()


def over_rows(aggregate: Aggregate) -> list[tuple[str, exp.Expr]]:
    """The columns of an aggregate over those below it: each key and each call stands for itself."""
    values = {named.name.lower(): named.expression for named in aggregate.keys}
    values |= {call.name.lower(): exp.Anonymous(this=CALL, expressions=[call.call]) for call in aggregate.calls}

    def whole(node: exp.Expr) -> exp.Expr:
        is_own = isinstance(node, exp.Column) and node.name.lower() in values
        return exp.Paren(this=values[node.name.lower()].copy()) if is_own else node

    return [(item.name, replaced(item.expression, whole)) for item in aggregate.items]


def _is_in_block(relation: Relation) -> bool:
    return isinstance(relation, Filter | Projection) or (isinstance(relation, Join) and relation.kind == "inner")


def _own(relation: Relation) -> list[tuple[str, exp.Expr]]:
    return [(each.name, column(each.name.lower())) for each in columns(relation)]
