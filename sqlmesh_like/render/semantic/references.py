"""What semantic models, metrics and saved queries read, and all measures that a metric is based on."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlmesh_like.errors import CycleError, ProjectError
from sqlmesh_like.names import TableName
from sqlmesh_like.project.semantic.declarations import Metric, SavedQuery, SemanticLayer, SemanticModel
from sqlmesh_like.render.context import ConfigCall, RenderEnvironment, RenderTrace, build_scope
from sqlmesh_like.render.relations import RelationRegistry
from sqlmesh_like.render.rendered import RenderedSemantic
from sqlmesh_like.render.semantic.names import SemanticNames

_REF = re.compile(r"\s*ref\s*\(.*\)\s*", re.DOTALL)
_Keys = Mapping[str, object]


def render_semantic_layer(
    layer: SemanticLayer,
    names: SemanticNames,
    registry: RelationRegistry,
    around: RenderEnvironment,
) -> tuple[RenderedSemantic, ...]:
    """Enabled nodes with what they read. Raises ProjectError or JinjaError if one reads a node that does not exist."""
    measures = _Measures(names)
    models = (one for one in layer.semantic_models if one.is_enabled)
    return (
        *(_semantic_model(one, registry, around) for one in models),
        *(_metric(one, names, measures) for one in layer.metrics if one.is_enabled),
        *(_saved_query(one, names) for one in layer.saved_queries if one.is_enabled),
    )


def _semantic_model(declared: SemanticModel, registry: RelationRegistry, around: RenderEnvironment) -> RenderedSemantic:
    text, place = declared.model.name, declared.model.declared_at
    if not _REF.fullmatch(text):
        message = f"the model of semantic model {declared.name!r} is {text!r}"
        raise ProjectError(message, location=place, hint="write model: ref('name')")
    trace = RenderTrace()
    node = {"unique_id": declared.unique_id, "name": declared.name, "resource_type": "semantic_model"}
    config = ConfigCall({}, trace, lambda _key, value: value)
    scope = build_scope(around, registry, node, TableName(around.target.schema, declared.name), config, trace)
    try:
        around.templates.render(declared.path, f"{{{{ {text} }}}}", scope)
    except ProjectError as error:
        raise type(error)(error.message, location=place, hint=error.hint) from error
    inputs = tuple(trace.inputs.values())
    return RenderedSemantic(declared, tuple(ref.unique_id for ref in inputs), inputs)


def _metric(declared: Metric, names: SemanticNames, measures: _Measures) -> RenderedSemantic:
    models = [names.model_of(measure, declared.package).unique_id for measure in declared.measures]
    metrics = [names.metric(one.name, declared.package, one.declared_at).unique_id for one in declared.metrics]
    return RenderedSemantic(declared, tuple(dict.fromkeys((*models, *metrics))), measures=measures.of(declared))


def _saved_query(declared: SavedQuery, names: SemanticNames) -> RenderedSemantic:
    metrics = [names.metric(one.name, declared.package, one.declared_at).unique_id for one in declared.metrics]
    return RenderedSemantic(declared, tuple(dict.fromkeys(metrics)))


class _Measures:
    """The measures of metrics and of those that they are made of, each once, in the order of the declaration."""

    def __init__(self, names: SemanticNames) -> None:
        self._names = names
        self._known: dict[str, tuple[_Keys, ...]] = {}

    def of(self, metric: Metric, above: tuple[Metric, ...] = ()) -> tuple[_Keys, ...]:
        """All measures of a metric. Raises CycleError if it is made of itself."""
        if metric in above:
            circle = [*above[above.index(metric) :], metric]
            shown = " -> ".join(one.name for one in circle)
            message = f"metrics are made of each other in a circle: {shown}"
            raise CycleError(
                message,
                location=next(one.declared_at for one in circle[-2].metrics if one.name == metric.name),
                hint="an arrow means `is made of`",
            )
        if metric.unique_id not in self._known:
            keys_of = [measure.keys for measure in metric.measures]
            for one in metric.metrics:
                made_of = self._names.metric(one.name, metric.package, one.declared_at)
                keys_of += self.of(made_of, (*above, metric))
            self._known[metric.unique_id] = tuple(keys for i, keys in enumerate(keys_of) if keys not in keys_of[:i])
        return self._known[metric.unique_id]
