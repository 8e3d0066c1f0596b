"""Window functions over all rows, as a whole query. Owns the program that goes on from the table's own rows.

Without a PARTITION BY that its window functions share, any row can change the values of all others. The table keeps,
in hidden columns where the query does not show them, what the windows are computed over: the rows of the query below,
one for each row of the table. After a change the rows below are those of the table that the change leaves as they
are, and those that enter; the windows are computed over them, and rows that differ are written. No input is read.
"""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.analyze.algebra.lineage import passthrough_columns, window_keys
from sqlmesh_like.analyze.algebra.relation import Named, Relation, Windowed, columns
from sqlmesh_like.analyze.expressions.types import is_exact_key
from sqlmesh_like.delta.changes import Changes
from sqlmesh_like.delta.keys import column, key, weight
from sqlmesh_like.delta.program import TARGET, DeltaProgram, Moves
from sqlmesh_like.delta.program import relation as outside
from sqlmesh_like.delta.rows import names, over, signed_rows, subquery, union_all
from sqlmesh_like.names import Column, Schema

KEPT_BELOW = "_sml_below_"
"""Start of the names of hidden columns that hold those of rows below windows."""


def keeps_rows_below(state: Schema) -> bool:
    """Whether a table's state holds rows below its windows, in columns whose numbers depend on how they are written."""
    return any(column.name.startswith(KEPT_BELOW) for column in state)


def with_rows_below(source: Relation) -> tuple[Windowed, Schema] | None:
    """The query with hidden columns for the rows that its windows are over, and these columns.

    None for any other query, and where a column below cannot be kept as it is.
    """
    if not isinstance(source, Windowed) or window_keys(source):
        return None
    below = _used_columns(source)
    if not all(is_exact_key(each.type) or each.type in ("double", "float") for each in below):
        return None
    shown = passthrough_columns(source.items)
    hidden = [each for each in below if each.name.lower() not in shown]
    added = tuple(Named(f"{KEPT_BELOW}{number}", column(each.name), each.type) for number, each in enumerate(hidden))
    wider = Windowed(source.child, (*source.items, *added), source.partitions)
    return wider, tuple(Column(item.name, item.type) for item in added)


def whole_window_delta(source: Windowed, moves: Moves) -> DeltaProgram:
    """The program of a table whose columns hold those of the rows below its windows."""
    changes = Changes(source, moves)
    steps = changes.steps
    if not moves.can_change(source):
        return steps.program()
    change = changes.net_change(source.child)
    shown = [*names(source), key()]
    stored = steps.add("stored", exp.select(*shown).from_(outside("target", TARGET)), unless_empty=change)
    enter = exp.select(*[column(each.name) for each in _used_columns(source)], key()).from_(change)
    enter = enter.where(exp.GT(this=weight(), expression=exp.Literal.number(0)))
    now = subquery(union_all([_staying(source, stored, change), enter]))
    new = steps.add("computed", over(source, now), unless_empty=change)
    steps.add("signed", signed_rows(shown, stored, new))
    return steps.program()


def _staying(source: Windowed, stored: str, change: str) -> exp.Select:
    """The rows below of the table's rows that the change leaves as they are."""
    held = passthrough_columns(source.items)
    below = [
        exp.alias_(as_below(column(held[each.name.lower()]), each), each.name, quoted=True)
        for each in _used_columns(source)
    ]
    replaced = exp.In(this=key(), query=exp.select(key()).from_(change).subquery())
    return exp.select(*below, key()).from_(stored).where(exp.Not(this=replaced))


def as_below(value: exp.Expr, below: Column) -> exp.Expr:
    """A value of the table in the type that it has below: tables hold small integers as int."""
    is_small = below.type in ("tinyint", "smallint")
    return exp.cast(value, below.type, dialect="spark") if is_small and below.type else value


def _used_columns(source: Windowed) -> Schema:
    """The columns below that the query reads."""
    used = {each.name.lower() for item in source.items for each in item.expression.find_all(exp.Column)}
    return tuple(each for each in columns(source.child) if each.name.lower() in used)
