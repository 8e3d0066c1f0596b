"""The rows of an edited query that keep their keys: what is stored is read from the table, the rest is computed alone.

Owns which edits these are, and the query, which joins both by key.

Proof idea. Filters, projections and inner joins over the same relations give a row the same key in both queries, and
the conditions decide whether it is there. A row of the new query that met the old conditions is stored, so its stored
columns are read by its key; one that did not is computed as a whole. An aggregate has, over the same rows and by the
same keys, the same groups with the same keys, whatever is aggregated; a state that both queries keep is a function of
the rows of its group.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.column_pruning import prune_columns
from sqlmesh_like.analyze.algebra.relation import Aggregate, Relation, TopK, Windowed, columns
from sqlmesh_like.analyze.algebra.relocate import relocate_positions
from sqlmesh_like.analyze.binding.expression_copies import replace_nodes
from sqlmesh_like.analyze.spark_types.type_names import is_stored
from sqlmesh_like.delta.aggregates import current_states, finalize_states
from sqlmesh_like.delta.edits.changed_rows import changed_conditions, is_not_true, leaf_items, select_columns
from sqlmesh_like.delta.edits.same_columns import (
    CALL,
    Comparison,
    Names,
    OtherRowsError,
    Values,
    map_columns,
    require_same_keys,
)
from sqlmesh_like.delta.join_graph import flatten
from sqlmesh_like.delta.keys import column
from sqlmesh_like.delta.program import TARGET
from sqlmesh_like.delta.program import relation as outside
from sqlmesh_like.delta.rows import rows, subquery, union_all
from sqlmesh_like.delta.states import AggregateState, states_of
from sqlmesh_like.names import KEY

_STORED, _ADDED = "t", "n"


@dataclass(frozen=True)
class EditedColumns:
    """All rows of the edited query; `computed`: columns that are not read from the table; further changes in words."""

    rows: exp.Query
    computed: tuple[str, ...]
    words: tuple[str, ...] = ()


def edited_columns(before: Relation, after: Relation, *, merges: bool) -> EditedColumns | None:
    """The rows of a query that is edited, where some columns are stored; None if that is not proven.

    The table has the columns of `before`, and of a LIMIT those that it is ordered by. `merges`: it has keys and states
    of its groups as well.
    """
    old, new, comparison = relocate_positions(before, None), relocate_positions(after, None), Comparison()
    try:
        if merges:
            groups = isinstance(old, Aggregate) and isinstance(new, Aggregate)
            return _of_states(old, new, comparison) if groups else None  # type: ignore[arg-type]
        try:
            values = comparison.values(old, new)
        except OtherRowsError:
            return _of_conditions(old, new)
    except (OtherRowsError, RecursionError):
        return None
    bodies = [relation.child if isinstance(relation, TopK) else relation for relation in (old, new)]
    return _of_values(values, bodies[0], bodies[1])


def _of_values(
    values: Values, before: Relation, after: Relation, added: Sequence[exp.Expr] = ()
) -> EditedColumns | None:
    """Rows that are all stored, or of which all are that meet the conditions that are `added`."""
    types = {each.name: each.type for each in columns(before)}
    known = {value: name for name, value in reversed(values.before)}
    stored: dict[str, exp.Expr] = {}
    for name, value in values.after:
        made = _over_stored(value, known)
        read = [] if made is None else list(made.find_all(exp.Column))
        if made is not None and (made in read or all(is_stored(types[each.name]) for each in read)):
            stored[name] = made
    if not stored:
        return None
    rest = tuple(name for name, _ in values.after if name not in stored)
    names = [name for name, _ in values.after]
    query = _join_stored_and_added(names, stored, _narrow(after, rest) if rest or added else None)
    return EditedColumns(query, rest)


def _over_stored(value: exp.Expr, known: Mapping[exp.Expr, str]) -> exp.Expr | None:
    """A value as an expression over stored columns; None if it reads what none of them has."""
    made = replace_nodes(
        value,
        lambda node: column(known[node], _STORED) if node in known and node.find(exp.Column) is not None else node,
    )
    is_of_rows = any(isinstance(e, exp.Window) or e.name == CALL for e in made.find_all(exp.Window, exp.Anonymous))
    return made if not is_of_rows and all(each.table == _STORED for each in made.find_all(exp.Column)) else None


def _of_conditions(old: Relation, new: Relation) -> EditedColumns | None:
    """Filters, projections and inner joins over the same relations, whose conditions differ."""
    before, after = flatten(old), flatten(new)
    if (before.leaves, before.key) != (after.leaves, after.key):
        return None
    gone, added = changed_conditions(before.predicates, after.predicates)
    edited = _of_values(Values(before.items, after.items), old, new, added)
    if edited is None:
        return None
    query = edited.rows
    if gone:
        entering = after.select(leaf_items(after, gone))
        query = union_all([query, entering.where(is_not_true(gone), copy=False)])
    words = (*["a wider filter"] * bool(gone), *["a narrower filter"] * bool(added))
    return EditedColumns(query, edited.computed, words)


def _narrow(relation: Relation, names: Collection[str]) -> exp.Select:
    """The rows of a relation with some of its columns."""
    if isinstance(relation, Aggregate | Windowed):
        items = tuple(item for item in relation.items if item.name in names)
        narrow: Relation = replace(relation, items=items)
        if isinstance(narrow, Aggregate):
            shown = {each.name for item in items for each in item.expression.find_all(exp.Column)}
            narrow = replace(narrow, calls=tuple(call for call in narrow.calls if call.name in shown))
        return rows(prune_columns(narrow))
    return select_columns(relation, {name.lower() for name in names})


def _of_states(before: Aggregate, after: Aggregate, comparison: Comparison) -> EditedColumns:
    """States that the table has are read from it, others are computed in one pass; the columns follow from both."""
    same = comparison.same(before.child, after.child)
    require_same_keys(before, after, same)
    known = {_identity(state, same.before): state.name for state in states_of(before)}
    missing = [c for c in after.calls if not _identities(replace(after, calls=(c,)), same.after) <= known.keys()]
    part = replace(after, calls=tuple(missing), items=())
    computed = {_identity(state, same.after): state.name for state in states_of(part)}
    items: list[exp.Expr] = [column(KEY, _STORED)]
    for old, new in zip(before.keys, after.keys, strict=True):
        items.append(exp.alias_(column(old.name, _STORED), new.name, quoted=True))
    for state in states_of(after):
        own = _identity(state, same.after)
        source = column(known[own], _STORED) if own in known else column(computed[own], _ADDED)
        items.append(exp.alias_(source, state.name, quoted=True))
    groups = exp.select(*items).from_(_stored_rows())
    if part.calls:
        narrow = prune_columns(part)
        assert isinstance(narrow, Aggregate)
        groups = groups.join(_added_rows(current_states(narrow)), on=_same_key(), join_type="inner")
    names = {call.name for call in part.calls}
    shown = (i.name for i in after.items if names & {each.name for each in i.expression.find_all(exp.Column)})
    return EditedColumns(finalize_states(groups.subquery("g"), after), tuple(shown))


_Identity = tuple[str, exp.Expr | None, str, tuple[exp.Expr, ...]]


def _identities(aggregate: Aggregate, names: Names) -> set[_Identity]:
    return {_identity(state, names) for state in states_of(aggregate)}


def _identity(state: AggregateState, names: Names) -> _Identity:
    """What a state holds, whatever its name is."""
    order = tuple(map_columns(argument, names) for argument in state.order_arguments)
    return state.kind, None if state.argument is None else map_columns(state.argument, names), state.type, order


def _join_stored_and_added(names: Sequence[str], stored: Mapping[str, exp.Expr], added: exp.Query | None) -> exp.Select:
    """Stored columns and added ones of the rows that have the same key; a stored row without one is left out."""
    sources = [stored[name] if name in stored else column(name, _ADDED) for name in names]
    items = [exp.alias_(source, name, quoted=True) for name, source in zip(names, sources, strict=True)]
    query = exp.select(*items, column(KEY, _STORED)).from_(_stored_rows())
    return query if added is None else query.join(_added_rows(added), on=_same_key(), join_type="inner")


def _stored_rows() -> exp.Expr:
    return exp.alias_(outside("target", TARGET), _STORED, table=True)


def _added_rows(query: exp.Query) -> exp.Expr:
    return exp.alias_(subquery(query), _ADDED, table=True)


def _same_key() -> exp.Expr:
    return exp.EQ(this=column(KEY, _STORED), expression=column(KEY, _ADDED))
