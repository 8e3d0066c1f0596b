"""What a registered schema says of its messages, whatever language it is written in."""

from __future__ import annotations

from dataclasses import dataclass

ENTRY_KEY, ENTRY_VALUE = "_sml_key", "_sml_value"
"""Names in an entry of a map whose keys are something else than text."""


class SchemaError(Exception):
    """A registered schema cannot be used: its text completes `schema 7 …`. Its messages become dead letters."""


@dataclass(frozen=True)
class MessageSchema:
    """A schema by which messages in Avro are read.

    `fields`: the `fields` of the `schema` block that Kafka Connect's JSON converter would write (JSON). `avro`: the
    field of an Avro record (JSON) by which Spark decodes a message. `cast`: the type (Spark's) whose fields have the
    names of the message, where those in `avro` are others. `has_entries`: some of its records are entries of maps.
    """

    fields: str
    avro: str
    cast: str | None = None
    has_entries: bool = False


@dataclass(frozen=True)
class JsonSchema:
    """A schema of messages in JSON, which say themselves what they are: they are read as JSON without a schema."""
