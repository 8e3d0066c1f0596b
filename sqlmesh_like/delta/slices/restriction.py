"""A query restricted to a range of its own partitions. Owns through which operators a partition's value is followed.

The value is followed from the result down to the rows of the inputs, of which it is computed row by row: rows that it
puts into other ranges do not contribute to the rows of this one. An operator that decides over several rows lets it
through only if all of these have one value: GROUP BY and PARTITION BY that hold it, a join by its side or its keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.lineage import window_keys
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
    columns,
)
from sqlmesh_like.analyze.expressions.clock import clock_calls
from sqlmesh_like.analyze.spark_types.exactness import is_exact_key
from sqlmesh_like.delta.join_graph import substitute_columns
from sqlmesh_like.delta.keys import column
from sqlmesh_like.delta.slices.partition_range import PartitionRange


class UnsplitError(Exception):
    """A query cannot be computed range by range; the message says why."""


@dataclass(frozen=True)
class ScannedValue:
    """The partition's value as an expression over the columns of an input."""

    input_id: str
    value: exp.Expr


@dataclass
class Restriction:
    """Restricts relations to the rows of a range. `values`: of each scan that is restricted, the value's expression."""

    range: PartitionRange
    values: list[ScannedValue] = field(default_factory=list)

    def of(self, relation: Relation, name: str) -> Relation:
        """The relation without what does not contribute to rows with a value of the range in this column.

        Raises UnsplitError.
        """
        return self._of(relation, column(name))

    def _of(self, relation: Relation, value: exp.Expr) -> Relation:
        match relation:
            case Scan():
                return self._scan(relation, value)
            case Join():
                return self._join(relation, value)
            case UnionAll():
                return self._union(relation, value)
            case OneRow():
                raise UnsplitError("it is not a value of an input")
        return replace(relation, child=self._of(relation.child, _below(relation, value)))

    def _scan(self, scan: Scan, value: exp.Expr) -> Filter:
        if clock_calls(value):
            raise UnsplitError("it depends on the clock")
        self.values.append(ScannedValue(scan.input_id, value))
        return Filter(scan, self.range.holds(value))

    def _join(self, join: Join, value: exp.Expr) -> Join:
        """The side that has the value is restricted, and the other one where the join's keys give it there."""
        names = _names(value)
        if names <= _columns(join.left) and join.kind not in ("right", "full"):
            left = self._of(join.left, value)
            pairs = [(pair.left, pair.right) for pair in join.pairs]
            return replace(join, left=left, right=self._other(join.right, value, pairs, join.left))
        if names <= _columns(join.right) and join.kind in ("inner", "right"):
            right = self._of(join.right, value)
            pairs = [(pair.right, pair.left) for pair in join.pairs]
            return replace(join, right=right, left=self._other(join.left, value, pairs, join.right))
        raise UnsplitError(f"it is not a value of the side of a {join.kind} join that keeps its rows")

    def _other(
        self, other: Relation, value: exp.Expr, pairs: Iterable[tuple[exp.Expr, exp.Expr]], own: Relation
    ) -> Relation:
        """The other side of a join, all of which is read where the value does not follow from the join's keys."""
        types = {each.name.lower(): each.type for each in (*columns(own), *columns(other))}
        equal = {
            mine.name.lower(): theirs
            for mine, theirs in pairs
            if isinstance(mine, exp.Column) and isinstance(theirs, exp.Column)
            and types.get(mine.name.lower()) == types.get(theirs.name.lower())
            and is_exact_key(types.get(mine.name.lower()))
        }  # fmt: skip
        if not _names(value) or not _names(value) <= equal.keys():
            return other
        known = len(self.values)
        try:
            return self._of(other, substitute_columns(value, equal))
        except UnsplitError:
            del self.values[known:]
            return other

    def _union(self, union: UnionAll, value: exp.Expr) -> UnionAll:
        branches = []
        for branch in union.branches:
            own: dict[str, exp.Expr] = {}
            for merged, each in zip(union.schema, columns(branch), strict=True):
                if merged.name.lower() in _names(value) and merged.type != each.type:
                    raise UnsplitError("branches of UNION ALL have it with different types")
                own[merged.name.lower()] = column(each.name)
            branches.append(self._of(branch, substitute_columns(value, own)))
        return replace(union, branches=tuple(branches))


def _below(
    relation: Filter | Distinct | Explode | Projection | Windowed | Aggregate | TopK | ScalarValue, value: exp.Expr
) -> exp.Expr:
    """The value over the columns of the only child. Raises UnsplitError."""
    match relation:
        case Filter():
            return value
        case Distinct():
            _require_exact(relation.child, value)
            return value
        case Explode():
            if _names(value) & {relation.position.lower(), relation.element.name.lower()}:
                raise UnsplitError("it is an element of an exploded array")
            return value
        case Projection():
            return _through(value, relation.items)
        case Windowed():
            below = _through(value, relation.items)
            common = {key.name.lower() for key in window_keys(relation) if isinstance(key, exp.Column)}
            if below.find(exp.Window) or not _names(below) <= common:
                raise UnsplitError("PARTITION BY of a window function does not hold it")
            _require_exact(relation.child, below)
            return below
        case Aggregate():  # keys that are 0.0 and -0.0 are made one by their expressions
            below = _through(value, relation.items)
            if not relation.keys or not _names(below) <= {key.name.lower() for key in relation.keys}:
                raise UnsplitError("a GROUP BY does not hold it")
            return _through(below, relation.keys)
        case TopK() | ScalarValue():
            raise UnsplitError("LIMIT, or a subquery that must have one row, decides over all rows")


def _require_exact(relation: Relation, value: exp.Expr) -> None:
    """Raise UnsplitError where rows that count as equal may be of two ranges: 0.0 and -0.0 differ as texts."""
    types = {each.name.lower(): each.type for each in columns(relation)}
    if inexact := sorted(name for name in _names(value) if not is_exact_key(types.get(name))):
        raise UnsplitError(f"it is computed of {inexact[0]}, whose equal values are not all alike")


def _through(value: exp.Expr, items: Sequence[Named]) -> exp.Expr:
    known: Mapping[str, exp.Expr] = {item.name.lower(): item.expression for item in items}
    return substitute_columns(value, known)


def _names(value: exp.Expr) -> set[str]:
    return {each.name.lower() for each in value.find_all(exp.Column)}


def _columns(relation: Relation) -> set[str]:
    return {each.name.lower() for each in columns(relation)}
