"""The rows of an edited query that joins further relations, or no longer left-joins some. Owns which edits these are.

Proof idea. Rows of a query are the combinations of rows of its inner leaves that meet its conditions, each with its
matches of the left-joined leaves, or once with NULLs (`join_tree`). If the new query has all inner leaves of the old
one, and its conditions imply the old ones, then each of its combinations without the added leaves is stored. So its
rows are the stored ones, joined with the added leaves, whatever these match. Of rows that differ only in a left-joined
leaf that is gone, one stays. A new key is made of the keys of leaves, which the stored key holds.

Not of these: an inner join that is gone, whose unmatched rows are not stored, and conditions that are wider.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Aggregate, Relation, columns
from sqlmesh_like.analyze.algebra.relocate import relocate_positions
from sqlmesh_like.analyze.binding.expression_copies import replace_nodes
from sqlmesh_like.analyze.spark_types.one_zero import FLOATING
from sqlmesh_like.analyze.spark_types.type_names import is_stored
from sqlmesh_like.delta.edits.changed_rows import changed_conditions
from sqlmesh_like.delta.edits.edited_columns import EditedColumns
from sqlmesh_like.delta.edits.implied_conditions import split_conditions
from sqlmesh_like.delta.edits.join_tree import (
    JoinTree,
    KeyTree,
    Leaf,
    join_tree,
    joined_leaves,
    leaf_item,
    leaves_in,
    renumber_columns,
    without_leaves,
)
from sqlmesh_like.delta.edits.key_parts import MOST_PLACE, part_of
from sqlmesh_like.delta.join_graph import alias, leaves_of
from sqlmesh_like.delta.keys import as_text, column, encode
from sqlmesh_like.delta.program import TARGET
from sqlmesh_like.delta.program import relation as outside
from sqlmesh_like.delta.rows import PLACE, subquery
from sqlmesh_like.names import KEY

_STORED, _READ, _KEPT = "t", "b", "_sml_kept"


def joined_rows(before: Relation, after: Relation) -> EditedColumns | None:
    """The rows of a query that is edited, whose table has the columns of `before`; None if that is not proven."""
    old, new = join_tree(relocate_positions(before, None)), join_tree(relocate_positions(after, None))
    numbers = _matches(old, new)
    if numbers is None:
        return None
    old = old.renumber(numbers)
    gone, added = old.leaves.keys() - new.leaves.keys(), new.leaves.keys() - old.leaves.keys()
    entering, conditions = changed_conditions(old.conditions, new.conditions)
    if old.key == new.key or entering or any(leaves_of(each) & gone for each in old.conditions):
        return None  # rows enter that are not stored, or that a leaf which is gone kept away
    stored = _StoredRows(old, gone, {each.name: each.type for each in columns(before)})
    key = make_key(new.key, without_leaves(old.key, gone), column(KEY, _STORED))
    items = [(name, stored.item(value)) for name, value in new.items]
    if key is None or not any(is_of(_STORED, value) for _, value in items):
        return None
    joined = {
        number: replace(leaf, on=tuple(map(stored.value, leaf.on)))
        for number, leaf in new.leaves.items()
        if number in added
    }
    conditions = [stored.value(each) for each in conditions]
    query = stored.select([exp.alias_(value, name, quoted=True) for name, value in (*items, (KEY, key))])
    if query is None:
        return None
    every = [*conditions, *(value for _, value in items)]
    query = joined_leaves(query, joined, conditions, every)
    beside = tuple(name for name, value in items if not is_of(_STORED, value))
    return EditedColumns(query, (), _words(joined, gone, beside, conditions))


def has_plain_group_keys(relation: Relation) -> bool:
    """Whether merged groups have the row keys that groups have which are joined: not if grouped by floating numbers."""
    return isinstance(relation, Aggregate) and not {key.type for key in relation.keys} & {None, *FLOATING}


def is_of(table: str, value: exp.Expr) -> bool:
    """Whether a value reads columns of one FROM item only."""
    return all(each.table == table for each in value.find_all(exp.Column))


def _matches(old: JoinTree, new: JoinTree) -> Mapping[int, int] | None:
    """The leaves of the new tree by those of the old one; a left-joined leaf that is gone gets a number of its own.

    None where an inner leaf is gone, or other rows are filtered by semi and anti joins.
    """
    numbers: dict[int, int] = {}
    for number, leaf in old.leaves.items():
        places = [place for place in new.leaves if place not in numbers.values()]
        same = [place for place in places if _is_same(leaf, new.leaves[place], {**numbers, number: place})]
        if not same and leaf.kind != "left":
            return None
        numbers[number] = same[0] if same else len(new.leaves) + number
    return None if any(leaf.filters for place, leaf in new.leaves.items() if place not in numbers.values()) else numbers


def _is_same(old: Leaf, new: Leaf, numbers: Mapping[int, int]) -> bool:
    """Whether both have the same rows, and these are joined by the same conditions where leaves have other numbers."""
    if (old.relation, old.kind) != (new.relation, new.kind):
        return False
    before = split_conditions(renumber_columns(each, numbers) for each in old.on)
    return before.keys() == split_conditions(new.on).keys()


@dataclass
class _StoredRows:
    """The rows of the table, as FROM item `t`: without those that differ only in left-joined leaves that are `gone`.

    `types`: of the table's columns. `_used`: those that are read. `_read`: columns of leaves that the table lacks, by
    their names in the FROM item `b`, which reads them from the inputs.
    """

    tree: JoinTree
    gone: Collection[int]
    types: Mapping[str, str | None]
    _used: dict[str, None] = field(default_factory=dict)
    _read: dict[exp.Expr, str] = field(default_factory=dict)

    @cached_property
    def _known(self) -> Mapping[exp.Expr, str]:
        """Names of stored columns by their values."""
        known = {value: name for name, value in reversed(self.tree.items) if not leaves_of(value) & set(self.gone)}
        return {value: name for value, name in known.items() if value.find(exp.Column) is not None}

    def item(self, value: exp.Expr) -> exp.Expr:
        """A column of the new query over the FROM items of its rows."""
        name = self._known.get(value)
        return self.value(value) if name is None else self._column(name)

    def value(self, value: exp.Expr) -> exp.Expr:
        """An expression over leaves as one over FROM items; small integers, which are stored as others, are read."""

        def change(node: exp.Expr) -> exp.Expr:
            name = self._known.get(node)
            if name is not None and is_stored(self.types[name]):
                return self._column(name)
            if not isinstance(node, exp.Column) or not leaves_of(node) <= self.tree.leaves.keys():
                return node
            return column(self._read.setdefault(node, f"_sml_c{len(self._read)}"), _READ)

        return replace_nodes(value, change)

    def _column(self, name: str) -> exp.Expr:
        self._used[name] = None
        return column(name, _STORED)

    def select(self, shown: Sequence[exp.Expr]) -> exp.Select | None:
        """SELECT FROM the rows; None if they are not known, or of an input that the new query does not have."""
        target = outside("target", TARGET)
        if not self.gone:
            query = exp.select(*shown).from_(exp.alias_(target, _STORED, table=True))
            if not self._read:
                return query
            if any(leaf.filters for leaf in self.tree.leaves.values()):
                return None
            return query.join(self._inputs(), on=_same_key(), join_type="inner")
        key = make_key(without_leaves(self.tree.key, self.gone), self.tree.key, column(KEY))
        if self._read or key is None:
            return None
        rows = _one_of_each(target, [column(name) for name in self._used], key)
        return exp.select(*shown).from_(exp.alias_(subquery(rows), _STORED, table=True))

    def _inputs(self) -> exp.Expr:
        """Rows of the old query with the columns that the table lacks."""
        first, *others = self.tree.leaves
        items = [exp.alias_(value.copy(), name, quoted=True) for value, name in self._read.items()]
        key = make_key(self.tree.key)
        assert key is not None
        query = exp.select(*items, exp.alias_(key, KEY, quoted=True))
        every = [*self._read, *self.tree.conditions]
        query = query.from_(leaf_item(first, self.tree.leaves, every))
        joined = {number: self.tree.leaves[number] for number in others}
        query = joined_leaves(query, joined, self.tree.conditions, every)
        return exp.alias_(subquery(query), _READ, table=True)


def _one_of_each(rows: exp.Expr, names: Sequence[exp.Expr], key: exp.Expr) -> exp.Select:
    """Columns of one row of those that have the same new key, by that key."""
    tie = exp.Ordered(this=as_text(column(KEY)), desc=False, nulls_first=True)
    place = exp.Window(this=exp.RowNumber(), partition_by=[key.copy()], order=exp.Order(expressions=[tie]))
    numbered = exp.select(*names, exp.alias_(key, _KEPT, quoted=True), exp.alias_(place, PLACE, quoted=True))
    kept = exp.select(*[name.copy() for name in names], exp.alias_(column(_KEPT), KEY, quoted=True))
    kept = kept.from_(exp.alias_(subquery(numbered.from_(rows)), "n", table=True))
    return kept.where(exp.EQ(this=column(PLACE), expression=exp.Literal.number(1)))


def make_key(wanted: KeyTree, stored: KeyTree | None = None, key: exp.Expr | None = None) -> exp.Expr | None:
    """A row key of the keys of leaves, and of the `key` of stored rows, which is made as `stored` says.

    None where that is not the key of leaves which are not joined, and they cannot be told from it.
    """
    if key is not None and stored is not None:
        if wanted == stored:
            return key
        if leaves_in(wanted) <= leaves_in(stored):
            part = _part(stored, wanted, key)
            if part is not None or isinstance(wanted, int):
                return part
        elif isinstance(wanted, tuple) and isinstance(stored, tuple) and wanted[: len(stored)] == stored:
            further = [make_key(part, stored, key) for part in wanted[len(stored) :]]
            ends = [encode([each]) for each in further if each is not None]
            return _append_key_parts([key, *ends]) if len(ends) == len(further) else None
    if isinstance(wanted, int):
        return column(KEY, alias(wanted))
    parts = [make_key(part, stored, key) for part in wanted]
    known = [part for part in parts if part is not None]
    return encode(known) if len(known) == len(parts) else None


def _part(stored: KeyTree, wanted: KeyTree, key: exp.Expr) -> exp.Expr | None:
    """A part of a stored key, or a part of its parts."""
    if stored == wanted:
        return key
    if isinstance(stored, int):
        return None
    for place, part in enumerate(stored[: MOST_PLACE + 1]):
        if leaves_in(wanted) <= leaves_in(part):
            return _part(part, wanted, part_of(key, place))
    return None


def _append_key_parts(keys: Sequence[exp.Expr]) -> exp.Expr:
    """A list of encoded parts that begins as another one: `encode` separates them in the same way."""
    made = keys[0].copy()
    for each in keys[1:]:
        made = exp.DPipe(
            this=exp.DPipe(this=made, expression=exp.Literal.string("/"), safe=True), expression=each, safe=True
        )
    return made


def _same_key() -> exp.Expr:
    return exp.EQ(this=column(KEY, _STORED), expression=column(KEY, _READ))


def _words(
    joined: Mapping[int, Leaf], gone: Collection[int], beside: Sequence[str], conditions: Sequence[exp.Expr]
) -> tuple[str, ...]:
    kinds = dict.fromkeys("a left join" if leaf.kind == "left" else "a join" for leaf in joined.values())
    words = [f"{kind} added" for kind in kinds] + ["a left join removed"] * bool(gone)
    words = words or ["joins in another order"]
    is_narrower = conditions and not any(leaf.kind == "inner" for leaf in joined.values())
    return (*words, *[f"with {', '.join(beside)}"] * bool(beside), *["a narrower filter"] * bool(is_narrower))
