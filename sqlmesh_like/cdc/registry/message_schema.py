"""What a registered schema says of its messages, whatever language it is written in."""

from __future__ import annotations

import json
from dataclasses import dataclass

ENTRY_KEY, ENTRY_VALUE = "_sml_key", "_sml_value"
"""Names in an entry of a map whose keys are something else than text."""


class SchemaError(Exception):
    """A registered schema cannot be used: its text completes `schema 7 …`. Its messages become dead letters."""


class UndecodableError(Exception):
    """A message is not one of its schema."""


class InvalidTextError(Exception):
    """A message has a text that is not UTF-8."""


@dataclass(frozen=True)
class MessageSchema:
    """A schema by which messages in Avro are read.

    `block`: the `schema` block that Kafka Connect's JSON converter would write (JSON). `avro`: the field of an Avro
    record (JSON) by which a message is decoded. `cast`: the type (Spark's) whose fields have the names of the message,
    where those in `avro` are others. `has_entries`: some of its records are entries of maps.
    """

    block: str
    avro: str
    cast: str | None = None
    has_entries: bool = False

    @property
    def fields(self) -> str:
        """The `fields` of the block (JSON); none for a message that is not a record."""
        return json.dumps(json.loads(self.block).get("fields", []))


@dataclass(frozen=True)
class JsonSchema:
    """A schema of messages in JSON, which say themselves what they are: they are read as JSON without a schema."""
