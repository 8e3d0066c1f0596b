"""The change of any relation, as steps. Owns recomputing what is not linear: groups, windows, outer and semi joins.

For such a node the keys that a change touches (before and after images of every child) are collected, the node is
computed over the rows of these keys alone, as they were and as they are, and the difference is its change. This is
sound because rows of one key depend on rows of that key only. Source: the recomputation algorithm for affected groups
(Palpanas et al., "Incremental maintenance for non-distributive aggregate functions", 2002).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sqlmesh_like.analyze.lineage import split_columns, window_keys
from sqlmesh_like.analyze.operand import operand
from sqlmesh_like.analyze.relation import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Relation,
    Windowed,
    children,
    columns,
    inputs,
    is_linear_node,
)
from sqlmesh_like.delta.keys import column, encode, key
from sqlmesh_like.delta.program import TARGET, DeltaProgram, Prune, Step
from sqlmesh_like.delta.program import relation as outside
from sqlmesh_like.delta.rows import CURRENT, PREVIOUS, Reading, net, rows
from sqlmesh_like.delta.signs import signed


def delta(source: Relation) -> DeltaProgram:
    """The program of a table that is a relation without hidden state."""
    builder = Changes()
    if isinstance(source, Aggregate | Distinct) and _keys_of(source):
        return builder.from_stored(source)
    builder.step("changed", builder.of(source))
    builder.step("signed", net("changed", columns(source)))
    return DeltaProgram(tuple(builder.steps))


@dataclass
class Changes:
    """Collects the steps that the changes of nested nodes need, inner ones first."""

    steps: list[Step] = field(default_factory=list)
    _made: dict[int, str] = field(default_factory=dict)

    def of(self, source: Relation) -> exp.Select:
        """SELECT of a relation's signed rows, with all steps that it reads."""
        self._prepare(source)
        return rows(source, Reading("changes", self._made))

    def step(self, name: str, query: exp.Query, unless_empty: str | None = None, prune: Prune | None = None) -> str:
        self.steps.append(Step(name, query, unless_empty, prune))
        return name

    def from_stored(self, source: Aggregate | Distinct) -> DeltaProgram:
        """The program of a table whose rows are groups: their old rows are read from the table, by key."""
        affected = self._affected(source)
        keyed = encode([column(name) for name in _affected_columns(len(_keys_of(source)))])
        matching = exp.select(keyed).from_(affected).subquery()
        names = [key(), *[column(c.name) for c in columns(source)]]
        stored = exp.select(*names).from_(outside("target", TARGET)).where(exp.In(this=key(), query=matching))
        old = self.step("old", stored, affected, _prune(source, affected, include_target=True))
        fresh = rows(_narrowed(source, affected), CURRENT)
        new = self.step("recomputed", fresh, affected, _prune(source, affected))
        self.step("signed", signed(names, old, new))
        return DeltaProgram(tuple(self.steps))

    def _prepare(self, source: Relation) -> None:
        """Make the steps of every non-linear node below that has none yet."""
        if id(source) in self._made:
            return
        if is_linear_node(source):
            for child in children(source):
                self._prepare(child)
            return
        self._made[id(source)] = self._recomputed(source)

    def _recomputed(self, source: Relation) -> str:
        """The step that holds the change of a non-linear node."""
        affected = self._affected(source)
        number = len(self.steps)
        prune = _prune(source, affected)
        narrowed = _narrowed(source, affected)
        old = self.step(f"was_{number}", rows(narrowed, PREVIOUS), affected, prune)
        new = self.step(f"is_{number}", rows(narrowed, CURRENT), affected, prune)
        names = [key(), *[column(c.name) for c in columns(source)]]
        both = self.step(f"both_{number}", signed(names, old, new))
        return self.step(f"change_{number}", net(both, columns(source)))

    def _affected(self, source: Relation) -> str:
        """The step with the distinct keys that changes of the children touch (without keys: one row in all)."""
        selects: list[exp.Query] = []
        for child, expressions in _sides(source):
            schema = columns(child)
            changed = self.step(f"changed_{len(self.steps)}", self.of(child))
            netted = self.step(f"netted_{len(self.steps)}", net(changed, schema))
            named = zip(expressions, _affected_columns(len(expressions)), strict=True)
            items = [exp.alias_(expression.copy(), name, quoted=True) for expression, name in named]
            selects.append(exp.select(*(items or [exp.Literal.number(1).as_("_sml_any")])).distinct().from_(netted))
        query = selects[0]
        for further in selects[1:]:
            query = exp.union(query, further, distinct=True)
        return self.step(f"affected_{len(self.steps)}", query)


def _sides(source: Relation) -> list[tuple[Relation, list[exp.Expr]]]:
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
            return [column(c.name) for c in columns(source)]
        case Windowed():
            return window_keys(source)


def _affected_columns(count: int) -> list[str]:
    return [f"_sml_p{position}" for position in range(count)]


def _narrowed(source: Relation, affected: str) -> Relation:
    """The node over those rows of its children that have an affected key."""
    kept = [
        Filter(child, is_affected(expressions, affected)) if expressions else child
        for child, expressions in _sides(source)
    ]
    if isinstance(source, Join):
        return replace(source, left=kept[0], right=kept[1])
    assert isinstance(source, Aggregate | Distinct | Windowed)
    return replace(source, child=kept[0])


def is_affected(expressions: Sequence[exp.Expr], affected: str) -> exp.Expr:
    """Whether the values of a row stand in the step of affected keys; NULL is a value like any other."""
    # The alias must be no column that a user can have: a bare name in the subquery is looked up here first.
    pairs = [
        exp.NullSafeEQ(this=column(name, "_sml_affected"), expression=operand(expression))
        for name, expression in zip(_affected_columns(len(expressions)), expressions, strict=True)
    ]
    matching = exp.select(exp.Literal.number(1)).from_(exp.alias_(exp.table_(affected), "_sml_affected", table=True))
    return exp.Exists(this=matching.where(exp.and_(*pairs)))


def _prune(source: Relation, affected: str, *, include_target: bool = False) -> Prune:
    """Affected keys bound the partitions of inputs whose column they copy and, for a table of groups, its own."""
    pairs: dict[str, list[tuple[str, str]]] = {}
    dropped: set[str] = set()
    for child, expressions in _sides(source):
        origins = split_columns(child)
        traced: dict[str, list[tuple[str, str]]] = {}
        for expression, name in zip(expressions, _affected_columns(len(expressions)), strict=True):
            if isinstance(expression, exp.Column):
                for input_id, own in origins.get(expression.name.lower(), {}).items():
                    traced.setdefault(input_id, []).append((own, name))
        # An input that both sides read is one relation to the step: it must not be cut for one of them.
        dropped |= set(traced) & set(pairs)
        pairs |= traced
    if len(_sides(source)) > 1:
        sides = [set(inputs(child)) for child, _ in _sides(source)]
        dropped |= sides[0] & sides[1]
    if include_target:
        pairs[TARGET] = _shown_keys(source)
    return Prune(affected, {name: tuple(found) for name, found in pairs.items() if name not in dropped})


def _shown_keys(source: Relation) -> list[tuple[str, str]]:
    if isinstance(source, Distinct):
        return [
            (c.name, name) for c, name in zip(columns(source), _affected_columns(len(columns(source))), strict=True)
        ]
    assert isinstance(source, Aggregate)
    names = {named.name: name for named, name in zip(source.keys, _affected_columns(len(source.keys)), strict=True)}
    return [
        (item.name, names[item.expression.name])
        for item in source.items
        if isinstance(item.expression, exp.Column) and item.expression.name in names
    ]
