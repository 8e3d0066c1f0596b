"""The rows of relations that a change can match. Owns how keys of a change lead from one table of a query to the next.

A step of keys holds distinct values; a *lookup* is the step with the current rows of a relation that have one of these.
Lookups go down to the inputs: below a GROUP BY by its keys, through UNION ALL into each branch, along the equalities of
joins. A relation to which no key leads is read in full.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from sqlmesh_like.analyze.algebra.lineage import window_keys
from sqlmesh_like.analyze.algebra.relation import (
    Aggregate,
    Distinct,
    Explode,
    Join,
    NodeNumbers,
    OneRow,
    Relation,
    ScalarValue,
    Scan,
    TopK,
    UnionAll,
    Windowed,
    columns,
)
from sqlmesh_like.analyze.binding.expression_copies import operand
from sqlmesh_like.delta.affected_keys import key_columns, keys_of
from sqlmesh_like.delta.join_graph import JoinGraph, flatten, leaves_of, substitute_columns, unqualify_columns
from sqlmesh_like.delta.keys import column
from sqlmesh_like.delta.program import DeltaProgram, ProgramStep, Prune
from sqlmesh_like.delta.program import relation as outside
from sqlmesh_like.delta.rows import from_item, over, rows, subquery

_MATCH = "_sml_m"


@dataclass(frozen=True)
class Match:
    """A condition on rows: their `expressions` equal, in this order, the columns `names` of some row of a step."""

    expressions: tuple[exp.Expr, ...]
    step: str
    names: tuple[str, ...]
    is_null_safe: tuple[bool, ...]

    @staticmethod
    def by(expressions: Sequence[exp.Expr], step: str, null_safe: Sequence[bool] | None = None) -> Match:
        """A match by all columns of a step; NULL equals NULL unless `null_safe` says otherwise."""
        safe = tuple(null_safe) if null_safe is not None else (True,) * len(expressions)
        return Match(tuple(expressions), step, tuple(key_columns(len(expressions))), safe)

    def with_expressions(self, expressions: Mapping[int, exp.Expr]) -> Match | None:
        """The match reduced to these positions, with new expressions for them; None if there are none."""
        kept = sorted(expressions)
        if not kept:
            return None
        return Match(
            tuple(expressions[n] for n in kept), self.step,
            tuple(self.names[n] for n in kept), tuple(self.is_null_safe[n] for n in kept),
        )  # fmt: skip

    def condition(self, expressions: Sequence[exp.Expr] | None = None) -> exp.Expr:
        """SQL for whether a row matches; `expressions` replaces the match's own ones for use in another query."""
        pairs = [
            (exp.NullSafeEQ if is_safe else exp.EQ)(this=column(name, _MATCH), expression=operand(expression))
            for name, expression, is_safe in zip(
                self.names, expressions or self.expressions, self.is_null_safe, strict=True
            )
        ]
        conditions = exp.select(exp.Literal.number(1)).from_(exp.alias_(exp.table_(self.step), _MATCH, table=True))
        return exp.Exists(this=conditions.where(exp.and_(*pairs)) if pairs else conditions)

    def prune(self, input_id: str) -> Prune | None:
        """The partition pruning that follows for an input over whose columns this match is; None if there is none."""
        pairs = [(e.name, n) for e, n in zip(self.expressions, self.names, strict=True) if isinstance(e, exp.Column)]
        return Prune(self.step, {input_id: tuple(pairs)}) if pairs else None

    @property
    def identity(self) -> tuple[object, ...]:
        return (self.step, self.names, tuple(repr(e) for e in self.expressions), self.is_null_safe)


@dataclass
class Lookups:
    """The steps of a program as they are added, and the lookups among them.

    `small` inputs are read whole, since looking up their rows would cost more.
    """

    small: frozenset[str] = frozenset()
    _steps: list[ProgramStep] = field(default_factory=list)
    nodes: NodeNumbers = field(default_factory=NodeNumbers)
    _known: dict[tuple[object, ...], str] = field(default_factory=dict)

    def add(
        self,
        kind: str,
        query: exp.Query,
        unless_empty: str | None = None,
        prunes: tuple[Prune, ...] = (),
        *,
        is_rare: bool = False,
    ) -> str:
        """Add a step and return its name, which starts with its kind."""
        taken = {step.name for step in self._steps}
        name = kind if kind not in taken else f"{kind}_{len(self._steps)}"
        self._steps.append(ProgramStep(name, query, unless_empty, prunes, is_rare))
        return name

    def program(self) -> DeltaProgram:
        return DeltaProgram(tuple(self._steps))

    def lookup(self, source: Relation, *matches: Match) -> str:
        """The step with exactly the current rows of a relation for which all matches hold."""
        identity = (self.nodes.of(source), *(match.identity for match in matches))
        if identity not in self._known:
            self._known[identity] = self._add_lookup(source, matches)
        return self._known[identity]

    def _add_lookup(self, source: Relation, matches: Sequence[Match]) -> str:
        graph = flatten(source)
        spelt = [tuple(graph.resolve_to_leaves(expression) for expression in match.expressions) for match in matches]
        conditions = [match.condition(own) for match, own in zip(matches, spelt, strict=True)]
        seeds = [self._by_leaf(match, own) for match, own in zip(matches, spelt, strict=True)]
        if len(graph.leaves) == 1:
            leaf = graph.leaves[0]
            own = [result for seed in seeds for result in seed.values()]
            query = graph.select([self._leaf(leaf, own)]).where(*conditions, copy=False)
            prunes = [prune for m in own if isinstance(leaf, Scan) and (prune := m.prune(leaf.input_id))]
            return self.add("lookup", query, prunes=tuple(prunes))
        sources = self._look_up_leaves(graph, seeds)
        return self.add("joined", graph.select(sources).where(*conditions, copy=False))

    def _by_leaf(self, match: Match, spelt: Sequence[exp.Expr]) -> dict[int, Match]:
        """The parts of a match that read a single leaf, by leaf and over its own columns."""
        by_leaf: dict[int, dict[int, exp.Expr]] = {}
        for position, expression in enumerate(spelt):
            read = leaves_of(expression)
            if len(read) == 1:
                by_leaf.setdefault(next(iter(read)), {})[position] = unqualify_columns(expression)
        return {leaf: result for leaf, own in by_leaf.items() if (result := match.with_expressions(own)) is not None}

    def _leaf(self, leaf: Relation, matches: Sequence[Match]) -> exp.Expr:
        """FROM item with at least the rows of a leaf for which all matches hold; each group is complete or absent."""
        if isinstance(leaf, Scan):
            return outside("current", leaf.input_id)
        return self._node(leaf, matches) or subquery(rows(leaf))

    def _node(self, node: Relation, matches: Sequence[Match]) -> exp.Expr | None:
        """An operator over lookups in its children; None if no match can be pushed down."""
        if isinstance(node, UnionAll):
            below = []
            for branch in node.branches:
                pairs = zip(node.schema, columns(branch), strict=True)
                renamed: Mapping[str, exp.Expr] = {merged.name.lower(): column(own.name) for merged, own in pairs}
                below.append(self._through(matches, renamed))
            return subquery(over(node, *(self._source(b, m) for b, m in zip(node.branches, below, strict=True))))
        if isinstance(node, Join):
            return self._outer(node, matches)
        if isinstance(node, OneRow | TopK | ScalarValue):
            return None
        assert isinstance(node, Aggregate | Distinct | Windowed | Explode)
        passed = self._through(matches, _columns_shared_in_group(node))
        return subquery(over(node, exp.table_(self.lookup(node.child, *passed)))) if passed else None

    def _source(self, child: Relation, matches: Sequence[Match]) -> exp.Expr:
        return exp.table_(self.lookup(child, *matches)) if matches else from_item(child)

    def _through(self, matches: Sequence[Match], known: Mapping[str, exp.Expr]) -> list[Match]:
        """Matches over an operator's columns rewritten over its child's, as far as `known` allows."""
        entries = []
        for match in matches:
            below = {
                position: substitute_columns(expression, known)
                for position, expression in enumerate(match.expressions)
                if all(c.name.lower() in known for c in expression.find_all(exp.Column))
            }
            entries.append(match.with_expressions(below))
        return [match for match in entries if match is not None]

    def _outer(self, join: Join, matches: Sequence[Match]) -> exp.Expr | None:
        """The join over matching rows of its preserved side and the other side's rows that join them; None if none."""
        if join.kind == "full":
            return None
        first, second = (join.right, join.left) if join.kind == "right" else (join.left, join.right)
        own = {c.name.lower(): column(c.name) for c in columns(first)}
        passed = self._through(matches, own)
        if not passed:
            return None
        kept = self.lookup(first, *passed)
        pairs = [(p.right, p.left) if join.kind == "right" else (p.left, p.right) for p in join.pairs]
        met = from_item(second)
        if pairs:
            keys = self.add("keys", keys_of([one for one, _ in pairs], [kept]))
            safe = [pair.is_null_safe for pair in join.pairs]
            met = exp.table_(self.lookup(second, Match.by([other for _, other in pairs], keys, safe)))
        kept_item = exp.table_(kept)
        return subquery(over(join, met, kept_item) if join.kind == "right" else over(join, kept_item, met))

    def _look_up_leaves(self, graph: JoinGraph, seeds: Sequence[Mapping[int, Match]]) -> list[exp.Expr]:
        """FROM items of a graph's leaves, looked up starting from the leaves that matches restrict."""
        own = {leaf: [seed[leaf] for seed in seeds if leaf in seed] for leaf in range(len(graph.leaves))}
        entries = {leaf: self.lookup(graph.leaves[leaf], *given) for leaf, given in own.items() if given}
        return self.beside(graph, entries) if entries else [from_item(leaf) for leaf in graph.leaves]

    def beside(self, graph: JoinGraph, known: Mapping[int, str]) -> list[exp.Expr]:
        """FROM items of a graph's leaves, some of them known steps; of the others, only rows that can join these.

        Small leaves, and those to which no equality leads, are read whole.
        """
        result = dict(known)
        small: dict[int, frozenset[int]] = {}
        route = _Route(graph, set(result), frozenset(range(len(graph.leaves))))
        while following := route.next():
            for leaf, reached in following:
                if self._is_small(graph.leaves[leaf]):
                    small[leaf] = reached
                else:
                    self._meet(graph, leaf, reached, result, small)
            route.reached |= {leaf for leaf, _ in following}
        return [
            exp.table_(result[leaf]) if leaf in result else from_item(node) for leaf, node in enumerate(graph.leaves)
        ]

    def _meet(
        self, graph: JoinGraph, leaf: int, reached: Iterable[int], meeting: dict[int, str],
        small: Mapping[int, frozenset[int]],
    ) -> None:  # fmt: skip
        """Look up a leaf by the reached leaves; of these, small ones are looked up first."""
        for other in reached:
            if other not in meeting:
                self._meet(graph, other, small[other], meeting, small)
        meeting[leaf] = self._look_up_joinable(graph, leaf, {other: [meeting[other]] for other in reached})

    def _is_small(self, leaf: Relation) -> bool:
        return isinstance(leaf, Scan) and leaf.input_id in self.small

    def _look_up_joinable(self, graph: JoinGraph, leaf: int, known: Mapping[int, Sequence[str]]) -> str:
        """The lookup of the rows of a leaf that can join rows of each of these other leaves, given as steps."""
        matches = []
        for other, steps in sorted(known.items()):
            towards = [(edge, lookup) for edge in graph.edges if (lookup := edge.towards(leaf)) and lookup[0] == other]
            keys = self._keys([unqualify_columns(lookup[1]) for _, lookup in towards], steps)
            own = [unqualify_columns(lookup[2]) for _, lookup in towards]
            matches.append(Match.by(own, keys, [edge.is_null_safe for edge, _ in towards]))
        return self.lookup(graph.leaves[leaf], *matches)

    def _keys(self, expressions: Sequence[exp.Expr], steps: Sequence[str]) -> str:
        identity = ("keys", tuple(map(repr, expressions)), *steps)
        if identity not in self._known:
            self._known[identity] = self.add("keys", keys_of(expressions, steps))
        return self._known[identity]

    def meeting(self, graph: JoinGraph, core: frozenset[int], changes: Mapping[int, str]) -> dict[tuple[int, int], str]:
        """By leaf and changed leaf, the lookup with all rows of the former that can join a change of the latter.

        Leaves are those of the core; `changes` are steps. From each change the other leaves are reached one by one;
        changes that take the same route share lookups. Keys are taken from looked-up rows and from the leaf's own
        change, since a joined row may have changed as well. There is no entry if no equality leads to a leaf.
        """
        pieces = {(leaf, leaf): [step] for leaf, step in changes.items()}
        waiting: dict[tuple[int, frozenset[int]], list[int]] = {}
        for seed in changes:
            for way in _Route(graph, {seed}, core).whole():
                waiting.setdefault(way, []).append(seed)
        entries: dict[tuple[int, int], str] = {}
        while waiting:
            (leaf, known), seeds = max(waiting.items(), key=lambda each: len(self._can_go(each, pieces)) / len(each[1]))
            going = self._can_go(((leaf, known), seeds), pieces)
            sources = {n: list(dict.fromkeys(s for seed in going for s in pieces[n, seed])) for n in known}
            step = self._look_up_joinable(graph, leaf, sources)
            for seed in going:
                entries[leaf, seed] = step
                pieces[leaf, seed] = [step, *([changes[leaf]] if leaf in changes else [])]
            waiting[leaf, known] = [seed for seed in seeds if seed not in going]
            if not waiting[leaf, known]:
                del waiting[leaf, known]
        return entries

    def _can_go(
        self, way: tuple[tuple[int, frozenset[int]], list[int]], pieces: Collection[tuple[int, int]]
    ) -> list[int]:
        """Changes for which all leaves that lead to the next one are already looked up."""
        (_, known), seeds = way
        return [seed for seed in seeds if all((leaf, seed) in pieces for leaf in known)]


@dataclass
class _Route:
    """The order in which the leaves `among` those of a graph are reached from others."""

    graph: JoinGraph
    reached: set[int]
    among: frozenset[int]

    def whole(self) -> Iterator[tuple[int, frozenset[int]]]:
        """All reachable leaves in order, each with the leaves that lead to it."""
        while following := self.next():
            yield from following
            self.reached |= {leaf for leaf, _ in following}

    def next(self) -> list[tuple[int, frozenset[int]]]:
        """Leaves next to the reached ones, each with the reached ones to which it has equalities; empty at the end.

        A leaf that can also be reached by another path waits until that is explored: more equalities find fewer rows.
        """
        known = {leaf: self.graph.neighbours(leaf) & self.reached for leaf in sorted(self.among - self.reached)}
        beside = [(leaf, frozenset(result)) for leaf, result in known.items() if result]
        settled = [each for each in beside if not self._has_other_way(each[0])]
        return settled or sorted(beside, key=lambda each: (-len(each[1]), each[0]))[:1]

    def _has_other_way(self, leaf: int) -> bool:
        """Whether a neighbour that is not reached yet can be reached without going through the leaf."""
        ahead = set(self.graph.neighbours(leaf) & self.among) - self.reached
        seen = set(ahead)
        while ahead:
            beside = (self.graph.neighbours(ahead.pop()) & self.among) - {leaf}
            if beside & self.reached:
                return True
            ahead |= beside - seen
            seen |= beside
        return False


def _columns_shared_in_group(node: Aggregate | Distinct | Windowed | Explode) -> dict[str, exp.Expr]:
    """Columns of a node whose values are shared by all rows of a group, as expressions over its child."""
    match node:
        case Distinct() | Explode():
            return {c.name.lower(): column(c.name) for c in columns(node.child)}
        case Aggregate():
            keys = {named.name.lower(): named.expression for named in node.keys}
            return {
                item.name.lower(): keys[item.expression.name.lower()]
                for item in node.items
                if isinstance(item.expression, exp.Column) and item.expression.name.lower() in keys
            }
        case Windowed():
            shared = {repr(key) for key in window_keys(node)}
            return {i.name.lower(): i.expression for i in node.items if repr(i.expression) in shared}
