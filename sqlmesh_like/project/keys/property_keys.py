"""The keys of properties files: models, seeds, snapshots, analyses, macros, exposures, groups and data tests."""

from __future__ import annotations

from sqlmesh_like.project.keys.column_keys import COLUMN, data_tests
from sqlmesh_like.project.keys.config_keys import CONFIG, TEST_CONFIG
from sqlmesh_like.project.keys.function_keys import FUNCTION
from sqlmesh_like.project.keys.shape import Key, Shape
from sqlmesh_like.project.keys.source_keys import SOURCE
from sqlmesh_like.project.keys.unit_test_keys import UNIT_TEST
from sqlmesh_like.project.keys.value_types import (
    NO_CONSTRAINTS,
    anything,
    choice,
    custom,
    each,
    entry,
    flag,
    list_of_texts,
    plain_mapping,
    text,
    texts,
    unchecked_value,
    without_effect,
)
from sqlmesh_like.project.semantic.metrics import METRIC
from sqlmesh_like.project.semantic.saved_queries import SAVED_QUERY
from sqlmesh_like.project.semantic.semantic_models import SEMANTIC_MODEL
from sqlmesh_like.project.semantic.time_spines import TIME_SPINE

_NAME = Key(text, is_required=True, help="Its name.", example="orders")
_DESCRIPTION = Key(text, help="What it is, in Markdown; `{{ doc('name') }}` quotes a doc block.", example="Orders.")
_META = Key(plain_mapping, help="Any values of the project's own.", example={"owner": "sales"})
_TAGS = Key(texts, help="Tags to select by.", example=["nightly"])
_OWN_META = Key(unchecked_value("mapping", {"owner": "sales"}), help="Any values of the project's own.")
_DOCS = Key(unchecked_value("mapping", {"show": False}), help="Settings of dbt's site; not read here.")
_DEPRECATION = Key(unchecked_value("date", "2025-12-31"), help="When it goes; documentation only.")
_UNREAD_CONFIG = Key(unchecked_value("mapping", {"meta": {"owner": "sales"}}), help="Settings; not read here.")
_TESTS = Key(data_tests, help="Data tests of the table.", example=[{"unique": {"arguments": {"column_name": "id"}}}])
_OLD_TESTS = Key(data_tests, help="The old name of `data_tests`.", example=["unique"])
_CONFIG = Key(entry(CONFIG), help="Settings; they override the project's and are overridden by in-file config().",
              example={"materialized": "view"})  # fmt: skip
_FROM_CONFIG = {name: CONFIG.keys[name] for name in ("meta", "docs", "access", "group")}
"""Settings that may be given next to the name, outside of `config:`."""

COLUMN_RULE = Shape("a rule for columns", {
    "include": Key(texts, help="Columns of the model that the version has; `all` or `*`: all of them.", example="all"),
    "exclude": Key(texts, help="Columns of the model that it does not have.", example=["old"]),
})  # fmt: skip
VERSION = Shape("a version", {
    "v": Key(text, help="Its number or name; required.", example=1),
    "defined_in": Key(text, help="Its file, without suffix. Default: `<name>_v<v>`.", example="orders_old"),
    "description": _DESCRIPTION, "access": CONFIG.keys["access"], "docs": CONFIG.keys["docs"], "config": _CONFIG,
    "columns": Key(custom("list: column, or rule for columns",
                          {"type": "array", "items": {"anyOf": [COLUMN, COLUMN_RULE]}}),
                   help="Its columns; they override the model's.", example=[{"include": "all", "exclude": ["old"]}]),
    "data_tests": _TESTS, "tests": _OLD_TESTS, "constraints": NO_CONSTRAINTS, "deprecation_date": _DEPRECATION,
})  # fmt: skip
_NODE_KEYS = {
    "name": _NAME,
    "description": _DESCRIPTION,
    "config": _CONFIG,
    "columns": Key(each(COLUMN), help="Its columns.", example=[{"name": "order_id", "data_tests": ["unique"]}]),
    "data_tests": _TESTS,
    "tests": _OLD_TESTS,
    **_FROM_CONFIG,
    "tags": Key(anything, help="Ignored with a warning, as in dbt: write `config: {tags: […]}`.",
                example=["nightly"]),
    "versions": Key(each(VERSION), help="Of a model: its versions.", example=[{"v": 1}, {"v": 2}]),
    "latest_version": Key(text, help="The version that a plain ref() means. Default: the highest.", example=2),
    "time_spine": Key(entry(TIME_SPINE), help="Of a model: the time spine that metrics are joined to.",
                      example={"standard_granularity_column": "day"}),
    "relation": Key(text, help="Of a snapshot without a file: its relation.", example="source('shop', 'orders')"),
    "constraints": NO_CONSTRAINTS,
    "deprecation_date": _DEPRECATION,
    "primary_key": without_effect("list of columns", ["id"], "the key is `unique_key`, or derived from the SQL"),
    "quote_columns": without_effect("true or false", True, "names are quoted where they need it"),
}  # fmt: skip
NODES = {kind: Shape(f"a {kind}", _NODE_KEYS, others="warn") for kind in ("model", "seed", "snapshot", "analysis")}
DATA_TEST = Shape("a data test", {
    "name": Key(text, is_required=True, help="The file of the test, without suffix.", example="no_orphans"),
    "description": _DESCRIPTION, "meta": TEST_CONFIG.keys["meta"], "docs": _DOCS,
    "config": Key(entry(TEST_CONFIG), help="Settings.", example={"severity": "warn"}),
}, others="warn")  # fmt: skip
ARGUMENT = Shape("an argument", {
    "name": Key(text, is_required=True, help="Its name.", example="column_name"),
    "type": Key(text, help="Its type, in words.", example="string"),
    "description": _DESCRIPTION,
}, others="take")  # fmt: skip
MACRO = Shape("a macro", {
    "name": Key(text, is_required=True, help="Its name.", example="cents"),
    "description": _DESCRIPTION,
    "arguments": Key(each(ARGUMENT), help="Its arguments.", example=[{"name": "column_name", "type": "string"}]),
    "meta": _OWN_META, "docs": _DOCS, "config": _UNREAD_CONFIG,
}, others="warn")  # fmt: skip
OWNER = Shape("an owner", {
    "name": Key(text, help="Name of a person or team; or give `email`.", example="Sales"),
    "email": Key(text, help="E-mail address; or give `name`.", example="sales@example.com"),
}, others="take")  # fmt: skip
_OWNER = Key(entry(OWNER), is_required=True, help="Its owner.", example={"name": "Sales"})
EXPOSURE_CONFIG = Shape("the config of an exposure", {
    "enabled": Key(flag, True, help="Whether it is part of the project.", example=False), "tags": _TAGS, "meta": _META,
}, others="take")  # fmt: skip
EXPOSURE = Shape("an exposure", {
    "name": Key(text, is_required=True, help="Its name.", example="sales_dashboard"),
    "type": Key(choice("dashboard", "notebook", "analysis", "ml", "application"), is_required=True,
                help="What it is.", example="dashboard"),
    "owner": _OWNER,
    "depends_on": Key(list_of_texts, help="What it reads, as calls of ref() and source().", example=["ref('orders')"]),
    "description": _DESCRIPTION,
    "label": Key(text, help="Its display name.", example="Sales"),
    "maturity": Key(choice("high", "medium", "low"), help="How reliable it is.", example="high"),
    "url": Key(text, help="Its address.", example="https://bi.example.com/sales"),
    "tags": _TAGS, "meta": _META,
    "config": Key(entry(EXPOSURE_CONFIG), help="Settings.", example={"enabled": False}),
    "enabled": Key(flag, True, help="Whether it is part of the project.", example=False),
    "docs": _DOCS,
})  # fmt: skip
GROUP = Shape("a group", {
    "name": Key(text, is_required=True, help="Its name.", example="finance"),
    "owner": _OWNER, "description": _DESCRIPTION, "config": _UNREAD_CONFIG, "meta": _OWN_META,
})  # fmt: skip
PROPERTIES = Shape("a properties file", {
    "version": Key(anything, help="Version of the format: 2.", example=2),
    "models": Key(each(NODES["model"]), help="Properties of models.", example=[{"name": "orders"}]),
    "seeds": Key(each(NODES["seed"]), help="Properties of seeds.", example=[{"name": "countries"}]),
    "snapshots": Key(each(NODES["snapshot"]), help="Snapshots and their properties.",
                     example=[{"name": "orders_history", "relation": "source('shop', 'orders')"}]),
    "analyses": Key(each(NODES["analysis"]), help="Properties of analyses.", example=[{"name": "top_buyers"}]),
    "sources": Key(each(SOURCE), help="Tables that are read, and events that are ingested.",
                   example=[{"name": "shop", "tables": [{"name": "orders"}]}]),
    "unit_tests": Key(each(UNIT_TEST), help="Tests of models with given rows.",
                      example=[{"name": "adds_up", "model": "orders", "expect": {"rows": []}}]),
    "data_tests": Key(each(DATA_TEST), help="Properties of data tests that are files.",
                      example=[{"name": "no_orphans"}]),
    "macros": Key(each(MACRO), help="Properties of macros.", example=[{"name": "cents"}]),
    "exposures": Key(each(EXPOSURE), help="What reads the tables outside the project.",
                     example=[{"name": "sales_dashboard", "type": "dashboard", "owner": {"name": "Sales"}}]),
    "groups": Key(each(GROUP), help="Owners of models.", example=[{"name": "finance", "owner": {"name": "Finance"}}]),
    "semantic_models": Key(each(SEMANTIC_MODEL), help="Part of dbt's semantic layer; written to the manifest.",
                           example=[{"name": "orders", "model": "ref('orders')"}]),
    "metrics": Key(each(METRIC), help="Part of dbt's semantic layer; written to the manifest.",
                   example=[{"name": "sales", "label": "Sales", "type": "simple",
                             "type_params": {"measure": "sales"}}]),
    "saved_queries": Key(each(SAVED_QUERY), help="Part of dbt's semantic layer; written to the manifest.",
                         example=[{"name": "by_day", "query_params": {"metrics": ["sales"]}}]),
    "functions": Key(each(FUNCTION), help="Functions that queries call; each has a file with its expression.",
                     example=[{"name": "cents", "returns": {"data_type": "bigint"}}]),
    "anchors": Key(anything, help="Values for YAML's anchors.", example=[{"type": "not_null"}]),
}, others="warn")  # fmt: skip
