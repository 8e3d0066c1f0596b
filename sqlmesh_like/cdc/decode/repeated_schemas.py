"""Schemas that messages repeat, read once each. Owns which beginnings of messages may be replaced by a reference.

Kafka Connect's JSON converter writes `{"schema":{…},"payload":{…}}`, and the same schema, which is longer than the row,
before each row of a table. A beginning that is a whole schema is replaced by one that refers to it before messages are
parsed: what follows it is read as ever, because a JSON parser is in the same state after both. Messages that begin
otherwise stay as they are, and dead letters get their beginning back.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from uuid import uuid4

from sqlmesh_like.cdc.formats.debezium import FLAT_MEMBER, debezium_envelope
from sqlmesh_like.cdc.formats.message import CORRUPT
from sqlmesh_like.cdc.formats.source_types import quoted_name, sql_literal
from sqlmesh_like.cdc.formats.unavailable_values import may_hold
from sqlmesh_like.cdc.frames import Frame, frame_query
from sqlmesh_like.cdc.schema.limits import MAX_EVENT, is_shallow_json

_FROM, _TO = '{"schema":', ',"payload":'
_BEGINNING = f"substring_index(value, {sql_literal(_TO)}, 1)"
_IS_CANDIDATE = (
    f"startswith(value, {sql_literal(_FROM + '{')}) and octet_length(value) <= {MAX_EVENT}"
    f" and contains(value, {sql_literal(_TO)})"
)
_LONGEST = 200_000
"""Characters of a schema."""
_COUNTED = f"""
select beginning, count(*) as messages from {{candidates}} where length(beginning) <= {_LONGEST} group by beginning"""
_MOST_SCHEMAS = 100


@dataclass(frozen=True)
class RepeatedSchema:
    """The `beginning` of messages with a schema, what replaces it (`short`), and the schema's `fields` (JSON)."""

    beginning: str
    short: str
    fields: str


@dataclass(frozen=True)
class RepeatedSchemas:
    """The schemas of a batch. `mark`: begins references, and is in no message."""

    mark: str = ""
    schemas: tuple[RepeatedSchema, ...] = ()

    @property
    def schema_id(self) -> str:
        """Spark SQL of the id of a schema over `schema_text`: the same for a text and for what refers to it."""
        own = "sha2(schema_text, 256)"
        if not self.schemas:
            return own
        return f"if(startswith(schema_text, '{self.mark}'), substr(schema_text, {len(self.mark) + 1}), {own})"

    def fields(self, schema_text: str) -> str:
        """The `fields` that a message states, where it refers to a schema those of the schema."""
        known = {self.mark + _id(each.fields): each.fields for each in self.schemas}
        return known.get(schema_text, schema_text)

    def shortened(self, lines: Frame) -> Frame:
        """Lines whose messages (`value`) refer to their schemas."""
        short = _replace_beginning_sql([(each.beginning, each.short) for each in self.schemas])
        return self._with_value(lines, f"if(octet_length(value) <= {MAX_EVENT}, {short}, value)")

    def restored(self, events: Frame) -> Frame:
        """Events with their messages (`value`) as they were."""
        return self._with_value(events, _replace_beginning_sql([(each.short, each.beginning) for each in self.schemas]))

    def _with_value(self, frame: Frame, sql: str) -> Frame:
        if not self.schemas:
            return frame
        columns = (f"{sql} as value" if name == "value" else quoted_name(name) for name in frame.columns)
        return frame.selectExpr(*columns)


NO_SCHEMAS = RepeatedSchemas()


def repeated_schemas(lines: Frame, placeholder: str) -> RepeatedSchemas:
    """The schemas that many of the lines begin with. Reads all of their messages once.

    `placeholder`: for values that were not logged; a schema that has it stays, so that its events are read alike.
    """
    candidates = lines.where(_IS_CANDIDATE).selectExpr(f"{_BEGINNING} as beginning")
    counted = frame_query(_COUNTED, candidates=candidates).where("messages > 1").limit(_MOST_SCHEMAS)
    described = counted.selectExpr("beginning", f"concat(beginning, {sql_literal(_TO + '{}}')}) as value")
    envelope = [f"{sql} as {name}" for name, sql in debezium_envelope("value").items()]
    checks = (
        f"_message.{CORRUPT} is null and is_enveloped and {is_shallow_json('value')}"
        f" and not value rlike {sql_literal(FLAT_MEMBER)} and not ({may_hold('value', placeholder)})"
    )
    known = described.selectExpr("*", *envelope).where(f"schema_text is not null and {checks}")
    texts = [(str(row[0]), str(row[1])) for row in known.select("beginning", "schema_text").collect()]
    mark = f"sml {uuid4().hex} "
    return RepeatedSchemas(
        mark,
        tuple(
            # Two schemas may have the same fields, and so the same id.
            RepeatedSchema(beginning, f'{_FROM}{{"number":{number},"fields":"{mark}{_id(fields)}"}}', fields)
            for number, (beginning, fields) in enumerate(texts)
            if _is_object(beginning.removeprefix(_FROM))
        ),
    )


def _replace_beginning_sql(pairs: Sequence[tuple[str, str]]) -> str:
    """Spark SQL of a message with another beginning, if it has one of the first texts."""
    cases = (
        f"when startswith(value, {sql_literal(old)}) then concat({sql_literal(new)}, substr(value, {len(old) + 1}))"
        for old, new in pairs
    )
    return f"case {' '.join(cases)} else value end"


def _id(fields: str) -> str:
    """What `sha2` of Spark gives."""
    return sha256(fields.encode()).hexdigest()


def _is_object(text: str) -> bool:
    """Whether a text is one JSON object, for every reader.

    >>> _is_object('{"a":{"payload":1}}'), _is_object('{"a":{'), _is_object('{} {}'), _is_object('{"a":NaN}')
    (True, False, False, False)
    """
    try:
        return isinstance(json.loads(text, parse_constant=_refuse_constant), dict)
    except (ValueError, RecursionError):
        return False


def _refuse_constant(name: str) -> object:
    raise ValueError(name)
