"""INTERSECT and EXCEPT as joins. Owns both forms: of distinct rows, and of rows with multiplicity.

With ALL the copies of a row are numbered on either side: the n-th copy on the left matches the n-th on the right, if
there is one. So INTERSECT ALL leaves the smaller count, EXCEPT ALL the difference of the counts.
"""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import JoinKind, Named, Projection, Relation, Windowed, columns
from sqlmesh_like.analyze.binding.distinct_rows import distinct_rows
from sqlmesh_like.analyze.binding.joining import make_join

COPY = "_sml_copy"
"""Number of a row among the rows equal to it. Which of them has which number does not affect the result."""
_RIGHT = "_sml_r."


def distinct_difference(left: Relation, right: Relation, kind: JoinKind, offset: int | None) -> Relation:
    """Distinct rows of the left side with (`semi`) or without (`anti`) an equal row on the right."""
    return make_join(
        distinct_rows(left, offset), Projection(right, _prefixed_columns(right)), kind, _equal(left, right)
    )


def counted_difference(left: Relation, right: Relation, kind: JoinKind, offset: int | None) -> Relation:
    """Rows of the left side whose copy of the same number is (`semi`) or is not (`anti`) on the right."""
    shown = tuple(Named(c.name, _column(c.name), c.type) for c in columns(left))
    copies = Windowed(left, (*shown, _copy_number(left, COPY, offset)), (_keys(left),))
    others = Windowed(right, (*_prefixed_columns(right), _copy_number(right, _RIGHT + COPY, offset)), (_keys(right),))
    same_copy = exp.EQ(this=_column(COPY), expression=_column(_RIGHT + COPY))
    return Projection(make_join(copies, others, kind, exp.and_(_equal(left, right), same_copy)), shown)


def _copy_number(side: Relation, name: str, offset: int | None) -> Named:
    """ROW_NUMBER over equal rows, ordered by a column in which all are equal, so that the row key decides."""
    order = exp.Order(expressions=[exp.Ordered(this=_column(columns(side)[0].name), nulls_first=True)])
    number = exp.RowNumber()
    if offset is not None:
        number.meta.update({"start": offset, "end": offset})
    return Named(name, exp.Window(this=number, partition_by=list(_keys(side)), order=order, over="OVER"), "int")


def _prefixed_columns(right: Relation) -> tuple[Named, ...]:
    return tuple(Named(_RIGHT + c.name, _column(c.name), c.type) for c in columns(right))


def _keys(side: Relation) -> tuple[exp.Expr, ...]:
    return tuple(_column(c.name) for c in columns(side))


def _equal(left: Relation, right: Relation) -> exp.Expr:
    pairs = zip(columns(left), columns(right), strict=True)
    return exp.and_(
        *[exp.NullSafeEQ(this=_column(one.name), expression=_column(_RIGHT + other.name)) for one, other in pairs]
    )


def _column(name: str) -> exp.Expr:
    return exp.column(name, quoted=True)
