"""The keys of `unit_tests:`."""

from __future__ import annotations

from typing import get_args

from sqlmesh_like.project.keys.shape import JsonSchema, Key, Shape
from sqlmesh_like.project.keys.value_types import (
    anything,
    choice,
    custom,
    each,
    entry,
    flag,
    plain_mapping,
    text,
    texts,
    unchecked_value,
)
from sqlmesh_like.project.testing.unit_test_spec import FixtureFormat

_ROWS: JsonSchema = {"type": "array", "items": {"type": "object"}}
_FIXTURE = {
    "rows": Key(custom("list of mappings, or CSV or SQL", _ROWS, {"type": "string"}),
                help="The rows, in the given `format`.", example=[{"id": 1, "amount": 12.5}]),
    "format": Key(choice(*get_args(FixtureFormat)), "dict", help="Format of the rows.", example="csv"),
    "fixture": Key(text, help="Name, without suffix, of a file below `<test-path>/fixtures`.", example="orders"),
}  # fmt: skip
_INPUT = Key(text, is_required=True, help="The input: ref(), source() or this.", example="ref('orders')")
GIVEN = Shape("an entry of given", {"input": _INPUT, **_FIXTURE})
EXPECT = Shape("expect", _FIXTURE)
CHANGE = Shape("an entry of changes", {
    "input": _INPUT,
    "upsert": Key(custom("list of mappings", _ROWS), help="Rows that are added or changed.",
                  example=[{"id": 1, "amount": 9}]),
    "delete": Key(custom("list of mappings", _ROWS), help="Rows that are deleted.", example=[{"id": 2}]),
    "key": Key(texts, help="Columns that identify a row.", example=["id"]),
})  # fmt: skip
OVERRIDES = Shape("overrides", {
    "macros": Key(plain_mapping, help="Results of macro calls.", example={"is_incremental": False}),
    "vars": Key(plain_mapping, help="Variables.", example={"least": 3}),
    "env_vars": Key(plain_mapping, help="Environment variables.", example={"REGION": "eu"}),
    "now": Key(anything, help="The current time.", example="2024-01-31 12:00:00"),
})  # fmt: skip
UNIT_CONFIG = Shape("the config of a unit test", {
    "tags": Key(texts, help="Tags to select by.", example=["nightly"]),
    "meta": Key(plain_mapping, help="Any values of the project's own.", example={"owner": "sales"}),
    "enabled": Key(flag, True, help="Whether it is part of the project.", example=False),
    "static_analysis": Key(unchecked_value("text", "strict"), help="dbt's; no effect here: SQL is always analyzed."),
})  # fmt: skip
UNIT_VERSIONS = Shape("versions", {
    "include": Key(texts, help="Versions of the model that are tested. Default: all.", example=["2"]),
    "exclude": Key(texts, help="Versions of the model that are not tested.", example=["1"]),
})  # fmt: skip
UNIT_TEST = Shape("a unit test", {
    "name": Key(text, is_required=True, help="Its name.", example="adds_up"),
    "model": Key(text, is_required=True, help="The model that is tested.", example="orders"),
    "description": Key(text, help="What the test shows.", example="Sums of a day."),
    "given": Key(each(GIVEN), help="Rows of the model's inputs.",
                 example=[{"input": "ref('orders')", "rows": [{"id": 1}]}]),
    "changes": Key(each(CHANGE), help="Later changes of the inputs; the table must be updated accordingly.",
                   example=[{"input": "ref('orders')", "delete": [{"id": 1}], "key": ["id"]}]),
    "expect": Key(entry(EXPECT), help="The rows of the table at the end.", example={"rows": [{"total": 1}]}),
    "overrides": Key(entry(OVERRIDES), help="What templates see.", example={"vars": {"least": 3}}),
    "config": Key(entry(UNIT_CONFIG), help="Settings.", example={"enabled": False}),
    "tags": Key(texts, help="Tags to select by.", example=["nightly"]),
    "meta": Key(anything, help="Any values of the project's own.", example={"owner": "sales"}),
    "versions": Key(entry(UNIT_VERSIONS), help="Of a model with versions.", example={"include": ["2"]}),
})  # fmt: skip
