"""`semantic_models:` of properties YAML. Owns their keys, and the metrics created for measures with `create_metric`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlmesh_like.errors import Location
from sqlmesh_like.names import NodeId
from sqlmesh_like.project.folder_config import FolderConfig
from sqlmesh_like.project.keys.shape import Key, Shape
from sqlmesh_like.project.keys.value_types import (
    GRANULARITIES,
    each,
    entry,
    expression,
    flag,
    meta_alone,
    number,
    one_of,
    plain_mapping,
    text,
    texts,
)
from sqlmesh_like.project.reading.yaml_node import YamlNode, plain_node
from sqlmesh_like.project.semantic.config import Config, merged_config
from sqlmesh_like.project.semantic.declarations import Metric, NamedInput, SemanticModel
from sqlmesh_like.project.semantic.metrics import parse_metric

_AGGREGATIONS = (*("sum", "min", "max", "count_distinct", "sum_boolean", "average", "percentile", "median", "count"),)
_NAME = Key(text, is_required=True)
_TEXT = Key(text)
_OFF = Key(flag, False)
_META = Key(meta_alone, {"meta": {}})
_ENTITY = Shape("an entity", {
    "name": _NAME, "type": Key(one_of("foreign", "natural", "primary", "unique"), is_required=True),
    "description": _TEXT, "label": _TEXT, "role": _TEXT, "expr": Key(expression), "config": _META,
})  # fmt: skip
_VALIDITY = Shape("validity_params", {"is_start": _OFF, "is_end": _OFF})
_TIME = Shape("type_params", {
    "time_granularity": Key(one_of(*GRANULARITIES), is_required=True), "validity_params": Key(entry(_VALIDITY)),
})  # fmt: skip
_DIMENSION = Shape("a dimension", {
    "name": _NAME, "type": Key(one_of("categorical", "time"), is_required=True), "description": _TEXT, "label": _TEXT,
    "is_partition": _OFF, "type_params": Key(entry(_TIME)), "expr": Key(expression), "config": _META,
})  # fmt: skip
_PERCENTILE = Shape("agg_params", {
    "percentile": Key(number), "use_discrete_percentile": _OFF, "use_approximate_percentile": _OFF,
})  # fmt: skip
_NOT_ADDED = Shape("non_additive_dimension", {
    "name": _NAME, "window_choice": Key(one_of(*_AGGREGATIONS), is_required=True), "window_groupings": Key(texts, ()),
})  # fmt: skip
_MEASURE = Shape("a measure", {
    "name": _NAME, "agg": Key(one_of(*_AGGREGATIONS), is_required=True), "description": _TEXT, "label": _TEXT,
    "create_metric": _OFF, "expr": Key(expression), "agg_params": Key(entry(_PERCENTILE)),
    "non_additive_dimension": Key(entry(_NOT_ADDED)), "agg_time_dimension": _TEXT, "config": _META,
})  # fmt: skip
_DEFAULTS = Shape("defaults", {"agg_time_dimension": _TEXT})
SEMANTIC_MODEL = Shape("a semantic model", {
    "name": _NAME, "model": _NAME, "description": _TEXT, "label": _TEXT, "defaults": Key(entry(_DEFAULTS)),
    "entities": Key(each(_ENTITY), ()), "measures": Key(each(_MEASURE), ()), "dimensions": Key(each(_DIMENSION), ()),
    "primary_entity": _TEXT, "config": Key(plain_mapping, {}),
})  # fmt: skip
_PARTS: Mapping[str, Config] = {"entities": {}, "measures": {"create_metric": False}, "dimensions": {"metadata": None}}
"""The parts of a semantic model, each with keys that are set in the manifest; `create_metric` is false there."""


@dataclass(frozen=True)
class ParsedSemanticModel:
    """A semantic model and the metrics created for its measures."""

    semantic_model: SemanticModel
    metrics: tuple[Metric, ...]


def parse_semantic_model(node: YamlNode, settings: FolderConfig) -> ParsedSemanticModel:
    """One entry, with its templates rendered. Raises ProjectError at the first wrong key or value."""
    keys = SEMANTIC_MODEL.read(node)
    name, project = str(keys.pop("name")), settings.settings.name
    fqn = (project, *settings.folders(node.location.path), name)
    config = merged_config("semantic-models", fqn, node, settings)
    model, measures = node.children["model"], node.elements_of("measures")
    semantic_model = SemanticModel(
        unique_id=NodeId("semantic_model", project, name),
        name=name,
        fqn=fqn,
        declared_at=node.location,
        config=config,
        keys={**keys, **{part: _with_meta(keys[part], config, more) for part, more in _PARTS.items()}},
        model=NamedInput(str(keys["model"]), model.location),
        measures=tuple(NamedInput(str(one.children["name"].value), one.location) for one in measures),
    )
    asked = [one for one in measures if (create := one.get("create_metric")) is not None and create.value is True]
    made = (_metric_entry(_MEASURE.read(one), one.location, config) for one in asked)
    return ParsedSemanticModel(semantic_model, tuple(parse_metric(entry, settings) for entry in made))


def _metric_entry(measure: Mapping[str, object], place: Location, of: Config) -> YamlNode:
    """The entry of `metrics:` for a measure with `create_metric: true`; `of`: the config of its semantic model."""
    name = measure["name"]
    entry = {
        "name": name,
        "label": measure["label"] or name,
        "type": "simple",
        "type_params": {"measure": name, "expr": measure["expr"] or name},
        "description": measure["description"] or f"Metric created from measure {name}",
        "config": {"enabled": of["enabled"], "meta": dict(_meta(of))},
    }
    return plain_node(entry, place)


def _with_meta(parts: object, config: Config, more: Config) -> list[dict[str, object]]:
    """Entities, dimensions and measures have the meta of their semantic model too."""
    entries = (part for part in (parts if isinstance(parts, list | tuple) else ()) if isinstance(part, Mapping))
    return [{**part, **more, "config": {"meta": {**_meta(config), **_meta(part["config"])}}} for part in entries]


def _meta(config: object) -> Mapping[str, object]:
    meta = config.get("meta") if isinstance(config, Mapping) else None
    return meta if isinstance(meta, Mapping) else {}
