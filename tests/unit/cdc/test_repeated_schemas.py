"""Messages that refer to the schema which they repeat are read as those that have it, whatever they look like."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from sqlmesh_like.cdc.decode.events import EVENT_COLUMNS, events_of
from sqlmesh_like.cdc.decode.repeated_schemas import NO_SCHEMAS, RepeatedSchemas, repeated_schemas
from sqlmesh_like.cdc.frames import Frame
from sqlmesh_like.cdc.in_process.json_values import forget_json
from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.in_process.values import NotProvenError
from sqlmesh_like.cdc.sources.event_log import LINE_COLUMNS
from sqlmesh_like.project.nodes import IngestSource

PLACEHOLDER = "__debezium_unavailable_value"
INGEST = IngestSource("debezium")
_ROW = {"type": "struct", "fields": [{"type": "int32", "field": "id"}, {"type": "string", "field": "name"}]}


def _schema(*more: object, **members: object) -> dict[str, object]:
    fields = [{**_ROW, "field": "before"}, {**_ROW, "field": "after"}, *more]
    return {"type": "struct", "fields": fields, "optional": False, "name": "shop.db.t.Envelope", **members}


SCHEMAS = tuple(
    json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    for schema in (
        _schema(),
        _schema(version=2),
        _schema({"type": "string", "field": "ü", "doc": 'a quoted "payload", \\ and {lines} ${env:HOME}'}),
        _schema({"type": "string", "field": "x", "default": '},"payload":{'}),
        _schema({"type": "struct", "field": "s", "default": {"schema": {"a": 1}, "z": -1}}),
    )
)
"""Each of them is replaced where it begins a message."""
WITH_FRACTION = json.dumps(_schema({"type": "double", "field": "f", "default": 0.0}), separators=(",", ":"))
WITH_FRACTION = WITH_FRACTION.replace("0.0", "-0.10E1")
"""Another one, whose text only Spark knows."""
KEPT = (
    *(json.dumps(schema, separators=(",", ":")) for schema in (
        _schema({"type": "struct", "field": "s", "default": {"a": {}, "payload": {"b": 1}}}),  # split in its middle
        _schema({"type": "string", "field": "__op"}),
        _schema({"type": "string", "field": "x", "default": PLACEHOLDER}),
        {"type": "struct"}, {}, {"fields": None},
    )),
    '{"fields":[' + "[" * 120 + "]" * 120 + "]}", '{"fields":NaN}', "{'fields':[]}", '{"fields":[1}', '{"fields":[01]}',
)  # fmt: skip
"""These are not."""


def messages(dice: random.Random, count: int, *schemas: str) -> list[str | None]:
    """Messages of a log with these schemas and others, whole and broken."""
    return [_message(dice, (*SCHEMAS, *schemas)) for _ in range(count)]


def _message(dice: random.Random, schemas: Sequence[str]) -> str | None:
    schema = dice.choice([*schemas, *schemas, *schemas, *KEPT])
    row: dict[str, object] = {"id": dice.randrange(9), "name": dice.choice(["ä", None, '"', "\\"])}
    if dice.random() < 0.2:
        row |= {"schema": {"fields": [1]}, "payload": dice.choice([1, {"op": "c"}])}
    body: dict[str, object] = {
        "before": dice.choice([None, row]), "after": dice.choice([row, row, None, [1], PLACEHOLDER]),
        "source": dice.choice([{"db": "db", "table": "t"}, {"db": "db", "table": "u"}, {"db": "db"}, None]),
        "op": dice.choice(["c", "u", "d", "r", "t", "m", "x", None]), "ts_ms": 1,
    }  # fmt: skip
    for name in dice.sample(list(body), dice.choice([0, 0, 1, 2])):
        del body[name]
    payload = dice.choice(
        [json.dumps(body), json.dumps(body, separators=(",", ":")), "null", "[]", '"a"', "{}"][: dice.choice([2, 6])]
    )
    blank = dice.choice(["", "", "", " "])
    text = dice.choice([
        *[f'{{"schema":{schema},"payload":{payload}}}'] * 6,
        f'{{"schema":{blank}{schema},{blank}"payload":{payload}}}{blank}',
        f'{{"payload":{payload},"schema":{schema}}}',
        f'{{"schema":{schema},"payload":{payload},"schema":{dice.choice(SCHEMAS)}}}',
        f'{{"schema":{schema},"payload":{payload},"payload":{{}}}}',
        f'{{"schema":{schema},"payload":{payload},"op":"c"}}',
        f'{{"schema":{schema},"payload":{payload}}} {{}}',
        f'{{"schema":{schema},"payload":{payload}',
        f'{{"schema":{schema},"pay\\u006coad":{payload}}}',
        f'{{"schema":{schema}"payload":{payload}}}',
        payload,
    ])  # fmt: skip
    if dice.random() < 0.1:
        text = text[: dice.randrange(len(text))]
    return None if dice.random() < 0.02 else text


def lines(texts: Sequence[str | None]) -> list[tuple[Any, ...]]:
    """`LINE_COLUMNS` of these messages."""
    known = {"file": "t/0", "logged_at": 5}
    return [
        tuple({**known, "value": text, "line": n, "position": f"{n:09}"}.get(name) for name in LINE_COLUMNS)
        for n, text in enumerate(texts)
    ]


def _read(texts: Sequence[str | None], schemas: RepeatedSchemas = NO_SCHEMAS) -> list[tuple[object, ...]]:
    try:
        with events_of(RowFrame(LINE_COLUMNS, lines(texts)), INGEST, schemas=schemas) as events:
            return [tuple(row) for row in _here(schemas.restored(events)).rows]
    finally:
        forget_json()


def _here(frame: Frame) -> RowFrame:
    assert isinstance(frame, RowFrame)
    return frame


def _is_known(text: str | None) -> bool:
    """Whether this process knows how Spark reads a message."""
    try:
        return bool(_read([text]))
    except NotProvenError:
        return False


@pytest.mark.parametrize("seed", range(3))
def test_events_are_the_same_with_and_without_their_schemas(seed: int) -> None:
    texts = [text for text in messages(random.Random(seed), 300) if _is_known(text)]
    assert len(texts) > 150
    schemas = repeated_schemas(RowFrame(LINE_COLUMNS, lines(texts)), PLACEHOLDER)
    assert {each.beginning for each in schemas.schemas} == {f'{{"schema":{schema}' for schema in SCHEMAS}
    before, after = _read(texts), _read(texts, schemas)
    assert [dict(zip(EVENT_COLUMNS, row, strict=True)) for row in after] == [
        dict(zip(EVENT_COLUMNS, row, strict=True)) for row in before
    ]
    short = _here(schemas.shortened(RowFrame(("value",), [(text,) for text in texts])))
    is_short = [row[0] != text for row, text in zip(short.rows, texts, strict=True)]
    assert sum(is_short) > len(texts) / 3
    assert [row[0] for row in _here(schemas.restored(short)).rows] == texts
    assert not any(is_short[n] for n, text in enumerate(texts) if not text or not text.startswith('{"schema":{'))


def test_a_reference_has_the_fields_of_its_schema() -> None:
    texts = [f'{{"schema":{schema},"payload":{{"op":"c"}}}}' for schema in (*SCHEMAS, *SCHEMAS[:2])]
    schemas = repeated_schemas(RowFrame(LINE_COLUMNS, lines(texts)), PLACEHOLDER)
    assert [each.beginning[10:] for each in schemas.schemas] == list(SCHEMAS[:2]), "one alone is not worth it"
    (reference,) = {json.loads(each.short + "}")["schema"]["fields"] for each in schemas.schemas}
    assert reference.startswith(schemas.mark), "both have the same fields, and so the same id"
    assert json.loads(schemas.fields(reference)) == json.loads(SCHEMAS[0])["fields"]
    assert schemas.fields("[]") == "[]" and NO_SCHEMAS.fields(reference) == reference
