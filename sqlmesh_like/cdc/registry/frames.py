"""What messages begin with where a registry has their schemas. Owns recognizing it, in Python and in Spark SQL.

Confluent's: a byte 0, the schema's number in four bytes (of Apicurio's own in eight), the most significant first.
https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
AWS Glue's: a byte 3, how the message is compressed (0: not, 5: zlib), the version of the schema as a UUID.
https://github.com/awslabs/aws-glue-schema-registry (`AWSSchemaRegistryConstants`, `SerializationDataEncoder`)
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from sqlmesh_like.cdc.schema.limits import MAX_EVENT

NONE = -1
"""The number of a message that begins as one with a schema, and is too short for its number."""
NO_KEY = "-"
"""The same in columns of Spark."""
_TOO_LARGE = 2**63


class Frame(Protocol):
    """A kind of header. A schema's number is an integer; a column of Spark holds it as a text, its key."""

    @property
    def no_number(self) -> str:
        """Why a message that begins so has no number."""
        ...

    @property
    def is_framed(self) -> str:
        """Spark SQL: whether a message (`{0}`) begins so."""
        ...

    @property
    def key_sql(self) -> str:
        """Spark SQL of the key of the schema of a message (`{0}`), or `NO_KEY`."""
        ...

    @property
    def name_sql(self) -> str:
        """Spark SQL of a schema's name in texts, of its key (`{0}`)."""
        ...

    def number(self, data: bytes) -> int | None:
        """The number of a message's schema; None: it begins otherwise; `NONE`: it is too short."""
        ...

    def body(self, data: bytes) -> bytes | None:
        """What follows the header; None where it cannot be unpacked."""
        ...

    def key(self, number: int) -> str:
        """The key of a schema."""
        ...

    def name(self, number: int) -> str:
        """How texts call a schema."""
        ...

    def number_of(self, text: str) -> int:
        """The number of a schema by its key or its name."""
        ...


@dataclass(frozen=True)
class NumberFrame:
    """Confluent's. `size`: bytes of a number."""

    size: int
    no_number = "begins with a byte 0, but no number of a schema follows"
    is_framed = "substr(cast({0} as binary), 1, 1) = X'00'"
    name_sql = "{0}"

    @property
    def key_sql(self) -> str:
        number = f"cast(conv(hex(substr(cast({{0}} as binary), 2, {self.size})), 16, 10) as bigint)"
        return f"if(octet_length({{0}}) <= {self.size}, '{NO_KEY}', coalesce(cast({number} as string), '{NO_KEY}'))"

    def number(self, data: bytes) -> int | None:
        if not data.startswith(b"\0"):
            return None
        number = int.from_bytes(data[1 : self.size + 1], "big")
        return number if len(data) > self.size and number < _TOO_LARGE else NONE

    def body(self, data: bytes) -> bytes | None:
        return data[self.size + 1 :]

    def key(self, number: int) -> str:
        return str(number)

    name = key

    def number_of(self, text: str) -> int:
        return int(text)


class GlueFrame:
    """AWS Glue's. The number of a schema is that of its UUID."""

    size = 16
    no_number = "begins with a byte 3, but AWS Glue's header does not follow"
    is_framed = "substr(cast({0} as binary), 1, 1) = X'03'"
    key_sql = (
        f"if(octet_length({{0}}) < 18 or not substr(cast({{0}} as binary), 2, 1) in (X'00', X'05'), '{NO_KEY}',"
        " lower(hex(substr(cast({0} as binary), 3, 16))))"
    )
    name_sql = "regexp_replace({0}, '^(.{{8}})(.{{4}})(.{{4}})(.{{4}})(.{{12}})$', '$1-$2-$3-$4-$5')"

    def number(self, data: bytes) -> int | None:
        if not data.startswith(b"\x03"):
            return None
        return int.from_bytes(data[2:18], "big") if len(data) >= 18 and data[1] in (0, 5) else NONE

    def body(self, data: bytes) -> bytes | None:
        if data[1] == 0:
            return data[18:]
        unpacking = zlib.decompressobj()
        try:
            body = unpacking.decompress(data[18:], MAX_EVENT)
        except zlib.error:
            return None
        return body if unpacking.eof and not unpacking.unused_data else None

    def key(self, number: int) -> str:
        return f"{number:032x}"

    def name(self, number: int) -> str:
        return str(UUID(int=number))

    def number_of(self, text: str) -> int:
        return UUID(text).int
