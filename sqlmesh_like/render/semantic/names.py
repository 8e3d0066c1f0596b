"""Metrics and measures by name. Owns which one a node of a package means.

As in dbt one of its own package comes first, then of the root project, then of any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from sqlmesh_like.errors import Location, ProjectError, nearest
from sqlmesh_like.project.semantic.declarations import Metric, NamedInput, SemanticLayer, SemanticModel, SemanticNode

_Node = TypeVar("_Node", bound=SemanticNode)


class SemanticNames:
    """The enabled metrics and measures of all packages. `root`: the project's name.

    Raises ProjectError if two enabled measures share a name and there are enabled metrics, which find them by name.
    """

    def __init__(self, layer: SemanticLayer, root: str) -> None:
        self._root = root
        self._metrics: dict[str, list[Metric]] = {}
        self._models: dict[str, list[SemanticModel]] = {}
        for metric in layer.metrics:
            self._metrics.setdefault(metric.name, []).append(metric)
        for model in layer.semantic_models:
            for measure in model.measures:
                self._models.setdefault(measure.name, []).append(model)
        if any(metric.is_enabled for metric in layer.metrics):
            _refuse_same_measure(model for model in layer.semantic_models if model.is_enabled)

    def metric(self, name: str, asked_by: str, place: Location, package: str | None = None) -> Metric:
        """The metric that a node of package `asked_by` means; one of `package`, if that is given.

        Raises ProjectError at `place` if there is none, or it is disabled.
        """
        candidates = [one for one in self._metrics.get(name, ()) if package in (None, one.package)]
        enabled = [metric for metric in candidates if metric.is_enabled]
        if enabled:
            return self._first(enabled, asked_by)
        if candidates:
            hint = f"enable it in {candidates[0].path}, or drop the reference"
            raise ProjectError(f"metric {name!r} is disabled", location=place, hint=hint)
        known = sorted(one for one, metrics in self._metrics.items() if any(metric.is_enabled for metric in metrics))
        hint = nearest(name, known) or f"known metrics: {', '.join(known[:20]) or 'none'}"
        raise ProjectError(f"no metric is named {name!r}", location=place, hint=hint)

    def model_of(self, measure: NamedInput, asked_by: str) -> SemanticModel:
        """The semantic model that has a measure. Raises ProjectError if there is none, or it is disabled."""
        candidates = self._models.get(measure.name, [])
        enabled = [model for model in candidates if model.is_enabled]
        if enabled:
            return self._first(enabled, asked_by)
        if candidates:
            message = f"measure {measure.name!r} is of semantic model {candidates[0].name!r}, which is disabled"
            hint = f"enable it in {candidates[0].path}, or drop the reference"
            raise ProjectError(message, location=measure.declared_at, hint=hint)
        known = sorted(name for name, models in self._models.items() if any(model.is_enabled for model in models))
        hint = nearest(measure.name, known) or f"known measures: {', '.join(known[:20]) or 'none'}"
        message = f"no semantic model has a measure named {measure.name!r}"
        raise ProjectError(message, location=measure.declared_at, hint=hint)

    def _first(self, nodes: Sequence[_Node], asked_by: str) -> _Node:
        ranks = {asked_by: 0, self._root: 1} if asked_by != self._root else {asked_by: 0}
        return min(nodes, key=lambda node: ranks.get(node.package, 2))


def _refuse_same_measure(models: Iterable[SemanticModel]) -> None:
    seen: dict[str, NamedInput] = {}
    for measure in (measure for model in models for measure in model.measures):
        if measure.name in seen:
            hint = f"the first one is at {seen[measure.name].declared_at}; metrics find a measure by its name alone"
            raise ProjectError(f"two measures are named {measure.name!r}", location=measure.declared_at, hint=hint)
        seen[measure.name] = measure
