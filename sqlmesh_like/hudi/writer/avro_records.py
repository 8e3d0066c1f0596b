"""Avro records as Hudi writes them to the timeline. Owns their building blocks; who writes a record owns its fields."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import fastavro

STRING: dict[str, str] = {"type": "string", "avro.java.string": "String"}
"""Text that Java reads as its own strings."""


def nullable_field(name: str, type_: object, default: object = None) -> dict[str, object]:
    """A field that may be NULL, which is the default where none is given."""
    types = ["null", type_] if default is None else [type_, "null"]
    return {"name": name, "type": types, "default": default}


def required_field(name: str, type_: object) -> dict[str, object]:
    """A field that is never NULL."""
    return {"name": name, "type": type_}


def map_of(values: object) -> dict[str, object]:
    """A map from text."""
    return {"type": "map", "values": values, "avro.java.string": "String"}


def list_of(items: object) -> dict[str, object]:
    return {"type": "array", "items": items}


def record_type(name: str, *fields: dict[str, object]) -> dict[str, object]:
    """A record of Hudi's model, to be used in others."""
    return {"type": "record", "name": f"org.apache.hudi.avro.model.{name}", "fields": [*fields]}


def record_schema(name: str, *fields: dict[str, object]) -> Any:
    """A record of Hudi's model, to be encoded."""
    return fastavro.parse_schema(record_type(name, *fields))


def encode_record(schema: Any, record: Mapping[str, object]) -> bytes:
    """A file with one record."""
    target = io.BytesIO()
    fastavro.writer(target, schema, [record])
    return target.getvalue()
