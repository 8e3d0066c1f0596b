"""Spark's schemas in the footers of Parquet files (JSON) → columns of Spark types, with no Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlmesh_like.names import Column, Schema

_SHORT = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}


def spark_schema_of(text: str) -> Schema:
    """Columns of a struct that Spark wrote as JSON.

    >>> spark_schema_of('{"type":"struct","fields":[{"name":"a","type":{"type":"array","elementType":"long"}}]}')
    (Column(name='a', type='array<bigint>'),)
    """
    return tuple(Column(field["name"], _type(field["type"])) for field in json.loads(text)["fields"])


def _type(type_: str | Mapping[str, Any]) -> str:
    """Spark's short spelling of a type."""
    if isinstance(type_, str):
        return _SHORT.get(type_, type_)
    if type_["type"] == "struct":
        fields = (f"{field['name']}:{_type(field['type'])}" for field in type_["fields"])
        return f"struct<{','.join(fields)}>"
    if type_["type"] == "map":
        return f"map<{_type(type_['keyType'])},{_type(type_['valueType'])}>"
    return f"array<{_type(type_['elementType'])}>"
