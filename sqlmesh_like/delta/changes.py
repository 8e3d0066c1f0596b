"""The change of any relation, as steps. Owns what is recomputed: groups, windows, outer joins, and what joins match.

Everything starts at the change. The netted change of each input is read, and from the other inputs only rows that can
match it: they are looked up by the equalities of the query, starting from the change, one table after the other.

- An inner join changes by the combinations of rows of which at least one changes. Those whose first changed row is in
  table i start at the change of i; earlier tables contribute their unchanged rows, later ones these and their own
  changes in the same direction (all rows of a combination are before images, or all are after images). This is the
  telescoped sum ΔA⋈B_old ∪ A_new⋈ΔB, written so that no combination occurs twice and no table is read in its old state.
- For nonlinear operators (groups, windows, outer and semi joins) the keys that a change affects, before and after, are
  collected, the node is computed over only the rows of these keys, as they were and as they are, and the difference is
  its change. Rows of one key depend on rows of that key only (Palpanas et al., "Incremental maintenance for
  non-distributive aggregate functions", 2002).

The rows before a change are the current rows without those that entered, plus those that left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import (
    Aggregate,
    Distinct,
    Explode,
    Filter,
    Join,
    Relation,
    Scan,
    UnionAll,
    columns,
    scanned_columns,
)
from sqlmesh_like.analyze.algebra.zero_signs import tells_zeros_apart
from sqlmesh_like.delta.affected_keys import affected_keys, key_columns, sides_of, visible_keys
from sqlmesh_like.delta.clock_boundary import clock_filter_change
from sqlmesh_like.delta.join_graph import JoinGraph, flatten, join_sources
from sqlmesh_like.delta.keys import column, encode, key, weight
from sqlmesh_like.delta.lookups import Lookups, Match
from sqlmesh_like.delta.program import TARGET, DeltaProgram, Moves, Prune
from sqlmesh_like.delta.program import relation as outside
from sqlmesh_like.delta.rows import (
    as_it_was,
    explode_rows,
    from_item,
    names,
    net,
    over,
    rows,
    signed_rows,
    subquery,
    union_all,
    union_rows,
)
from sqlmesh_like.names import KEY, WEIGHT, Column

_TAG = "_sml_tag"
"""State of a row of a joined table: 0 if it stays, 1 if it enters, -1 if it leaves."""


def relation_delta(source: Relation, moves: Moves) -> DeltaProgram:
    """The program of a table without hidden state."""
    builder = Changes(source, moves)
    if not moves.can_change(source):
        return builder.steps.program()
    if isinstance(source, Aggregate | Distinct):
        ((child, keys),) = sides_of(source)
        if keys:
            return builder.from_stored(source, child, keys)
    builder.steps.add("signed", builder.of(source))
    return builder.steps.program()


@dataclass
class Changes:
    """Collects the steps that the changes of nested nodes need, inner ones first. `root` is the whole query."""

    root: Relation
    moves: Moves
    steps: Lookups = field(init=False)
    _net_changes: dict[str | int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.steps = Lookups(self.moves.small)

    def of(self, source: Relation) -> exp.Select:
        """SELECT of the signed rows of a relation that can change; adds all steps that it reads."""
        graph = flatten(source, splits_clock=True)
        if len(graph.leaves) > 1:
            return self._of_join(graph)
        if graph.leaves[0] is source:
            return self._of_node(source)
        return graph.select([exp.table_(self.net_change(graph.leaves[0]))], weight())

    def net_change(self, source: Relation) -> str:
        """The step with a relation's change: per key at most one row that leaves and one that enters, never equal.

        The change of an input has only the columns that the query uses.
        """
        known = source.input_id if isinstance(source, Scan) else self.steps.nodes.of(source)
        if known not in self._net_changes:
            self._net_changes[known] = self._net_step(source)
        return self._net_changes[known]

    def _net_step(self, source: Relation) -> str:
        if isinstance(source, Scan):
            read = scanned_columns(self.root)[source.input_id]
            return self.steps.add("delta", self._net(outside("changes", source.input_id), read))
        changed = self.steps.add("changed", self.of(source))
        return self.steps.add("netted", self._net(exp.table_(changed), columns(source)))

    def _net(self, source: exp.Expr, schema: Sequence[Column]) -> exp.Select:
        return net(source, schema, has_zero_signs=self._tells_zeros_apart)

    @cached_property
    def _tells_zeros_apart(self) -> bool:
        return tells_zeros_apart(self.root)

    def _of_node(self, source: Relation) -> exp.Select:
        match source:
            case Scan():
                return _signed_rows(source, self.net_change(source))
            case Filter():
                change = self.net_change(source.child) if self.moves.can_change(source.child) else None
                below = subquery(rows(source.child))
                stay = self._staying(source.child, below, change) if change else rows(source.child)
                return clock_filter_change(source, change, stay)
            case Explode():
                return explode_rows(source, subquery(self.of(source.child)), signed=True)
            case UnionAll():
                moving = {n: b for n, b in enumerate(source.branches) if self.moves.can_change(b)}
                changes = {number: subquery(self.of(branch)) for number, branch in moving.items()}
                return union_rows(source, changes, signed=True)
        return _signed_rows(source, self._recompute_change(source))

    def _of_join(self, graph: JoinGraph) -> exp.Select:
        """The change of a join: first among the changing tables and those between them, then joined with the rest."""
        changes = {n: self.net_change(leaf) for n, leaf in enumerate(graph.leaves) if self.moves.can_change(leaf)}
        core = graph.between(list(changes))
        contracted = graph.contract(core)
        parts = [self._of_core(graph, core, changes, first, contracted) for first in changes]
        joined_ = self.steps.add("joined_change", union_all(parts))
        sources = self.steps.beside(contracted, {0: joined_})
        return contracted.select(sources, column(WEIGHT, "_sml_t0"))

    def _of_core(
        self, graph: JoinGraph, core: frozenset[int], changes: Mapping[int, str], first: int, contracted: JoinGraph
    ) -> exp.Select:
        """Combinations of the core's rows in which the row of `first` is the first that changes.

        Rows of later leaves stay or change in the same direction, as all are before images or all are after images.
        """
        met = self.steps.meeting(graph, core, changes)
        sources: dict[int, exp.Expr] = {first: exp.table_(changes[first])}
        together: list[exp.Expr] = []
        for leaf in sorted(core - {first}):
            node = graph.leaves[leaf]
            rows_ = exp.table_(met[leaf, first]) if (leaf, first) in met else from_item(node)
            if leaf not in changes:
                sources[leaf] = rows_
            elif leaf < first:
                sources[leaf] = subquery(self._staying(node, rows_, changes[leaf]))
            else:
                sources[leaf] = subquery(self._tag_rows(node, rows_, changes[leaf]))
                together.append(_is_together(column(_TAG, f"_sml_t{leaf}"), column(WEIGHT, f"_sml_t{first}")))
        shown = _columns_of_core(contracted)
        items = [exp.alias_(column(name, table), f"{table}_{name}", quoted=True) for table, name in shown]
        items.append(exp.alias_(column(WEIGHT, f"_sml_t{first}"), WEIGHT, quoted=True))
        return join_sources(items, sources, graph.within(core), first).where(*together, copy=False)

    def _tag_rows(self, leaf: Relation, rows_: exp.Expr, change: str) -> exp.Query:
        """The unchanged rows of a table and its own change, with `_TAG`."""
        tag = exp.alias_(column(WEIGHT), _TAG, quoted=True)
        moving = exp.select(*names(leaf), key(), tag).from_(exp.table_(change))
        zero = exp.alias_(exp.cast(exp.Literal.number(0), "bigint", dialect="spark"), _TAG, quoted=True)
        return union_all([moving, self._staying(leaf, rows_, change).select(zero, copy=False)])

    def _staying(self, leaf: Relation, rows_: exp.Expr, change: str) -> exp.Select:
        """Those of a table's rows that have not changed."""
        query = exp.select(*names(leaf), key()).from_(exp.alias_(rows_, "_sml_s", table=True, copy=False))
        return query.where(exp.Not(this=_has_key(change, "_sml_s")), copy=False)

    def from_stored(self, source: Aggregate | Distinct, child: Relation, keys: Sequence[exp.Expr]) -> DeltaProgram:
        """The program of a table whose rows are groups by `keys`: their old rows are read from the table, by key."""
        affected = self._affected_keys(source)
        shown = [key(), *names(source)]
        stored = exp.select(*shown).from_(outside("target", TARGET)).where(_is_of(affected, source))
        bound = Prune(affected, {TARGET: visible_keys(source, key_columns(len(keys)))})
        old = self.steps.add("old", stored, affected, (bound,))
        new = self._groups_now(source, child, keys, affected)
        self.steps.add("signed", signed_rows(shown, old, new))
        return self.steps.program()

    def _groups_now(
        self, source: Aggregate | Distinct, child: Relation, keys: Sequence[exp.Expr], affected: str
    ) -> str:
        """The step with the current groups of the affected keys."""
        current = self.steps.lookup(child, Match.by(keys, affected))
        return self.steps.add("recomputed", over(source, exp.table_(current)), affected)

    def replaced_rows(self, source: Relation) -> tuple[str, exp.Expr, exp.Select]:
        """What replaces rows of a relation by their keys: a step, which is empty if nothing does; the condition on
        `_sml_key` for a row to be replaced; and all rows that come instead.

        Rows of groups come as they are now, whether they have changed or not.
        """
        if isinstance(source, Aggregate | Distinct):
            ((child, keys),) = sides_of(source)
            if keys:
                affected = self._affected_keys(source)
                now = self._groups_now(source, child, keys, affected)
                return affected, _is_of(affected, source), exp.select(*names(source), key()).from_(now)
        change = self.net_change(source)
        replaced = exp.In(this=key(), query=exp.select(key()).from_(change).subquery())
        return change, replaced, _rows_with_sign(source, change, enter=True)

    def _recompute_change(self, source: Relation) -> str:
        """The step that holds the change of a non-linear node."""
        affected = self._affected_keys(source)
        now: list[exp.Expr] = []
        then: list[exp.Expr] = []
        alone = self._decides_alone(source)
        for child, keys in sides_of(source):
            if child is alone:
                change = self.net_change(child)
                then.append(subquery(_rows_with_sign(child, change, enter=False)))
                now.append(subquery(_rows_with_sign(child, change, enter=True)))
                continue
            if keys:
                current: exp.Expr = exp.table_(self.steps.lookup(child, Match.by(keys, affected)))
            else:  # one group of all rows: too many to materialize
                current = subquery(rows(child))
            now.append(current)
            if not self.moves.can_change(child):
                then.append(current.copy())
                continue
            previous = self._previous(child, current.copy())
            then.append(exp.table_(self.steps.add("rows_before", previous, affected)) if keys else subquery(previous))
        old = self.steps.add("result_before", as_it_was(source, *then), affected)
        new = self.steps.add("result_after", over(source, *now), affected)
        shown = [key(), *names(source)]
        both = self.steps.add("difference", signed_rows(shown, old, new))
        return self.steps.add("netted", self._net(exp.table_(both), columns(source)))

    def _decides_alone(self, source: Relation) -> Relation | None:
        """The side of a join without equalities whose changed rows alone decide its change; None if all rows do.

        A row of the preserved side meets all rows of the other one, whatever other rows of its own side there are: if
        the other side stays, only changed rows come and go, each with its matches or with none.
        """
        if not isinstance(source, Join) or source.pairs or source.kind == "full":
            return None
        sides = (source.left, source.right)
        kept, other = reversed(sides) if source.kind == "right" else sides
        return None if self.moves.can_change(other) else kept

    def _previous(self, source: Relation, current: exp.Expr) -> exp.Query:
        """Rows of a relation before the change, from its current rows and its change."""
        change = self.net_change(source)
        return union_all([self._staying(source, current, change), _rows_with_sign(source, change, enter=False)])

    def _affected_keys(self, source: Relation) -> str:
        """The step with the distinct keys that changes of the children affect (without keys: a single row)."""
        moving = [(keys, self.net_change(child)) for child, keys in sides_of(source) if self.moves.can_change(child)]
        return self.steps.add("affected", affected_keys(moving))


def _is_of(affected: str, source: Aggregate | Distinct) -> exp.Expr:
    """Whether a row is the group of one of the affected keys."""
    types = [each.type for each in (source.keys if isinstance(source, Aggregate) else columns(source))]
    matching = exp.select(encode([column(name) for name in key_columns(len(types))], types)).from_(affected)
    return exp.In(this=key(), query=matching.subquery())


def _rows_with_sign(source: Relation, change: str, *, enter: bool) -> exp.Select:
    """The rows of a change that enter, or those that leave."""
    sign = (exp.GT if enter else exp.LT)(this=weight(), expression=exp.Literal.number(0))
    return exp.select(*names(source), key()).from_(exp.table_(change)).where(sign)


def _signed_rows(source: Relation, step: str) -> exp.Select:
    return exp.select(*names(source), key(), weight()).from_(step)


def _has_key(step: str, outer: str) -> exp.Expr:
    """Whether the row under an outer alias has the key of some row of a step."""
    same = exp.EQ(this=column(KEY, "_sml_d"), expression=column(KEY, outer))
    changed = exp.alias_(exp.table_(step), "_sml_d", table=True)
    return exp.Exists(this=exp.select(exp.Literal.number(1)).from_(changed).where(same))


def _is_together(tag: exp.Expr, direction: exp.Expr) -> exp.Expr:
    """Whether a row stays or changes in this direction."""
    return exp.or_(exp.EQ(this=tag, expression=exp.Literal.number(0)), exp.EQ(this=tag.copy(), expression=direction))


def _columns_of_core(contracted: JoinGraph) -> list[tuple[str, str]]:
    """Leaf alias and name of each of the core's columns that is read after the core is joined."""
    read = [*contracted.predicates, *(value for _, value in contracted.items), contracted.key]
    names = dict.fromkeys(c.name for e in read for c in e.find_all(exp.Column) if c.table == "_sml_t0")
    matches = (re.fullmatch(r"(_sml_t\d+)_(.*)", name, re.DOTALL) for name in names)
    return [(match[1], match[2]) for match in matches if match]
