"""The first bytes of a message in the wire format of schema registries. Owns recognizing them, with and without one.

https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlmesh_like.cdc.formats.source_types import sql_literal
from sqlmesh_like.cdc.registry.frames import Frame, GlueFrame, NumberFrame
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
_REFERENCE = re.compile(rf"{REFERENCE}([0-9]+|[0-9a-f-]{{36}})(?:/([0-9.]+))?", re.ASCII)
INVALID_UTF8 = "invalid UTF-8"
RAW_KEY = "base64:"
"""In front of a key that could not be decoded, in `log_key`."""
END = b"\x9esml\x00end"
"""Put behind a message: where it is not found at the end, the message is longer or shorter than its schema says."""
_LONG_HEADER = (
    "is not known to the schema registry: if Apicurio's converter wrote it, set its `as-confluent: true`,"
    " or give its own interface as url of `registry:`"
)
ELSEWHERE = "in AWS Glue's wire format: the url of `registry:` is that of Glue then, https://glue.REGION.amazonaws.com"
_NEEDS_REGISTRY = (
    f"case when {NumberFrame.is_framed.format('value')} then 'begins as messages of a schema registry do: set"
    f" `registry: {{url: …}}` of the source' when {GlueFrame.is_framed.format('value')}"
    f" then {sql_literal(ELSEWHERE)} end"
)
"""Spark SQL: why a message cannot be read where the source has no registry, or NULL."""


def cannot_be_decoded(name: str) -> str:
    return f"cannot be decoded by schema {name}"


def why_unknown(number: int, frame: Frame, schemas: KnownSchemas) -> str:
    """Why there is no schema of a number."""
    is_short = isinstance(frame, NumberFrame) and frame.size == Confluent.frame.size
    return _LONG_HEADER if number == 0 and is_short else schemas.unknown


def payload_start(name: str, path: Sequence[int] = ()) -> str:
    """What a message's JSON begins with, before its payload, instead of with the schema itself.

    `path`: the place of the message's type in a schema of several.
    """
    place = f"/{'.'.join(map(str, path))}" if path else ""
    return f'{{"schema":{{"type":"struct","fields":"{REFERENCE}{name}{place}"}},"payload":'


def fault_without_registry(form: CdcFormat) -> str:
    """Spark SQL of `FAULT` over the lines of a source that has no registry."""
    return _NEEDS_REGISTRY if form in REGISTRY_FORMATS else "cast(null as string)"


def referenced_schema(text: str, registry: SchemaRegistry | None) -> str:
    """The `fields` that a message states, where it refers to a schema those of the schema."""
    match = _REFERENCE.fullmatch(text)
    if registry is None or match is None:
        return text
    try:
        number = registry.frame.number_of(match[1])
    except ValueError:
        return text
    schema = registry.schemas([number]).known.get(number)
    if isinstance(schema, ProtobufSchema):
        return ProtobufReader(schema).fields(tuple(map(int, match[2].split("."))) if match[2] else FIRST)
    return schema.fields if isinstance(schema, MessageSchema) else text
