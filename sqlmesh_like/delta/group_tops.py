"""The first rows of each group, maintained in the table's own rows. Owns the program.

The table keeps, in hidden columns where the query does not show them, what its rows are numbered by and computed of. It
is for each group what `limits` is for all rows: after a change the *candidates* of a group are its stored rows that the
change leaves as they are, and the rows that enter. If the group had k rows, all others were behind the last stored one,
and still are; so if at least k candidates are not behind it, the first k of them are the result, and have its numbers.
If the group had fewer than k rows, nothing was cut off. Otherwise the group has run dry: it, and only it, is looked up
in the inputs.

With RANK all rows that tie with the k-th one are in the table, and with DENSE_RANK those of k different places: of the
rows that are not behind the last stored one all are candidates just the same, and at least k of them, or k different
places, must be.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.lineage import passthrough_columns
from sqlmesh_like.analyze.algebra.relation import Named, Windowed
from sqlmesh_like.analyze.binding.expression_copies import operand, replace_nodes
from sqlmesh_like.classify.group_tops import GroupTop
from sqlmesh_like.classify.rules import reason
from sqlmesh_like.delta.affected_keys import keys_of
from sqlmesh_like.delta.changes import Changes
from sqlmesh_like.delta.keys import as_text, column, key, weight
from sqlmesh_like.delta.lookups import Match
from sqlmesh_like.delta.program import TARGET, DeltaProgram, Moves
from sqlmesh_like.delta.program import relation as outside
from sqlmesh_like.delta.rows import PLACE, from_item, over, signed_rows, subquery, union_all
from sqlmesh_like.delta.whole_window import KEPT_BELOW, as_below
from sqlmesh_like.names import Column, Schema

_BOUNDARY = "_sml_boundary"


def kept_rows(top: GroupTop) -> Schema:
    """The hidden columns of the table: those of the rows below that it does not show."""
    shown = passthrough_columns(top.items)
    hidden = [each for each in top.read if each.name.lower() not in shown]
    return tuple(Column(f"{KEPT_BELOW}{number}", each.type) for number, each in enumerate(hidden))


def build_group_top(top: GroupTop) -> exp.Select:
    """The whole table."""
    return _first(top, from_item(top.child))


def group_top_delta(top: GroupTop, moves: Moves) -> DeltaProgram:
    """The program of a table that has the first rows of each group."""
    changes = Changes(_query_with_place(top), moves)
    steps = changes.steps
    if not moves.can_change(top.child):
        return steps.program()
    change = changes.net_change(top.child)
    affected = steps.add("affected", keys_of(top.keys, [change]))
    shown = [*map(column, (item.name for item in top.items)), *[column(each.name) for each in kept_rows(top)], key()]
    stored = exp.select(*shown).from_(outside("target", TARGET)).where(_is_stored(top, affected))
    kept = steps.add("kept", stored, unless_empty=affected)
    names, boundary = [*map(column, (each.name for each in top.read)), key()], column(_BOUNDARY)
    candidates = union_all([
        _add_boundary_flag(_staying(top, kept, change), 0),
        _add_boundary_flag(_entering(top, change), 0),
        _add_boundary_flag(_last(top, kept), 1),
    ])  # fmt: skip
    ordered = exp.select(*names, boundary, _in_place(top, boundary)).from_(subquery(candidates))
    first = steps.add("first", exp.select(*names, boundary).from_(subquery(ordered)).where(_is_first(top)))
    is_boundary = exp.EQ(this=boundary.copy(), expression=exp.Literal.number(1))
    ends = exp.select(*names).from_(first).where(is_boundary)
    too_few = steps.add("too_few", keys_of(top.keys, [subquery(ends)]), is_rare=True)
    whole = exp.select(*names).from_(steps.lookup(top.child, Match.by(top.keys, too_few)))
    has_enough = exp.Not(this=Match.by(top.keys, too_few).condition())
    enough = exp.select(*names).from_(first).where(exp.Not(this=is_boundary.copy()), has_enough)
    new = steps.add("computed", _first(top, subquery(union_all([enough, whole]))), unless_empty=affected)
    steps.add("signed", signed_rows(shown, kept, new))
    note = reason("LIM006", f"of some groups fewer than {top.count} rows were known to be first")
    return replace(steps.program(), notes=((too_few, note),))


def _is_stored(top: GroupTop, affected: str) -> exp.Expr:
    """Whether a row of the table is of one of the affected groups."""
    stored = _stored_values(top)
    keys = [
        replace_nodes(each, lambda node: operand(stored[node.name.lower()]) if isinstance(node, exp.Column) else node)
        for each in top.keys
    ]
    return Match.by(keys, affected).condition()


def _rows_below(top: GroupTop, kept: str) -> exp.Select:
    """The rows below of which the table's rows are made."""
    stored = _stored_values(top)
    below = [exp.alias_(stored[each.name.lower()], each.name, quoted=True) for each in top.read]
    return exp.select(*below, key()).from_(kept)


def _staying(top: GroupTop, kept: str, change: str) -> exp.Select:
    replaced_ = exp.In(this=key(), query=exp.select(key()).from_(change).subquery())
    return _rows_below(top, kept).where(exp.Not(this=replaced_))


def _entering(top: GroupTop, change: str) -> exp.Select:
    query = exp.select(*map(column, (each.name for each in top.read)), key()).from_(change)
    return query.where(exp.GT(this=weight(), expression=exp.Literal.number(0)))


def _last(top: GroupTop, kept: str) -> exp.Select:
    """The last stored row of each group; none of a group that had fewer rows than it may have."""
    names = [*map(column, (each.name for each in top.read)), key()]
    counted = replace(top, window=_by_rows(top.window)) if isinstance(top.window.this, exp.Rank) else top
    numbered = exp.select(*names, _in_place(counted)).from_(subquery(_rows_below(top, kept)))
    is_last = exp.EQ(this=column(PLACE), expression=exp.Literal.number(top.count))
    return exp.select(*[name.copy() for name in names]).from_(subquery(numbered)).where(is_last)


def _by_rows(rank: exp.Window) -> exp.Window:
    """The window that counts rows: RANK leaves out numbers behind rows that tie, and may have no k-th one."""
    window = rank.copy()
    window.set("this", exp.RowNumber())
    return window


def _is_first(top: GroupTop) -> exp.Expr:
    return exp.LTE(this=column(PLACE), expression=exp.Literal.number(top.count))


def _query_with_place(top: GroupTop) -> Windowed:
    """The query below the filter, with the hidden columns of the table, and `PLACE`."""
    shown = passthrough_columns(top.items)
    hidden = [each for each in top.read if each.name.lower() not in shown]
    added = [Named(kept.name, column(each.name), each.type) for kept, each in zip(kept_rows(top), hidden, strict=True)]
    place = Named(PLACE, top.window, "int")
    return Windowed(top.child, (*top.items, *added, place), (tuple(top.keys),))


def _first(top: GroupTop, source: exp.Expr) -> exp.Select:
    """The table's rows, of rows below that have all of the first ones of each group."""
    shown = [*(item.name for item in top.items), *(each.name for each in kept_rows(top))]
    query = exp.select(*map(column, shown), key()).from_(subquery(over(_query_with_place(top), source)))
    return query.where(_is_first(top))


def _in_place(top: GroupTop, *last: exp.Expr) -> exp.Expr:
    """`PLACE` of rows below in their group; `last` orders rows of one key, or that tie."""
    window = top.window.copy()
    for end in last if top.has_ties else (as_text(key()), *last):
        window.args["order"].append("expressions", exp.Ordered(this=end.copy()))
    return exp.alias_(window, PLACE, quoted=True)


def _add_boundary_flag(query: exp.Select, flag: int) -> exp.Select:
    return query.select(exp.alias_(exp.Literal.number(flag), _BOUNDARY, quoted=True))


def _stored_values(top: GroupTop) -> dict[str, exp.Expr]:
    """Each column below that is read (lower case), as an expression over the table."""
    shown, hidden = passthrough_columns(top.items), iter(kept_rows(top))
    names = {each.name.lower(): shown.get(each.name.lower()) or next(hidden).name for each in top.read}
    return {each.name.lower(): as_below(column(names[each.name.lower()]), each) for each in top.read}
