"""The keys of columns, and the entries of `data_tests:`, which nodes and columns share."""

from __future__ import annotations

from sqlmesh_like.project.keys.config_keys import TEST_CONFIG
from sqlmesh_like.project.keys.shape import Form, JsonSchema, Key, Shape
from sqlmesh_like.project.keys.value_types import (
    any_granularity,
    data_type,
    each,
    entry,
    flag,
    plain_mapping,
    text,
    texts,
    unchecked_value,
    without_effect,
)

_ENTRY: JsonSchema = {
    "type": ["object", "null"],
    "properties": {
        "arguments": {"type": ["object", "null"]},
        "name": {"type": ["string", "number", "null"]},
        "description": {"type": ["string", "number", "null"]},
        "config": {"anyOf": [TEST_CONFIG, {"type": "null"}]},
    },
}
"""The value under a test's name: arguments of its macro, and settings."""
_NAMED: JsonSchema = {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": _ENTRY}
_BY_TEST_NAME: JsonSchema = {**_ENTRY, "type": "object", "required": ["test_name"]}
data_tests = Form(
    lambda node, _key: [element.value for element in node.sequence("data_tests")],
    "list: name of a test, or {name: {arguments, config}}",
    {"type": "array", "items": {"anyOf": [{"type": "string"}, _NAMED, _BY_TEST_NAME]}},
)
_META = Key(plain_mapping, help="Any values of the project's own.", example={"pii": True})
_TAGS = Key(texts, help="Tags to select by; its data tests have them too.", example=["pii"])
CONSTRAINT = Shape("a constraint", {
    "type": Key(text, help="not_null, primary_key …", example="not_null"),
}, others="take")  # fmt: skip
COLUMN_CONFIG = Shape("the config of a column", {"tags": _TAGS, "meta": _META}, others="take")
COLUMN_KEYS = {
    "name": Key(text, is_required=True, help="Its name.", example="order_id"),
    "description": Key(text, help="What it is, in Markdown.", example="Number of the order."),
    "data_type": Key(data_type, help="Its type in Spark SQL.", example="decimal(12,2)"),
    "data_tests": Key(data_tests, help="Data tests of the column.", example=["not_null", "unique"]),
    "tests": Key(data_tests, help="The old name of `data_tests`.", example=["not_null"]),
    "meta": _META,
    "tags": _TAGS,
    "quote": Key(flag, help="Whether the name is written in quotes.", example=True),
    "constraints": Key(each(CONSTRAINT), help="For the manifest: constraints are not enforced; write data tests.",
                       example=[{"type": "not_null"}], instead="constraints are not enforced; write data tests"),
    "config": Key(entry(COLUMN_CONFIG), help="Settings.", example={"tags": ["pii"]}),
    "granularity": Key(any_granularity, help="Of a time column: the granularity of its values.", example="day"),
    "policy_tags": without_effect("list of texts", ["pii"], "no privileges of columns are set"),
    "docs": Key(unchecked_value("mapping", {"show": False}), help="Settings of dbt's site; not read here."),
}  # fmt: skip
COLUMN = Shape("a column", COLUMN_KEYS, others="warn")
