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
from sqlmesh_like.render.unit_tests import jinja_call

_RENDERING: ContextVar[frozenset[str]] = ContextVar("_RENDERING", default=frozenset())


def is_rendering(unique_id: str) -> bool:
    """Whether this node's template is being rendered again."""
    return unique_id in _RENDERING.get()


class AsksItself(NodeError):
    """A view's template queries that view itself, which is not stored."""


class Rerenderer:
    """Renders nodes whose templates query a lake again; the others stay as they are.

    `answers` returns the lake, which uses this rerenderer for views whose templates query it in turn; without `answers`
    only rerenderers from `asking` can render. `graph` is the project's, as in manifest.json.
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
        self._renderer = None if answers is None else renderer.with_lake(answers(self), graph)

    def asking(self, answers: Callable[[Rerenderer], LakeQueries], overrides: Overrides = NO_OVERRIDES) -> Rerenderer:
        """A rerenderer of the same project with other answers, and with overrides of macros and variables."""
        other = copy.copy(self)
        renderer = self._unanswered.with_overrides(overrides) if overrides != NO_OVERRIDES else self._unanswered
        other._renderer = renderer.with_lake(answers(other), self._graph)
        return other

    def model(self, model: RenderedModel) -> RenderedModel:
        """The model with its template rendered again. Raises JinjaError, and NodeError if a query fails."""
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
        """The SQL of a SELECT that is not a node, rendered again. Raises as `model` does."""
        assert self._renderer is not None
        return self._renderer.render_text(sql, path, self._registry).sql

    def test(self, test: RenderedTest) -> RenderedTest:
        """The test with its template rendered again. Raises as `model` does."""
        assert self._renderer is not None
        rendered = self._renderer.render_test(self._tests[test.unique_id], self._registry) if test.asks_lake else None
        if rendered is None:
            return test
        _refuse_unforeseen(test.path, test.inputs, rendered.inputs)
        return replace(rendered, asks_lake=False)


def _refuse_unforeseen(path: str, known: Iterable[InputRef], inputs: Iterable[InputRef]) -> None:
    """Refuse inputs that were not known before the run, as dbt does: the order of the graph depends on them.

    Sources are accepted, since no node builds them.
    """
    foreseen = {ref.unique_id for ref in known}
    for ref in inputs:
        if ref.unique_id not in foreseen and ref.kind != "source":
            name = ref.unique_id.short_name
            message = f"{name!r} is only read once the lake has answered: the graph does not know of it"
            raise JinjaError(message, location=Location(path), hint=f"add -- depends_on: {{{{ {jinja_call(ref)} }}}}")
