"""The messages of a batch in Protobuf, by the numbers of their schemas. Spark's executors and this process run it."""

from __future__ import annotations

from collections.abc import Mapping

from sqlmesh_like.cdc.registry.message_schema import SchemaError, UndecodableError
from sqlmesh_like.cdc.registry.protobuf_reader import FIRST, ProtobufReader
from sqlmesh_like.cdc.registry.protobuf_schema import ProtobufSchema
from sqlmesh_like.cdc.registry.wire_header import cannot_be_decoded, payload_start


class ProtobufMessages:
    """Decodes messages. `is_value`: their JSON refers to its schema, as that of a key does not."""

    def __init__(self, schemas: Mapping[int, ProtobufSchema], *, is_value: bool) -> None:
        self.readers = {number: ProtobufReader(schema) for number, schema in schemas.items()}
        self.is_value = is_value

    def read(self, number: int, data: bytes) -> tuple[str | None, str | None]:
        """The JSON of a message, or why there is none. `data`: what follows the number."""
        try:
            path, text = self.readers[number].text(data)
        except UndecodableError:
            return None, cannot_be_decoded(str(number))
        except SchemaError as error:
            return None, f"schema {number} {error}"
        if not self.is_value:
            return text, None
        return f"{payload_start(str(number), () if path == FIRST else path)}{text}}}", None
