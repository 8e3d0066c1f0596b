"""`time_spine:` of a model and `granularity:` of its columns. Owns their keys; as in dbt the manifest has them."""

from __future__ import annotations

from collections.abc import Mapping

from sqlmesh_like.errors import nearest
from sqlmesh_like.project.keys.shape import Key, Shape
from sqlmesh_like.project.keys.value_types import any_granularity, each, text
from sqlmesh_like.project.reading.yaml_node import YamlNode

_CUSTOM = Shape("a custom granularity", {"name": Key(text, is_required=True), "column_name": Key(text)})
TIME_SPINE = Shape("time_spine", {
    "standard_granularity_column": Key(text, is_required=True), "custom_granularities": Key(each(_CUSTOM), ()),
})  # fmt: skip


def time_spine(model: YamlNode) -> Mapping[str, object] | None:
    """The time spine that a model declares, None if it is not one.

    Raises ProjectError for a wrong key, and if the model lacks the column, or the column has no granularity.
    """
    node = model.get("time_spine")
    if node is None:
        return None
    spine = TIME_SPINE.read(node)
    name, listed = str(spine["standard_granularity_column"]), model.elements_of("columns")
    columns = {str(column.children["name"].value): column for column in listed if "name" in column.children}
    if name not in columns:
        hint = nearest(name, columns) or "describe it under columns:"
        raise node.error(f"time_spine: the model's YAML has no column {name!r}", hint)
    if granularity(columns[name]) is None:
        raise node.error(f"time_spine: column {name!r} has no granularity", "add granularity: day to the column")
    return spine


def granularity(column: YamlNode) -> str | None:
    """The granularity of a time column, None if none is declared. Raises ProjectError for an unknown one."""
    child = column.get("granularity")
    return None if child is None else str(any_granularity.read(child, "granularity"))
