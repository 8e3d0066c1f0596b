"""The first bytes of a message in the wire format of schema registries. Owns recognizing them, with and without one.

https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlmesh_like.cdc.formats.source_types import sql_literal
from sqlmesh_like.cdc.registry.interfaces import Confluent
from sqlmesh_like.cdc.registry.message_schema import MessageSchema
from sqlmesh_like.cdc.registry.protobuf_reader import FIRST, ProtobufReader
from sqlmesh_like.cdc.registry.protobuf_schema import ProtobufSchema
from sqlmesh_like.cdc.registry.schema_registry import KnownSchemas, SchemaRegistry
from sqlmesh_like.project.keys.registry_keys import REGISTRY_FORMATS
from sqlmesh_like.project.nodes import CdcFormat

FAULT = "fault"
"""Column of lines: why a message cannot be decoded, or NULL."""
REFERENCE = "registry:"
_REFERENCE = re.compile(rf"{REFERENCE}([0-9]+)(?:/([0-9.]+))?", re.ASCII)
IS_FRAMED = "substr(cast({0} as binary), 1, 1) = X'00'"
NO_NUMBER = "begins with a byte 0, but no number of a schema follows"
INVALID_UTF8 = "invalid UTF-8"
RAW_KEY = "base64:"
"""In front of a key that could not be decoded, in `log_key`."""
END = b"\x9esml\x00end"
"""Put behind a message: where it is not found at the end, the message is longer or shorter than its schema says."""
_LONG_HEADER = (
    "is not known to the schema registry: if Apicurio's converter wrote it, set its `as-confluent: true`,"
    " or give its own interface as url of `registry:`"
)
ELSEWHERE = "in AWS Glue's wire format, which is not supported: let the source write Confluent's, or JSON"
_NEEDS_REGISTRY = (
    f"case when {IS_FRAMED.format('value')} then 'begins as messages of a schema registry do: set `registry:"
    f" {{url: …}}` of the source' when substr(cast(value as binary), 1, 1) = X'03' then {sql_literal(ELSEWHERE)} end"
)
"""Spark SQL: why a message cannot be read where the source has no registry, or NULL."""


def cannot_be_decoded(number: int) -> str:
    return f"cannot be decoded by schema {number}"


def why_unknown(number: int, size: int, schemas: KnownSchemas) -> str:
    """Why there is no schema of a number. `size`: bytes of a number."""
    return _LONG_HEADER if number == 0 and size == Confluent.size_of_number else schemas.unknown


def payload_start(number: int, path: Sequence[int] = ()) -> str:
    """What a message's JSON begins with, before its payload, instead of with the schema itself.

    `path`: the place of the message's type in a schema of several.
    """
    place = f"/{'.'.join(map(str, path))}" if path else ""
    return f'{{"schema":{{"type":"struct","fields":"{REFERENCE}{number}{place}"}},"payload":'


def fault_without_registry(form: CdcFormat) -> str:
    """Spark SQL of `FAULT` over the lines of a source that has no registry."""
    return _NEEDS_REGISTRY if form in REGISTRY_FORMATS else "cast(null as string)"


def referenced_schema(text: str, registry: SchemaRegistry | None) -> str:
    """The `fields` that a message states, where it refers to a schema those of the schema."""
    match = _REFERENCE.fullmatch(text)
    if registry is None or match is None:
        return text
    schema = registry.schemas([int(match[1])]).known.get(int(match[1]))
    if isinstance(schema, ProtobufSchema):
        return ProtobufReader(schema).fields(tuple(map(int, match[2].split("."))) if match[2] else FIRST)
    return schema.fields if isinstance(schema, MessageSchema) else text
