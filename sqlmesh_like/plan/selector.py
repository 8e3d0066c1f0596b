"""Selection in dbt's syntax. Owns `+m+`, `2+m`, `@m`, union, intersection, exclusion and the tests selected with nodes.

The grammar is `project.selection`'s, what a method matches is in `selector_methods`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce

from sqlmesh_like.errors import SelectionError, nearest
from sqlmesh_like.plan.graph import Graph
from sqlmesh_like.plan.selector_methods import matches
from sqlmesh_like.plan.state_comparison import ComparisonState
from sqlmesh_like.project.selection import (
    Indirect,
    Selector,
    SelectorDifference,
    SelectorIntersection,
    SelectorTerm,
    SelectorUnion,
    parse_word,
)

_Ids = frozenset[str]


def select(
    graph: Graph,
    select: tuple[str, ...] = (),
    exclude: tuple[str, ...] = (),
    *,
    named: Selector | None = None,
    past: ComparisonState | None = None,
    indirect: Indirect = "eager",
) -> tuple[str, ...]:
    """Return unique ids of the selected nodes, every one after its inputs. An empty `select` means every node.

    `named` is a selector of selectors.yml, which replaces `select`. `indirect` decides which tests are selected with
    their nodes; a test is excluded with any of its nodes. Raises SelectionError for a malformed selector and for a
    selection that matches nothing, unless it compares with an earlier state: that nothing differs is a valid result,
    as is all of a project without nodes.
    """
    evaluation = _Evaluation(graph, past, indirect)
    if named is not None:
        selection = evaluation.evaluate(named)
    elif select and not _words(select):
        hint = "without --select, all nodes are selected; a variable of the shell may be empty"
        raise SelectionError("--select names nothing", hint=hint)
    elif select:
        selection = _each(evaluation, graph, select)
    else:
        selection = _Matches(frozenset(graph.nodes))
    if exclude:
        excluded = _Evaluation(graph, past, "eager")
        selection = selection.minus(
            excluded.evaluate(SelectorUnion(tuple(parse_word(word) for word in _words(exclude))))
        )
    chosen = evaluation.add_awaiting_tests(selection)
    is_everything = named is None and not select
    if not chosen and not compares((*select, *exclude), named) and (graph.nodes or not is_everything):
        raise SelectionError(f"nothing is left of the selection {_spelling(select, exclude, named)}")
    return graph.order(chosen)


def exclusion_warnings(graph: Graph, exclude: tuple[str, ...]) -> list[str]:
    """Return a warning for each word of `--exclude` that matches nothing, such as a misspelt one.

    Raises SelectionError for a malformed word.
    """
    evaluation = _Evaluation(graph, None, "eager")
    return [
        f"--exclude {word!r} matches nothing ({_hint(graph, word)})"
        for word in _words(exclude)
        if not compares((word,)) and not evaluation.evaluate(parse_word(word)).direct
    ]


def _words(texts: tuple[str, ...]) -> list[str]:
    return [word for text in texts for word in text.split()]


def _each(evaluation: _Evaluation, graph: Graph, select: tuple[str, ...]) -> _Matches:
    """The union of all words. Raises SelectionError for a word that matches nothing: the others must not hide it."""
    union = _Matches()
    for word in _words(select):
        part = evaluation.evaluate(parse_word(word))
        if not part.direct and not _may_be_empty(evaluation, parse_word(word)):
            raise SelectionError(f"selector {word!r} matches nothing", hint=_hint(graph, word))
        union = union.plus(part)
    return union


def compares(select: tuple[str, ...], named: Selector | None = None) -> bool:
    """Whether a selection compares with an earlier state, by `state:`, `result:` or `source_status:`.

    >>> compares(("state:modified+",)), compares(("orders",))
    (True, False)
    """
    asked = [*map(parse_word, _words(select)), *([named] if named is not None else [])]
    return any(_is_comparison(term) for selector in asked for term in _terms(selector))


def _may_be_empty(evaluation: _Evaluation, word: Selector) -> bool:
    """Whether a word may match nothing: it compares with an earlier state, and its other terms all match something."""
    terms = _terms(word)
    others = [term for term in terms if not _is_comparison(term)]
    return len(others) < len(terms) and all(evaluation.evaluate(term).direct for term in others)


def _is_comparison(term: SelectorTerm) -> bool:
    return term.method.partition(".")[0] in ("state", "result", "source_status")


def _terms(selector: Selector) -> list[SelectorTerm]:
    """The terms of a selector, each once: a selector of selectors.yml may be used by many others."""
    terms: dict[int, SelectorTerm] = {}
    seen: set[int] = set()
    waiting: list[Selector] = [selector]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        match part:
            case SelectorTerm():
                terms[id(part)] = part
            case SelectorUnion(of) | SelectorIntersection(of):
                waiting += reversed(of)
            case SelectorDifference(of, minus):
                waiting += (minus, of)
    return list(terms.values())


def _spelling(select: tuple[str, ...], exclude: tuple[str, ...], named: Selector | None) -> str:
    chosen = f"--select {' '.join(select)}" if select else "of the selector" if named else "of everything"
    return f"{chosen} --exclude {' '.join(exclude)}" if exclude else chosen


@dataclass(frozen=True)
class _Matches:
    """Selected nodes, and tests that will be selected too if all the nodes that they need are in the end."""

    direct: _Ids = frozenset()
    awaiting: frozenset[tuple[str, Indirect]] = frozenset()

    def plus(self, other: _Matches) -> _Matches:
        return _Matches(self.direct | other.direct, self.awaiting | other.awaiting)

    def meet(self, other: _Matches) -> _Matches:
        # A test that one side selected while it awaits nodes on the other keeps awaiting them, as in dbt.
        both = (self.awaiting & other.awaiting) | self._awaiting(other) | other._awaiting(self)
        return _Matches(self.direct & other.direct, both)

    def _awaiting(self, other: _Matches) -> frozenset[tuple[str, Indirect]]:
        return frozenset(pair for pair in self.awaiting if pair[0] in other.direct)

    def minus(self, other: _Matches) -> _Matches:
        return _Matches(self.direct - other.direct, frozenset(p for p in self.awaiting if p[0] not in other.direct))


@dataclass(frozen=True)
class _Evaluation:
    graph: Graph
    past: ComparisonState | None
    indirect: Indirect
    done: dict[tuple[Indirect, int], tuple[Selector, _Matches]] = field(default_factory=dict)
    """What a part matches, by its identity: selectors that use each other would be evaluated once for each path."""

    def evaluate(self, selector: Selector) -> _Matches:
        key = self.indirect, id(selector)
        if key not in self.done:  # the selector is stored too: its identity must stay its own
            self.done[key] = selector, self._evaluate_parts(selector)
        return self.done[key][1]

    def _evaluate_parts(self, selector: Selector) -> _Matches:
        match selector:
            case SelectorTerm():
                return self._expand_term(selector)
            case SelectorUnion(of):
                return reduce(_Matches.plus, map(self.evaluate, of), _Matches())
            case SelectorIntersection(of):
                return reduce(_Matches.meet, map(self.evaluate, of))
            case SelectorDifference(of, minus):
                eager = _Evaluation(self.graph, self.past, "eager", self.done)
                return self.evaluate(of).minus(eager.evaluate(minus))

    def add_awaiting_tests(self, selection: _Matches) -> _Ids:
        """Add the awaiting tests whose nodes are now selected, by whichever part of the selection."""
        modes = {mode: self._test_predicate(mode, selection.direct) for _, mode in selection.awaiting}
        return selection.direct | {test for test, mode in selection.awaiting if modes[mode](test)}

    def _expand_term(self, term: SelectorTerm) -> _Matches:
        chosen = self._with_relatives(term)
        mode = term.indirect or self.indirect
        tests = self._tests_of(chosen)
        # Before intersection, so that `orders,test_type:generic` are the generic tests of orders.
        along = frozenset(filter(self._test_predicate(mode, chosen), tests))
        awaiting = frozenset() if mode == "empty" else tests - along - chosen
        return _Matches(chosen | along, frozenset((test, mode) for test in awaiting))

    def _with_relatives(self, term: SelectorTerm) -> _Ids:
        direct = matches(self.graph, term, self.past)
        expanded = set(direct)
        for unique_id in direct:
            if term.at:
                below = {unique_id, *self.graph.descendants(unique_id)}
                expanded |= self.graph.above(below)
            if term.parents:
                expanded |= self.graph.ancestors(unique_id, term.parents_depth)
            if term.children:
                expanded |= self.graph.descendants(unique_id, term.children_depth)
        return frozenset(expanded)

    def _tests_of(self, chosen: _Ids) -> _Ids:
        tests = {child for unique_id in chosen for child in self.graph.children(unique_id)}
        return frozenset(child for child in tests if self._type(child) in ("test", "unit_test"))

    def _test_predicate(self, mode: Indirect, chosen: _Ids) -> Callable[[str], bool]:
        """Return a predicate: whether a test is selected with these nodes, one of which it reads."""
        match mode:
            case "eager":
                return lambda _: True
            case "empty":
                return lambda _: False
            case "cautious":
                needed = chosen
            case "buildable":
                sources = (unique_id for unique_id in self.graph.nodes if self._type(unique_id) == "source")
                needed = self.graph.above(chosen).union(sources)
        return lambda test: needed.issuperset(self.graph.parents(test))

    def _type(self, unique_id: str) -> str:
        return self.graph.nodes[unique_id].resource_type


def _hint(graph: Graph, selector: str) -> str:
    known = [*(node.search_name for node in graph.nodes.values())]
    known += [f"tag:{tag}" for node in graph.nodes.values() for tag in node.tags]
    bodies = [word.strip("+@0123456789") for word in selector.split(",")]
    hints = (
        _value_hint(graph, *body.split(":", 1)) or nearest(body, known) or nearest(body.partition(":")[2], known)
        for body in bodies
    )
    return next((hint for hint in hints if hint), "see what there is: sml ls")


def _value_hint(graph: Graph, method: str, value: str = "") -> str | None:
    """A hint for a method whose values are not names."""
    nodes = graph.nodes.values()
    known: set[str]
    if method == "resource_type":
        known = {str(node.resource_type) for node in nodes}
    elif method == "test_type":
        known = {"data", "generic", "singular", "unit"}
    elif method.startswith("config."):
        key = method.removeprefix("config.")
        if all(key not in node.config for node in nodes):
            return nearest(key, {name for node in nodes for name in node.config}) or f"no node sets {key!r}"
        known = {str(node.config[key]) for node in nodes if node.config.get(key) is not None}
    else:
        return None
    return nearest(value, sorted(known)) or f"its values here: {', '.join(sorted(known)[:20])}"
