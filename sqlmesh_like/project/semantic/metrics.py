"""`metrics:` of properties YAML. Owns their keys, and what each type of metric must declare."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import get_args

from sqlmesh_like.names import NodeId
from sqlmesh_like.project.folder_config import FolderConfig
from sqlmesh_like.project.keys.shape import Key, NamedShape, Shape
from sqlmesh_like.project.keys.value_types import (
    GRANULARITIES,
    each,
    entry,
    expression,
    filters,
    flag,
    one_of,
    plain_mapping,
    text,
    texts,
    whole_number,
    window,
)
from sqlmesh_like.project.reading.yaml_node import YamlNode
from sqlmesh_like.project.semantic.config import merged_config
from sqlmesh_like.project.semantic.declarations import Metric, MetricType, NamedInput

_TYPES: tuple[MetricType, ...] = get_args(MetricType)
_NAME = Key(text, is_required=True)
_TEXT = Key(text)
_MEASURE = NamedShape("a measure of a metric", {
    "name": _NAME, "filter": Key(filters), "alias": _TEXT, "join_to_timespine": Key(flag, False),
    "fill_nulls_with": Key(whole_number),
})  # fmt: skip
_INPUT = NamedShape("a metric's input", {
    "name": _NAME, "filter": Key(filters), "alias": _TEXT, "offset_window": Key(window), "offset_to_grain": _TEXT,
})  # fmt: skip
_PROPERTY = Shape("a constant property", {"base_property": _NAME, "conversion_property": _NAME})
_CONVERSION = Shape("conversion_type_params", {
    "base_measure": Key(entry(_MEASURE), is_required=True, example="visits"),
    "conversion_measure": Key(entry(_MEASURE), is_required=True, example="orders"),
    "entity": _NAME, "calculation": Key(one_of("conversions", "conversion_rate"), "conversion_rate"),
    "window": Key(window), "constant_properties": Key(each(_PROPERTY)),
})  # fmt: skip
_CUMULATIVE = Shape("cumulative_type_params", {
    "window": Key(window), "grain_to_date": _TEXT, "period_agg": Key(one_of("first", "last", "average"), "first"),
})  # fmt: skip
_TYPE_PARAMS = Shape("type_params", {
    "measure": Key(entry(_MEASURE)), "numerator": Key(entry(_INPUT)), "denominator": Key(entry(_INPUT)),
    "expr": Key(expression), "window": Key(window), "grain_to_date": Key(one_of(*GRANULARITIES)),
    "metrics": Key(each(_INPUT), ()), "conversion_type_params": Key(entry(_CONVERSION)),
    "cumulative_type_params": Key(entry(_CUMULATIVE)),
})  # fmt: skip
METRIC = Shape("a metric", {
    "name": _NAME, "label": _NAME, "type": Key(one_of(*_TYPES), is_required=True),
    "type_params": Key(entry(_TYPE_PARAMS), is_required=True, example={"measure": "sales"}),
    "description": Key(text, ""), "filter": Key(filters),
    "time_granularity": _TEXT, "meta": Key(plain_mapping, {}), "tags": Key(texts, ()), "config": Key(plain_mapping, {}),
})  # fmt: skip
_NEEDED: Mapping[MetricType, tuple[str, ...]] = {
    "simple": ("measure",),
    "cumulative": ("measure",),
    "conversion": ("conversion_type_params",),
    "ratio": ("numerator", "denominator"),
    "derived": ("metrics",),
}
"""The keys that `type_params` must have, by the type of the metric."""


def parse_metric(node: YamlNode, settings: FolderConfig) -> Metric:
    """One entry, with its templates rendered. Raises ProjectError at the first wrong key or value."""
    keys = METRIC.read(node)
    name, params = str(keys.pop("name")), node.children["type_params"]
    kind = next(kind for kind in _TYPES if kind == keys["type"])
    said = _TYPE_PARAMS.read(params)
    _refuse_wrong(node, kind)
    fqn = (settings.settings.name, *settings.folders(node.location.path), name)
    config = merged_config("metrics", fqn, node, settings)
    cumulative = _cumulative(said) if kind == "cumulative" else None
    return Metric(
        unique_id=NodeId("metric", fqn[0], name),
        name=name,
        fqn=fqn,
        declared_at=node.location,
        config=config,
        keys={
            **keys,
            "type_params": {**said, "cumulative_type_params": cumulative},
            "meta": config["meta"] or keys["meta"],
        },
        type=kind,
        tags=node.texts_of("tags"),
        measures=_inputs(params, kind, _MEASURES, _MEASURE),
        metrics=_inputs(params, kind, _METRICS, _INPUT),
    )


def _refuse_wrong(node: YamlNode, kind: MetricType) -> None:
    """Raise ProjectError if the name cannot be a metric's, or a key that this type of metric needs is missing."""
    name, params = node.children["name"], node.children["type_params"]
    if not re.fullmatch(r"[A-Za-z]\w{0,249}", str(name.value)):
        hint = "a metric's name is letters, digits and _, at most 250, a letter first"
        raise name.error(f"{name.value!r} cannot be a metric's name", hint)
    for needed in _NEEDED[kind]:
        if params.get(needed) is None:
            raise params.error(f"a {kind} metric needs {needed!r}", f"add it to type_params of {name.value!r}")


def _cumulative(params: Mapping[str, object]) -> dict[str, object]:
    """`cumulative_type_params` of a metric; `window` and `grain_to_date` may be outside of them, as they once were."""
    given = params.get("cumulative_type_params")
    said = given if isinstance(given, Mapping) else {key: one.default for key, one in _CUMULATIVE.keys.items()}
    return {**said, **{key: said[key] or params[key] for key in ("window", "grain_to_date")}, "metric": None}


_Paths = Mapping[MetricType, tuple[tuple[str, ...], ...]]
_MEASURES: _Paths = {
    "simple": (("measure",),),
    "cumulative": (("measure",),),
    "conversion": (("conversion_type_params", "base_measure"), ("conversion_type_params", "conversion_measure")),
}
_METRICS: _Paths = {"ratio": (("numerator",), ("denominator",)), "derived": (("metrics",),)}
"""Where a metric names the measures and metrics that it is made of, by its type."""


def _inputs(params: YamlNode, kind: MetricType, paths: _Paths, shape: Shape) -> tuple[NamedInput, ...]:
    nodes: list[YamlNode] = []
    for path in paths.get(kind, ()):
        node = params
        for key in path:
            node = node.children[key]
        nodes += node.elements if isinstance(node.value, list) else (node,)
    # The location of the name that an entry is, or has.
    read = (
        (shape.read(node), (node.children["name"].location if "name" in node.children else node.location))
        for node in nodes
    )
    return tuple(NamedInput(str(keys["name"]), place, keys) for keys, place in read)
