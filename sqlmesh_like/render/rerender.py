"""Nodes rendered a second time, when they are run and a lake answers queries. Owns that they read nothing new."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import replace

from sqlmesh_like.errors import JinjaError, Location, NodeError
from sqlmesh_like.project.nodes import ParsedProject
from sqlmesh_like.render.adapter_functions import LakeQueries
from sqlmesh_like.render.library.node import Entries
from sqlmesh_like.render.overrides import NO_OVERRIDES, Overrides
from sqlmesh_like.render.placement import by_id
from sqlmesh_like.render.rendered import InputRef, RenderedModel, RenderedTest
from sqlmesh_like.render.renderer import Renderer
from sqlmesh_like.render.unit_tests import spelt

_RENDERING: ContextVar[frozenset[str]] = ContextVar("_RENDERING", default=frozenset())


def is_rendering(unique_id: str) -> bool:
    """Whether this node's template is asking."""
    return unique_id in _RENDERING.get()


class AsksItself(NodeError):
    """A view's template asks about that view, which is stored nowhere."""


class Rerenderer:
    """Renders nodes anew whose templates ask a lake; the others stay as they are.

    `answers` gives the lake's answers, with views that ask in turn rendered by this one; without it nothing is rendered
    but by `asking`. `graph` is the project's, as manifest.json has it.
    """

    def __init__(
        self,
        renderer: Renderer,
        project: ParsedProject,
        answers: Callable[[Rerenderer], LakeQueries] | None,
        graph: Entries,
    ) -> None:
        placed = renderer.placement.place_all()
        self._placed = by_id(placed)
        self._tests = {test.unique_id: test for test in project.tests}
        self._registry = renderer.placement.registry(placed)
        self._unanswered, self._graph = renderer, graph
        self._renderer = None if answers is None else renderer.answered_by(answers(self), graph)

    def asking(self, answers: Callable[[Rerenderer], LakeQueries], overrides: Overrides = NO_OVERRIDES) -> Rerenderer:
        """One of the same project with other answers, and with something in place of macros and variables."""
        other = copy.copy(self)
        renderer = self._unanswered.with_overrides(overrides) if overrides != NO_OVERRIDES else self._unanswered
        other._renderer = renderer.answered_by(answers(other), self._graph)
        return other

    def model(self, model: RenderedModel) -> RenderedModel:
        """The model by what its template gives now. Raises JinjaError, and NodeError of a question."""
        if not model.asks_lake or model.unique_id not in self._placed:
            return model
        if model.unique_id in _RENDERING.get():
            raise AsksItself(f"the template of {model.name!r} asks about itself", hint="a view has no rows of its own")
        assert self._renderer is not None
        before = _RENDERING.set(_RENDERING.get() | {model.unique_id})
        try:
            rendered = self._renderer.render_model(self._placed[model.unique_id], self._registry)
        finally:
            _RENDERING.reset(before)
        _refuse_unforeseen(model.path, model.inputs, rendered.inputs)
        return replace(rendered, asks_lake=False)

    def text(self, sql: str, path: str) -> str:
        """A SELECT that is not a node by what its template gives now. Raises as `model` does."""
        assert self._renderer is not None
        return self._renderer.render_text(sql, path, self._registry).sql

    def test(self, test: RenderedTest) -> RenderedTest:
        """The test by what its template gives now. Raises as `model` does."""
        assert self._renderer is not None
        rendered = self._renderer.render_test(self._tests[test.unique_id], self._registry) if test.asks_lake else None
        if rendered is None:
            return test
        _refuse_unforeseen(test.path, test.inputs, rendered.inputs)
        return replace(rendered, asks_lake=False)


def _refuse_unforeseen(path: str, known: Iterable[InputRef], inputs: Iterable[InputRef]) -> None:
    """As in dbt: what is read must be known before anything runs, for the order of the graph rests on it.

    A source is built by nobody here: it may be chosen once the lake has answered.
    """
    foreseen = {ref.unique_id for ref in known}
    for ref in inputs:
        if ref.unique_id not in foreseen and ref.kind != "source":
            name = ref.unique_id.short_name
            message = f"{name!r} is only read once the lake has answered: the graph does not know of it"
            raise JinjaError(message, location=Location(path), hint=f"add -- depends_on: {{{{ {spelt(ref)} }}}}")
