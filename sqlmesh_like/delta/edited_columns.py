"""The rows of an edited query that keep their keys: what is stored is read from the table, the rest is computed alone.

Owns which edits these are, and the query, which joins both by key.

Proof idea. Filters, projections and inner joins over the same relations give a row the same key in both queries, and
the conditions decide whether it is there. A row of the new query that met the old conditions is stored, so its stored
columns are read by its key; one that did not is computed as a whole. An aggregate has, over the same rows and by the
same keys, the same groups with the same keys, whatever is aggregated; a state that both queries keep is a function of
the rows of its group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.column_pruning import pruned_columns
from sqlmesh_like.analyze.algebra.relation import Aggregate, Named, Projection, Relation, Windowed, columns
from sqlmesh_like.analyze.algebra.relocate import relocated
from sqlmesh_like.delta.aggregates import current_states, finished
from sqlmesh_like.delta.edits import changed_conditions, is_not_true
from sqlmesh_like.delta.join_graph import flatten
from sqlmesh_like.delta.keys import column
from sqlmesh_like.delta.program import TARGET
from sqlmesh_like.delta.program import relation as outside
from sqlmesh_like.delta.rows import from_item, rows, stacked, subquery
from sqlmesh_like.delta.states import AggregateState, states_of
from sqlmesh_like.names import KEY

_STORED, _ADDED = "t", "n"
_Item = tuple[str, exp.Expr]


@dataclass(frozen=True)
class EditedColumns:
    """All rows of the edited query; `computed`: columns that are not read from the table; further changes in words."""

    rows: exp.Query
    computed: tuple[str, ...]
    words: tuple[str, ...] = ()


def edited_columns(before: Relation, after: Relation, *, merges: bool) -> EditedColumns | None:
    """The rows of a query that is edited, where some columns are stored; None if that is not proven.

    The table has the columns of `before`. `merges`: and keys and states of its groups; else it has no hidden columns.
    """
    try:
        match relocated(before, None), relocated(after, None):
            case Aggregate() as old, Aggregate() as new:
                return _of_groups(old, new, merges=merges)
            case Windowed() as old, Windowed() as new if not merges and old.child == new.child:
                return _of_windows(old, new)
            case old, new if not merges:
                return _of_block(old, new)
    except RecursionError:
        return None
    return None


def _of_block(old: Relation, new: Relation) -> EditedColumns | None:
    before, after = flatten(old), flatten(new)
    if (before.leaves, before.key) != (after.leaves, after.key):
        return None
    stored, rest = _split(before.items, after.items)
    if not stored:
        return None
    gone, added = changed_conditions(before, after)
    items = tuple(Named(each.name, column(each.name), each.type) for each in columns(new) if each.name not in stored)
    narrow = _rows_of(Projection(new, items)) if items or added else None
    query: exp.Query = _joined([name for name, _ in after.items], stored, narrow)
    if gone:
        entering = after.select([from_item(leaf) for leaf in after.leaves])
        query = stacked([query, entering.where(is_not_true(gone), copy=False)])
    words = (*["a wider filter"] * bool(gone), *["a narrower filter"] * bool(added))
    return EditedColumns(query, tuple(name for name, _ in rest), words)


def _rows_of(relation: Relation) -> exp.Select:
    return rows(pruned_columns(relation))


def _of_windows(before: Windowed, after: Windowed) -> EditedColumns | None:
    stored, rest = _split(_values(before.items), _values(after.items))
    items = _named(after.items, rest)
    if not stored or not items:
        return None
    added = _rows_of(replace(after, items=items))
    return EditedColumns(_joined([item.name for item in after.items], stored, added), tuple(i.name for i in items))


def _of_groups(before: Aggregate, after: Aggregate, *, merges: bool) -> EditedColumns | None:
    keys = [[(key.expression, key.type) for key in aggregate.keys] for aggregate in (before, after)]
    if before.child != after.child or keys[0] != keys[1]:
        return None
    if merges:
        return _of_states(before, after)
    stored, rest = _split(_over_rows(before), _over_rows(after))
    items = _named(after.items, rest)
    if not stored or not items:
        return None
    read = {each.name for item in items for each in item.expression.find_all(exp.Column)}
    part = replace(after, items=items, calls=tuple(call for call in after.calls if call.name in read))
    query = _joined([item.name for item in after.items], stored, _rows_of(part))
    return EditedColumns(query, tuple(item.name for item in items))


def _of_states(before: Aggregate, after: Aggregate) -> EditedColumns:
    """States that the table has are read from it, others are computed in one pass; the columns follow from both."""
    known = {_identity(state): state.name for state in states_of(before)}
    is_missing = {call.name: not _identities(replace(after, calls=(call,))) <= known.keys() for call in after.calls}
    part = replace(after, calls=tuple(call for call in after.calls if is_missing[call.name]), items=())
    computed = {_identity(state): state.name for state in states_of(part)}
    items: list[exp.Expr] = [column(KEY, _STORED)]
    for old, new in zip(before.keys, after.keys, strict=True):
        items.append(exp.alias_(column(old.name, _STORED), new.name, quoted=True))
    for state in states_of(after):
        own = _identity(state)
        source = column(known[own], _STORED) if own in known else column(computed[own], _ADDED)
        items.append(exp.alias_(source, state.name, quoted=True))
    groups = exp.select(*items).from_(_stored_rows())
    if part.calls:
        narrow = pruned_columns(part)
        assert isinstance(narrow, Aggregate)
        groups = groups.join(_added_rows(current_states(narrow)), on=_same_key(), join_type="inner")
    names = {call.name for call in part.calls}
    shown = (i.name for i in after.items if names & {each.name for each in i.expression.find_all(exp.Column)})
    return EditedColumns(finished(groups.subquery("g"), after), tuple(shown))


def _identities(aggregate: Aggregate) -> set[tuple[str, exp.Expr | None, str]]:
    return {_identity(state) for state in states_of(aggregate)}


def _identity(state: AggregateState) -> tuple[str, exp.Expr | None, str]:
    """What a state holds, whatever its name is."""
    return state.kind, state.argument, state.type


def _over_rows(aggregate: Aggregate) -> list[_Item]:
    """The columns of an aggregate over those below it: each key and each call stands for itself."""
    values = {named.name.lower(): named.expression for named in aggregate.keys}
    values |= {call.name.lower(): call.call for call in aggregate.calls}

    def whole(node: exp.Expr) -> exp.Expr:
        is_own = isinstance(node, exp.Column) and node.name.lower() in values
        return exp.Paren(this=values[node.name.lower()].copy()) if is_own else node

    return [(item.name, item.expression.copy().transform(whole)) for item in aggregate.items]


def _values(items: Iterable[Named]) -> list[_Item]:
    return [(item.name, item.expression) for item in items]


def _named(items: Iterable[Named], rest: Sequence[_Item]) -> tuple[Named, ...]:
    names = {name for name, _ in rest}
    return tuple(item for item in items if item.name in names)


def _split(before: Sequence[_Item], after: Sequence[_Item]) -> tuple[Mapping[str, str], list[_Item]]:
    """For the new columns whose values are stored: the names of the stored ones; and the others."""
    known = {value: name for name, value in reversed(before)}
    stored = {name: known[value] for name, value in after if value in known}
    return stored, [(name, value) for name, value in after if name not in stored]


def _joined(names: Sequence[str], stored: Mapping[str, str], added: exp.Query | None) -> exp.Select:
    """Stored columns and added ones of the rows that have the same key; a stored row without one is left out."""
    sources = [column(stored[name], _STORED) if name in stored else column(name, _ADDED) for name in names]
    items = [exp.alias_(source, name, quoted=True) for name, source in zip(names, sources, strict=True)]
    query = exp.select(*items, column(KEY, _STORED)).from_(_stored_rows())
    return query if added is None else query.join(_added_rows(added), on=_same_key(), join_type="inner")


def _stored_rows() -> exp.Expr:
    return exp.alias_(outside("target", TARGET), _STORED, table=True)


def _added_rows(query: exp.Query) -> exp.Expr:
    return exp.alias_(subquery(query), _ADDED, table=True)


def _same_key() -> exp.Expr:
    return exp.EQ(this=column(KEY, _STORED), expression=column(KEY, _ADDED))
