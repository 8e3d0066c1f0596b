"""Nodes of an already rendered project whose templates give another text in each call. Owns rendering them again.

Only their SQL may differ from before: if more does, such as a config or their inputs, other nodes may depend on it, and
the project must be read again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sqlmesh_like.names import TableName
from sqlmesh_like.project.nodes import ModelFile, ParsedProject
from sqlmesh_like.render.placement import Placed, is_enabled
from sqlmesh_like.render.relations import RelationRegistry
from sqlmesh_like.render.rendered import RenderedModel, RenderedProject, RenderedTest
from sqlmesh_like.render.renderer import Renderer


def rerender_clocked(
    renderer: Renderer, project: ParsedProject, rendered: RenderedProject, clocked: Collection[str]
) -> RenderedProject | None:
    """The project with these nodes (by unique id) rendered again; None if the whole project must be read again.

    Raises JinjaError or ProjectError as `render_project` does.
    """
    clock = _Clock(renderer, project, rendered, frozenset(clocked))
    models = clock.models(project.models, rendered.models)
    analyses = clock.models(project.analyses, rendered.analyses)
    tests = clock.tests(rendered.tests)
    if models is None or analyses is None or tests is None:
        return None
    return replace(rendered, models=models, analyses=analyses, tests=tests)


class _Clock:
    """One rendering of the nodes that depend on the time of the call."""

    def __init__(
        self, renderer: Renderer, project: ParsedProject, rendered: RenderedProject, clocked: frozenset[str]
    ) -> None:
        self._renderer = renderer
        self._project = project
        self._clocked = clocked
        self._registry = _registry(renderer, project, rendered)

    def models(
        self, files: tuple[ModelFile, ...], rendered: tuple[RenderedModel, ...]
    ) -> tuple[RenderedModel, ...] | None:
        known = {(model.unique_id, model.path): model for model in rendered}
        fresh: dict[tuple[str, str], RenderedModel] = {}
        for file in files:
            if file.unique_id not in self._clocked:
                continue
            before, placed = known.get((file.unique_id, file.path)), self._renderer.placement.place(file)
            if is_enabled(placed) != (before is not None):
                return None
            if before is None:
                continue
            if placed.table != before.table:
                return None
            now = self._renderer.render_node(placed, self._registry)
            if not _differs_in_sql_alone(now, before):
                return None
            fresh[file.unique_id, file.path] = now
        return tuple(fresh.get(key, model) for key, model in known.items())

    def tests(self, rendered: tuple[RenderedTest, ...]) -> tuple[RenderedTest, ...] | None:
        fresh: dict[str, RenderedTest] = {}
        known = {test.unique_id: test for test in rendered}
        for file in self._project.tests:
            if file.unique_id not in self._clocked:
                continue
            before, now = known.get(file.unique_id), self._renderer.render_test(file, self._registry)
            if now is None and before is None:
                continue
            if now is None or before is None or replace(now, sql=before.sql, source_map=before.source_map) != before:
                return None
            fresh[file.unique_id] = now
        return tuple(fresh.get(test.unique_id, test) for test in rendered)


def _differs_in_sql_alone(now: RenderedModel, before: RenderedModel) -> bool:
    texts = replace(
        now,
        sql=before.sql,
        source_map=before.source_map,
        incremental_sql=before.incremental_sql,
        incremental_map=before.incremental_map,
    )
    return texts == before


def _registry(renderer: Renderer, project: ParsedProject, rendered: RenderedProject) -> RelationRegistry:
    """The names that `ref` and `source` resolve: all models as they were, without rendering them again."""
    tables = {(model.unique_id, model.path): model.table for model in rendered.models}
    nowhere = TableName("", "")
    return renderer.placement.registry(
        [
            Placed(
                file,
                {"enabled": (file.unique_id, file.path) in tables},
                tables.get((file.unique_id, file.path), nowhere),
            )
            for file in project.models
        ]
    )
