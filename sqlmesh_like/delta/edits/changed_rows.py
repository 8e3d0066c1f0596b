"""The change of a table where its query is edited and no input moves, as a program. Owns which edits have one.

Both queries are compared node by node. Where they differ, the rows of the new node and the signed rows by which it
differs from the old one stand for an input: everything above is the program of a change of that input. The nodes that
may differ: filters and inner joins over the same relations, whose conditions change; UNION ALL, which gets or loses
branches at its end.

Proof idea, for conditions: both nodes hold those combinations of the same rows that meet their conditions, with the
same columns and keys. So the rows that enter are those of the new node for which not all of the old conditions are
true, and the rows that leave those of the old node for which not all of the new ones are. NULL is not true.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.column_pruning import prune_columns
from sqlmesh_like.analyze.algebra.relation import (
    Named,
    NodeNumbers,
    Projection,
    Relation,
    Scan,
    UnionAll,
    children,
    columns,
    scanned_columns,
    with_children,
)
from sqlmesh_like.analyze.algebra.relocate import relocate_positions
from sqlmesh_like.analyze.expressions.clock import clock_calls
from sqlmesh_like.delta.edits.implied_conditions import is_implied, split_conditions
from sqlmesh_like.delta.join_graph import JoinGraph, alias, flatten, is_flattened
from sqlmesh_like.delta.keys import column, key, weight_of
from sqlmesh_like.delta.program import DeltaProgram, Moves, ProgramStep, TablePlan, split_relation
from sqlmesh_like.delta.rows import from_item, rows, subquery, union_all, union_rows

_EDITED = "_sml_edited."
"""What the ids of inputs that stand for edited nodes begin with; no node of a project has such an id."""
_Change = Callable[[Collection[str]], exp.Query]


class NotFollowedError(Exception):
    """Raised for an edit whose change is not known."""


@dataclass(frozen=True)
class EditChange:
    """The program of an edit, and the kinds of its changes in words (`a wider filter`), each once."""

    program: DeltaProgram
    words: tuple[str, ...]


def edit_change(before: Relation, after: Relation, table: Callable[[Relation], TablePlan]) -> EditChange | None:
    """The change of a table of `before` that becomes one of `after`; None if it is not known.

    `table`: the plan of `after`, and of a relation that stands for it, in which the edited nodes are inputs.
    """
    comparison = _Comparison()
    try:
        marked = comparison.replace_edited_nodes(relocate_positions(before, None), relocate_positions(after, None))
    except (NotFollowedError, RecursionError):
        return None
    if columns(before) != columns(after) or not comparison.edited:
        return None
    plan = table(marked)
    program = plan.program_for(Moves(frozenset(comparison.edited))) if plan.state == table(after).state else None
    if program is None:
        return None
    read = scanned_columns(prune_columns(marked))
    needed = {name: {each.name.lower() for each in read[name]} for name in comparison.edited}
    first = [ProgramStep(_step(name), node.change(needed[name])) for name, node in comparison.edited.items()]
    current = {name: select_columns(node.relation, needed[name]) for name, node in comparison.edited.items()}
    steps = [_bind_step(step, current) for step in program.steps]
    words = dict.fromkeys(word for node in comparison.edited.values() for word in node.words)
    return EditChange(replace(program, steps=(*first, *steps)), tuple(words))


@dataclass(frozen=True)
class _EditedNode:
    """A node of the new query, and the signed rows by which it differs from the old one, by the names of columns."""

    relation: Relation
    change: _Change
    words: tuple[str, ...]


@dataclass
class _Comparison:
    """Compares two queries. `edited`: the nodes that differ, by the ids of the inputs that stand for them."""

    edited: dict[str, _EditedNode] = field(default_factory=dict)
    _numbers: NodeNumbers = field(default_factory=NodeNumbers)
    _done: dict[tuple[int, int], Relation] = field(default_factory=dict)

    def replace_edited_nodes(self, before: Relation, after: Relation) -> Relation:
        """The new relation with inputs for edited nodes; nodes that are shared stay so. Raises NotFollowedError."""
        pair = (self._numbers.of(before), self._numbers.of(after))
        if pair not in self._done:
            self._done[pair] = after if before == after else self._compare_nodes(before, after)
        return self._done[pair]

    def _compare_nodes(self, before: Relation, after: Relation) -> Relation:
        if isinstance(before, UnionAll) and isinstance(after, UnionAll):
            return self._union(before, after)
        if is_flattened(before) or is_flattened(after):
            return self._block(flatten(before), flatten(after), after)
        if type(before) is not type(after) or with_children(before, children(after)) != after:
            raise NotFollowedError
        return with_children(after, tuple(map(self._child, children(before), children(after))))

    def _child(self, before: Relation, after: Relation) -> Relation:
        if columns(before) != columns(after):
            raise NotFollowedError
        return self.replace_edited_nodes(before, after)

    def _block(self, before: JoinGraph, after: JoinGraph, relation: Relation) -> Relation:
        """Filters, projections and inner joins: other conditions, or leaves that are edited themselves."""
        if len(before.leaves) != len(after.leaves) or (before.items, before.key) != (after.items, after.key):
            raise NotFollowedError
        if before.leaves != after.leaves and _conditions(before) == _conditions(after):
            leaves: dict[int, Relation] = {}
            for old, new in zip(before.leaves, after.leaves, strict=True):
                marked = self._child(old, new)
                if leaves.setdefault(id(new), marked) is not marked:
                    raise NotFollowedError  # one node now where there were two
            return _with_leaves(relation, leaves)
        clocks = (call for graph in (before, after) for each in graph.predicates for call in clock_calls(each))
        if before.leaves != after.leaves or any(clocks):
            raise NotFollowedError
        return self._add_edited_node(relation, *_of_conditions(before, after))

    def _union(self, before: UnionAll, after: UnionAll) -> Relation:
        """Branches at the end are added or removed; the others keep their numbers, which are part of row keys."""
        count = min(len(before.branches), len(after.branches))
        if before.schema != after.schema:
            raise NotFollowedError
        if len(before.branches) == len(after.branches):
            pairs = zip(before.branches, after.branches, strict=True)
            return replace(after, branches=tuple(self._child(*pair) for pair in pairs))
        if before.branches[:count] != after.branches[:count]:
            raise NotFollowedError
        longer, sign = (after, 1) if len(after.branches) > count else (before, -1)
        added = {number: from_item(branch) for number, branch in enumerate(longer.branches) if number >= count}
        word = f"{len(added)} branch{'es' * (len(added) > 1)} of UNION ALL {'added' if sign > 0 else 'removed'}"

        def change(names: Collection[str]) -> exp.Query:
            shown = [column(each.name) for each in after.schema if each.name.lower() in names]
            query = exp.select(*shown, key(), weight_of(sign))
            return query.from_(exp.alias_(subquery(union_rows(longer, added)), "x", table=True))

        return self._add_edited_node(after, change, (word,))

    def _add_edited_node(self, relation: Relation, change: _Change, words: tuple[str, ...]) -> Relation:
        name = f"{_EDITED}{len(self.edited)}"
        self.edited[name] = _EditedNode(relation, change, words)
        return Scan(name, columns(relation))


def _conditions(graph: JoinGraph) -> set[str]:
    return set(split_conditions(graph.predicates))


def changed_conditions(before: Iterable[exp.Expr], after: Iterable[exp.Expr]) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """Old conditions that the new ones do not imply, and the other way round."""
    old, new = split_conditions(before), split_conditions(after)
    gone = [each for text, each in old.items() if text not in new and not is_implied(each, [*new.values()])]
    return gone, [each for text, each in new.items() if text not in old and not is_implied(each, [*old.values()])]


def _of_conditions(before: JoinGraph, after: JoinGraph) -> tuple[_Change, tuple[str, ...]]:
    """The signed rows by which two graphs over the same leaves differ, and what changes in words."""
    gone, added = changed_conditions(before.predicates, after.predicates)

    def change(names: Collection[str]) -> exp.Query:
        parts: list[exp.Query] = []
        for graph, others, sign in ((after, gone, 1), (before, added, -1)):
            shown = replace(graph, items=tuple(item for item in graph.items if item[0].lower() in names))
            query = shown.select(leaf_items(shown, others), weight_of(sign))
            parts += [query.where(is_not_true(others), copy=False)] if others else []
        if parts:
            return union_all(parts)
        return query.where(exp.false(), copy=False)  # the conditions are only written otherwise

    words = (*["a wider filter"] * bool(gone), *["a narrower filter"] * bool(added))
    return change, words or ("the same filter",)


def leaf_items(graph: JoinGraph, others: Sequence[exp.Expr]) -> list[exp.Expr]:
    """The leaves as FROM items with the columns that the graph and other conditions read."""
    every = [*graph.predicates, *others, *(value for _, value in graph.items)]
    read = {(each.table, each.name.lower()) for value in every for each in value.find_all(exp.Column)}
    return [
        from_item(leaf)
        if isinstance(leaf, Scan)
        else subquery(select_columns(leaf, {n for t, n in read if t == alias(number)}))
        for number, leaf in enumerate(graph.leaves)
    ]


def select_columns(relation: Relation, names: Collection[str]) -> exp.Select:
    """The rows of a relation with the columns of these names (lower case)."""
    shown = [each for each in columns(relation) if each.name.lower() in names]
    narrow = Projection(relation, tuple(Named(each.name, column(each.name), each.type) for each in shown))
    return rows(prune_columns(narrow))


def is_not_true(conditions: Sequence[exp.Expr]) -> exp.Expr:
    """Whether not all of these are true: also where one is NULL."""
    all_ = exp.and_(*[each.copy() for each in conditions], copy=False)
    return exp.Not(this=exp.Coalesce(this=exp.Paren(this=all_), expressions=[exp.false()]))


def _with_leaves(relation: Relation, leaves: Mapping[int, Relation]) -> Relation:
    """A block whose leaves (by identity) are replaced."""
    if id(relation) in leaves:
        return leaves[id(relation)]
    return with_children(relation, tuple(_with_leaves(child, leaves) for child in children(relation)))


def _step(name: str) -> str:
    return f"edited_{name.removeprefix(_EDITED)}"


def _bind_step(step: ProgramStep, current: Mapping[str, exp.Query]) -> ProgramStep:
    """A step over the steps and queries that stand for the inputs of edited nodes."""

    def bind(node: exp.Expr) -> exp.Expr:
        outside = split_relation(node) if isinstance(node, exp.Table) else None
        if outside is None or outside[1] not in current:
            return node
        role, name = outside
        source: exp.Expr = exp.table_(_step(name)) if role == "changes" else subquery(current[name].copy())
        return exp.alias_(source, node.alias, table=True, quoted=True) if node.alias else source

    prunes = []
    for prune in step.prunes:
        kept = {relation: pairs for relation, pairs in prune.columns.items() if relation not in current}
        prunes += [replace(prune, columns=kept)] if kept else []
    query = step.query.transform(bind)
    assert isinstance(query, exp.Query)
    return replace(step, query=query, prunes=tuple(prunes))
