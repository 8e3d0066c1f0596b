"""ORDER BY … LIMIT k, maintained in its k rows. Owns the program, and what it does where too few rows are left.

The table has the first k rows of a query in a total order, which the row key ends. After a change of that query, the
*candidates* are the stored rows that it leaves as they are, and the rows that enter. All other rows were behind the
last stored row before the change, and still are. So if at least k candidates are not behind that row, the first k of
them are the result. If the table had fewer than k rows, nothing had been cut off, and the candidates are all rows.
Otherwise rows are needed that the table does not have: the query is recomputed.

The last stored row is put among the candidates as a *boundary*, behind the row that equals it: too few are left if it
is one of the first k. No value is compared but by the order itself.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import TopK
from sqlmesh_like.classify.rules import reason
from sqlmesh_like.delta.changes import Changes
from sqlmesh_like.delta.keys import column, key
from sqlmesh_like.delta.program import TARGET, DeltaProgram, Moves
from sqlmesh_like.delta.program import relation as outside
from sqlmesh_like.delta.rows import PLACE, first_rows, in_place, names, rows, signed_rows, subquery, union_all

_BOUNDARY = "_sml_boundary"
_ZERO, _ONE = exp.Literal.number(0), exp.Literal.number(1)


def limit_delta(source: TopK, moves: Moves) -> DeltaProgram:
    """The program of a table that has the first rows of a query."""
    changes = Changes(source, moves)
    steps = changes.steps
    if not moves.can_change(source):
        return steps.program()
    if source.skipped:
        return _offset_delta(source, changes)
    shown = [*names(source.child), key()]
    change, is_replaced, enter = changes.replaced_rows(source.child)
    stored = exp.select(*shown, in_place(source)).from_(outside("target", TARGET))
    kept = steps.add("kept", stored, unless_empty=change)
    stay = exp.select(*shown).from_(kept).where(exp.Not(this=is_replaced))
    last = _last(source, kept)
    flagged = union_all(
        [_add_boundary_flag(stay, _ZERO), _add_boundary_flag(enter, _ZERO), _add_boundary_flag(last, _ONE)]
    )
    boundary = column(_BOUNDARY)
    first = steps.add("first", first_rows(source, [*shown, boundary], subquery(flagged), boundary))
    is_boundary = exp.EQ(this=boundary.copy(), expression=_ONE.copy())
    too_few = steps.add("too_few", exp.select(key()).from_(first).where(is_boundary), is_rare=True)
    recomputed = steps.add("recomputed", rows(source), unless_empty=too_few)
    enough = exp.Not(this=exp.Exists(this=exp.select(_ONE.copy()).from_(too_few)))
    left = exp.select(*shown).from_(first).where(exp.EQ(this=boundary.copy(), expression=_ZERO.copy()), enough)
    new = union_all([left, exp.select(*[item.copy() for item in shown]).from_(recomputed)])
    steps.add("signed", signed_rows(shown, kept, subquery(new)))
    note = reason("LIM003", f"fewer than {source.count} rows were known to be first")
    return replace(steps.program(), notes=((too_few, note),))


def _offset_delta(source: TopK, changes: Changes) -> DeltaProgram:
    """The program of a table that has rows behind the first ones, which it does not have.

    A change of rows that are all behind the last stored one, as they were and as they are, changes nothing. Any other
    may move rows over the edges of the table: the query is recomputed, as it is at each change where OFFSET stands
    alone, which leaves no row behind the last one.
    """
    steps, shown = changes.steps, [*names(source.child), key()]
    change = changes.net_change(source.child)
    stored = exp.select(*shown, in_place(source)).from_(outside("target", TARGET))
    kept = steps.add("kept", stored, unless_empty=change)
    flagged = union_all(
        [_add_boundary_flag(_rows_of_change(source, change), _ZERO), _add_boundary_flag(_last(source, kept), _ONE)]
    )
    boundary = column(_BOUNDARY)
    foremost = replace(source, count=1, skipped=0)
    first = steps.add("first", first_rows(foremost, [*shown, boundary], subquery(flagged), boundary), change)
    is_changed = exp.EQ(this=boundary.copy(), expression=_ZERO.copy())
    is_rare = source.count is not None
    moved = steps.add("moved", exp.select(key()).from_(first).where(is_changed), is_rare=is_rare)
    recomputed = steps.add("recomputed", rows(source), unless_empty=moved)
    is_moved = exp.Exists(this=exp.select(_ONE.copy()).from_(moved))
    leaving = exp.select(*[item.copy() for item in shown]).from_(kept).where(is_moved)
    steps.add("signed", signed_rows(shown, subquery(leaving), recomputed))
    note = reason("LIM003", "rows changed that are not behind the last one of the table")
    return replace(steps.program(), notes=((moved, note),))


def _rows_of_change(source: TopK, change: str) -> exp.Select:
    """The rows of a change, as they were and as they are."""
    return exp.select(*names(source.child), key()).from_(change)


def _last(source: TopK, kept: str) -> exp.Select:
    """The last stored row; none if the table had fewer rows than it may have, or may have any number of rows."""
    is_last: exp.Expr = exp.false()
    if source.count is not None:
        is_last = exp.EQ(this=column(PLACE), expression=exp.Literal.number(source.count))
    return exp.select(*names(source.child), key()).from_(kept).where(is_last)


def _add_boundary_flag(query: exp.Select, flag: exp.Expr) -> exp.Select:
    return query.select(exp.alias_(flag.copy(), _BOUNDARY, quoted=True))
