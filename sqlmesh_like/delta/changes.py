"""The change of any relation, as steps. Owns what is recomputed: groups, windows, outer joins, and what joins meet.

Everything starts at the change. Of each input its netted change is read, and of the other inputs only rows that can
meet it: they are looked up by the equalities of the query, from the change on, one table after the other.

- An inner join of any number of tables is one query over, for each table, the rows that stay and those that change. A
  combination of rows that stay is no change; one with rows that enter enters, one with rows that leave leaves, and one
  with both never was (the rows of a combination are all of one time). This is the telescoped sum
  ΔA⋈B_old ∪ A_new⋈ΔB, written so that no table is read as it was.
- For what is not linear (groups, windows, outer and semi joins) the keys that a change touches, before and after, are
  collected, the node is computed over the rows of these keys alone, as they were and as they are, and the difference is
  its change. Rows of one key depend on rows of that key only (Palpanas et al., "Incremental maintenance for
  non-distributive aggregate functions", 2002).

Rows as they were are the rows as they are, less those that entered, with those that left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from sqlmesh_like.analyze.lineage import window_keys
from sqlmesh_like.analyze.relation import (
    Aggregate,
    Distinct,
    Explode,
    Filter,
    Join,
    Relation,
    Scan,
    UnionAll,
    Windowed,
    children,
    columns,
    scanned_columns,
)
from sqlmesh_like.delta.crossing import changed_by_clock
from sqlmesh_like.delta.join_graph import JoinGraph, flatten
from sqlmesh_like.delta.keys import column, encode, key, weight
from sqlmesh_like.delta.lookups import Beside, Lookups, Match, keys_of, match_columns
from sqlmesh_like.delta.program import TARGET, DeltaProgram, Prune
from sqlmesh_like.delta.program import relation as outside
from sqlmesh_like.delta.rows import from_item, names, net, over, rows, stacked, subquery
from sqlmesh_like.delta.signs import signed
from sqlmesh_like.names import KEY, WEIGHT

_TAG = "_sml_tag"
"""Of a row of a joined table: 0 it stays, 1 it enters, -1 it leaves."""


def delta(source: Relation) -> DeltaProgram:
    """The program of a table that is a relation without hidden state."""
    builder = Changes(source)
    if isinstance(source, Aggregate | Distinct) and _keys_of(source):
        return builder.from_stored(source)
    builder.steps.add("signed", builder.of(source))
    return builder.steps.program()


@dataclass
class Changes:
    """Collects the steps that the changes of nested nodes need, inner ones first. `root` is the whole query."""

    root: Relation
    steps: Lookups = field(default_factory=Lookups)
    _netted: dict[object, str] = field(default_factory=dict)

    def of(self, source: Relation) -> exp.Select:
        """SELECT of a relation's signed rows; all steps that it reads are there."""
        graph = flatten(source, splits_clock=True)
        if len(graph.leaves) > 1:
            return self._of_join(graph)
        if graph.leaves[0] is source:
            return self._of_node(source)
        return graph.select([exp.table_(self.netted(graph.leaves[0]))], weight())

    def netted(self, source: Relation) -> str:
        """The step with a relation's change: at most one row that leaves and one that enters a key, and no equal two.

        An input's has the columns that the query uses.
        """
        known = source.input_id if isinstance(source, Scan) else id(source)
        if known not in self._netted:
            self._netted[known] = self._made(source)
        return self._netted[known]

    def _made(self, source: Relation) -> str:
        if isinstance(source, Scan):
            return self.steps.add(
                "delta", net(outside("changes", source.input_id), scanned_columns(self.root)[source.input_id])
            )
        changed = self.steps.add("changed", self.of(source))
        return self.steps.add("netted", net(exp.table_(changed), columns(source)))

    def _of_node(self, source: Relation) -> exp.Select:
        match source:
            case Scan():
                return _signed_rows(source, self.netted(source))
            case Filter():
                stay = self._stay(rows(source.child), source.child)
                return changed_by_clock(source, self.netted(source.child), stay)
            case UnionAll() | Explode():
                below = [subquery(self.of(child)) for child in children(source)]
                return over(source, *below, signed=True)
        return _signed_rows(source, self._recomputed(source))

    def _of_join(self, graph: JoinGraph) -> exp.Select:
        """One query over all tables of a join, each with what stays of it and what changes (see above)."""
        changes = [self.netted(leaf) for leaf in graph.leaves]
        tagged = [
            subquery(self._tagged(leaf, change, beside))
            for leaf, change, beside in zip(graph.leaves, changes, self.steps.meeting(graph, changes), strict=True)
        ]
        combined = _combined([column(_TAG, f"_sml_t{number}") for number in range(len(tagged))])
        weight_ = exp.cast(combined.copy(), "bigint", dialect="spark")
        query = graph.select(tagged, exp.alias_(weight_, WEIGHT, quoted=True))
        return query.where(exp.NEQ(this=combined, expression=exp.Literal.number(0)), copy=False)

    def _tagged(self, leaf: Relation, change: str, beside: Beside) -> exp.Query:
        """A table's rows that can meet a change: those that stay and its own change."""
        shown = names(leaf)
        tag = exp.alias_(column(WEIGHT), _TAG, quoted=True)
        parts: list[exp.Query] = [exp.select(*shown, key(), tag).from_(exp.table_(change))]
        for number, lookup in enumerate(beside.lookups):
            parts.append(self._staying(leaf, exp.table_(lookup), change, *beside.lookups[:number]))
        if beside.unreached_from:
            whole = self._staying(leaf, from_item(leaf), change, *beside.lookups)
            parts.append(whole.where(exp.or_(*(_has_rows(other) for other in beside.unreached_from)), copy=False))
        return stacked(parts)

    def _staying(self, leaf: Relation, rows: exp.Expr, *others: str) -> exp.Select:
        """Rows that none of the other steps has: a row that two lookups have found is one row."""
        zero = exp.alias_(exp.cast(exp.Literal.number(0), "bigint", dialect="spark"), _TAG, quoted=True)
        query = exp.select(*names(leaf), key(), zero).from_(exp.alias_(rows, "_sml_s", table=True, copy=False))
        return query.where(*(exp.Not(this=_has_key(other, "_sml_s")) for other in others), copy=False)

    def _stay(self, rows: exp.Query, source: Relation) -> exp.Select:
        """Of rows of a relation as they are those that have not changed."""
        shown = [column(c.name) for c in columns(source)]
        found = exp.select(*shown, key()).from_(exp.alias_(subquery(rows), "_sml_s", table=True))
        return found.where(exp.Not(this=_has_key(self.netted(source), "_sml_s")))

    def from_stored(self, source: Aggregate | Distinct) -> DeltaProgram:
        """The program of a table whose rows are groups: their old rows are read from the table, by key."""
        affected = self._affected(source)
        keyed = encode([column(name) for name in match_columns(len(_keys_of(source)))])
        matching = exp.select(keyed).from_(affected).subquery()
        shown = [key(), *names(source)]
        stored = exp.select(*shown).from_(outside("target", TARGET)).where(exp.In(this=key(), query=matching))
        bound = Prune(affected, {TARGET: _shown_keys(source)})
        old = self.steps.add("old", stored, affected, (bound,))
        (child, keys), *_ = sides(source)
        current = self.steps.lookup(child, Match.by(keys, affected))
        new = self.steps.add("recomputed", over(source, exp.table_(current)), affected)
        self.steps.add("signed", signed(shown, old, new))
        return self.steps.program()

    def _recomputed(self, source: Relation) -> str:
        """The step that holds the change of a non-linear node."""
        affected = self._affected(source)
        now: list[exp.Expr] = []
        then: list[exp.Expr] = []
        for child, keys in sides(source):
            if keys:
                current: exp.Expr = exp.table_(self.steps.lookup(child, Match.by(keys, affected)))
            else:  # one group of all rows: too many to be kept
                current = subquery(rows(child))
            now.append(current)
            previous = self._previous(child, current.copy())
            then.append(exp.table_(self.steps.add("rows_before", previous, affected)) if keys else subquery(previous))
        old = self.steps.add("result_before", over(source, *then), affected)
        new = self.steps.add("result_after", over(source, *now), affected)
        shown = [key(), *names(source)]
        both = self.steps.add("difference", signed(shown, old, new))
        return self.steps.add("netted", net(exp.table_(both), columns(source)))

    def _previous(self, source: Relation, current: exp.Expr) -> exp.Query:
        """Rows of a relation as they were, from those as they are and its change."""
        change = self.netted(source)
        shown = names(source)
        stay = exp.select(*shown, key()).from_(exp.alias_(current, "_sml_s", table=True))
        stay = stay.where(exp.Not(this=_has_key(change, "_sml_s")))
        left = exp.select(*[s.copy() for s in shown], key()).from_(exp.table_(change))
        return stacked([stay, left.where(exp.LT(this=weight(), expression=exp.Literal.number(0)))])

    def _affected(self, source: Relation) -> str:
        """The step with the distinct keys that changes of the children touch (without keys: one row in all)."""
        selects = [keys_of(keys, [self.netted(child)]) for child, keys in sides(source)]
        query = selects[0]
        for further in selects[1:]:
            query = exp.union(query, further, distinct=True)
        return self.steps.add("affected", query)


def sides(source: Relation) -> list[tuple[Relation, list[exp.Expr]]]:
    """Each child with the expressions over it that are the node's keys, in the same order for every child."""
    match source:
        case Join():
            return [(source.left, [p.left for p in source.pairs]), (source.right, [p.right for p in source.pairs])]
        case Aggregate() | Distinct() | Windowed():
            return [(source.child, _keys_of(source))]
    raise AssertionError(f"{type(source).__name__} is linear")


def _keys_of(source: Aggregate | Distinct | Windowed) -> list[exp.Expr]:
    match source:
        case Aggregate():
            return [named.expression for named in source.keys]
        case Distinct():
            return names(source)
        case Windowed():
            return window_keys(source)


def _signed_rows(source: Relation, step: str) -> exp.Select:
    return exp.select(*names(source), key(), weight()).from_(step)


def _aliased(step: str, alias: str) -> exp.Expr:
    return exp.alias_(exp.table_(step), alias, table=True)


def _has_rows(step: str) -> exp.Expr:
    return exp.Exists(this=exp.select(exp.Literal.number(1)).from_(_aliased(step, "_sml_d")))


def _has_key(step: str, outer: str) -> exp.Expr:
    """Whether the row of an outer alias has the key of a row of a step."""
    same = exp.EQ(this=column(KEY, "_sml_d"), expression=column(KEY, outer))
    return exp.Exists(this=exp.select(exp.Literal.number(1)).from_(_aliased(step, "_sml_d")).where(same))


def _combined(tags: Sequence[exp.Expr]) -> exp.Expr:
    """The weight of a combination of rows: 0 where all stay, and where some leave and others enter."""
    greatest = exp.Greatest(this=tags[0].copy(), expressions=[tag.copy() for tag in tags[1:]])
    least = exp.Least(this=tags[0].copy(), expressions=[tag.copy() for tag in tags[1:]])
    return exp.Sign(this=exp.Add(this=greatest, expression=least))


def _shown_keys(source: Aggregate | Distinct) -> tuple[tuple[str, str], ...]:
    """Visible columns of a table of groups that are its keys, with the columns of the affected ones."""
    if isinstance(source, Distinct):
        found = columns(source)
        return tuple((c.name, name) for c, name in zip(found, match_columns(len(found)), strict=True))
    keys = {named.name: name for named, name in zip(source.keys, match_columns(len(source.keys)), strict=True)}
    return tuple(
        (item.name, keys[item.expression.name])
        for item in source.items
        if isinstance(item.expression, exp.Column) and item.expression.name in keys
    )
