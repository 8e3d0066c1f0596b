"""All semantic models, metrics and saved queries of one project's properties files. Owns that no name occurs twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from sqlmesh_like.errors import Location, ProjectError
from sqlmesh_like.project.folder_config import FolderConfig
from sqlmesh_like.project.reading.values import ValueRenderer
from sqlmesh_like.project.reading.yaml_node import YamlNode
from sqlmesh_like.project.semantic.declarations import SemanticLayer
from sqlmesh_like.project.semantic.metrics import parse_metric
from sqlmesh_like.project.semantic.saved_queries import parse_saved_query
from sqlmesh_like.project.semantic.semantic_models import parse_semantic_model

SemanticKey = Literal["semantic_models", "metrics", "saved_queries"]
KEYS: tuple[SemanticKey, ...] = get_args(SemanticKey)
_FILTERS = frozenset({"filter", "where"})
"""Templates that a query of metrics would render: `{{ Dimension('order__is_big') }}`."""


def parse_semantic_layer(
    entries: Mapping[SemanticKey, Iterable[YamlNode]], values: ValueRenderer, settings: FolderConfig
) -> SemanticLayer:
    """Parse the entries of these keys; `values` renders their templates, `doc()` included.

    Raises ProjectError at the first wrong key or value, and if two enabled nodes share a name.
    """
    parsed = [parse_semantic_model(values.render(node), settings) for node in entries["semantic_models"]]
    declared = [parse_metric(values.render(node, _FILTERS), settings) for node in entries["metrics"]]
    queries = (parse_saved_query(values.render(node, _FILTERS), settings) for node in entries["saved_queries"])
    made = [metric for one in parsed for metric in one.metrics]
    layer = SemanticLayer(tuple(one.semantic_model for one in parsed), (*declared, *made), tuple(queries))
    seen: dict[str, Location] = {}
    for node in (node for node in layer.nodes() if node.is_enabled):
        if node.unique_id in seen:
            kind = node.unique_id.noun
            hint = f"the first time at {seen[node.unique_id]}; a measure with create_metric: true is one too"
            hint = hint if kind == "metric" else hint.partition(";")[0]
            raise ProjectError(f"{kind} {node.name!r} is there twice", location=node.declared_at, hint=hint)
        seen[node.unique_id] = node.declared_at
    return layer
