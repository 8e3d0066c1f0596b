"""The first bytes of a message in the wire format of schema registries. Owns recognizing them, with and without one.

https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
"""

from __future__ import annotations

from sqlmesh_like.cdc.formats.source_types import sql_literal
from sqlmesh_like.cdc.registry.interfaces import Confluent
from sqlmesh_like.cdc.registry.message_schema import MessageSchema
from sqlmesh_like.cdc.registry.schema_registry import KnownSchemas, SchemaRegistry
from sqlmesh_like.project.keys.registry_keys import REGISTRY_FORMATS
from sqlmesh_like.project.nodes import CdcFormat

FAULT = "fault"
"""Column of lines: why a message cannot be decoded, or NULL."""
REFERENCE = "registry:"
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


def payload_start(number: int) -> str:
    """What a message's JSON begins with, before its payload, instead of with the schema itself."""
    return f'{{"schema":{{"type":"struct","fields":"{REFERENCE}{number}"}},"payload":'


def fault_without_registry(form: CdcFormat) -> str:
    """Spark SQL of `FAULT` over the lines of a source that has no registry."""
    return _NEEDS_REGISTRY if form in REGISTRY_FORMATS else "cast(null as string)"


def referenced_schema(text: str, registry: SchemaRegistry | None) -> str:
    """The `fields` that a message states, where it refers to a schema those of the schema."""
    number = text.removeprefix(REFERENCE)
    if registry is None or number == text or not (number.isascii() and number.isdigit()):
        return text
    schema = registry.schemas([int(number)]).known.get(int(number))
    return schema.fields if isinstance(schema, MessageSchema) else text
