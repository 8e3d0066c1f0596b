"""Keys of dbt's schema v12 for each node that this project does not fill. Owns these keys with dbt's defaults.

Tools that read a manifest use them without checking whether they exist.
Source: https://schemas.getdbt.com/dbt/manifest/v12.json, and what dbt-core 1.11.16 writes.
"""

from __future__ import annotations

from collections.abc import Mapping

_NODE: Mapping[str, object] = {"patch_path": None, "doc_blocks": [], "unrendered_config": {}}
_OF_SQL: Mapping[str, object] = {
    "build_path": None,
    "contract": {"enforced": False, "alias_types": True, "checksum": None},
    "metrics": [],
    "functions": [],
}
_CONFIG: Mapping[str, object] = {
    "enabled": True,
    "alias": None,
    "schema": None,
    "database": None,
    "group": None,
    "meta": {},
    "tags": [],
    "static_analysis": None,
}
_CONFIG_OF_TABLE: Mapping[str, object] = {
    **_CONFIG,
    "batch_size": None,
    "begin": None,
    "column_types": {},
    "concurrent_batches": None,
    "contract": {"enforced": False, "alias_types": True},
    "docs": {"show": True, "node_color": None},
    "event_time": None,
    "full_refresh": None,
    "grants": {},
    "incremental_strategy": None,
    "lookback": 1,
    "on_configuration_change": "apply",
    "on_schema_change": "ignore",
    "packages": [],
    "persist_docs": {},
    "post-hook": [],
    "pre-hook": [],
    "quoting": {},
    "unique_key": None,
}

MODEL: Mapping[str, object] = {
    **_NODE,
    **_OF_SQL,
    "constraints": [],
    "deprecation_date": None,
    "latest_version": None,
    "primary_key": [],
    "time_spine": None,
    "version": None,
}
MODEL_CONFIG: Mapping[str, object] = {**_CONFIG_OF_TABLE, "freshness": None}
ANALYSIS: Mapping[str, object] = {**_NODE, **_OF_SQL, "group": None}
ANALYSIS_CONFIG: Mapping[str, object] = {**_CONFIG_OF_TABLE, "materialized": "view"}
SEED: Mapping[str, object] = {**_NODE, "build_path": None, "docs": {"show": True, "node_color": None}, "group": None,
                              "meta": {}, "root_path": None}  # fmt: skip
SEED_CONFIG: Mapping[str, object] = {**_CONFIG_OF_TABLE, "delimiter": ",", "quote_columns": None}
TEST: Mapping[str, object] = {
    **_NODE,
    **_OF_SQL,
    "columns": {},
    "docs": {"show": True, "node_color": None},
    "group": None,
    "meta": {},
    "relation_name": None,
}
TEST_CONFIG: Mapping[str, object] = {
    **_CONFIG,
    "schema": "dbt_test__audit",
    "severity": "ERROR",
    "error_if": "!= 0",
    "fail_calc": "count(*)",
    "limit": None,
    "store_failures": None,
    "store_failures_as": None,
    "warn_if": "!= 0",
    "where": None,
}
_NO_FRESHNESS: Mapping[str, object] = {
    "warn_after": {"count": None, "period": None},
    "error_after": {"count": None, "period": None},
    "filter": None,
}
SOURCE: Mapping[str, object] = {
    **_NODE,
    "external": None,
    "freshness": _NO_FRESHNESS,
    "loaded_at_query": None,
    "quoting": {"database": None, "schema": None, "identifier": None, "column": None},
    "source_meta": {},
    "unrendered_database": None,
    "unrendered_schema": None,
}
SOURCE_CONFIG: Mapping[str, object] = {
    "enabled": True,
    "event_time": None,
    "freshness": _NO_FRESHNESS,
    "loaded_at_field": None,
    "loaded_at_query": None,
    "meta": {},
    "static_analysis": None,
    "tags": [],
}
COLUMN: Mapping[str, object] = {"constraints": [], "doc_blocks": [], "granularity": None, "quote": None}
COLUMN_CONSTRAINT: Mapping[str, object] = {
    "name": None, "expression": None, "warn_unenforced": True, "warn_unsupported": True, "to": None, "to_columns": []
}  # fmt: skip
FUNCTION: Mapping[str, object] = {
    **_NODE,
    **_OF_SQL,
    "columns": {},
    "docs": {"show": True, "node_color": None},
    "group": None,
    "refs": [],
    "sources": [],
}
FUNCTION_CONFIG: Mapping[str, object] = {
    **_CONFIG_OF_TABLE,
    "materialized": "function",
    "type": "scalar",
    "runtime_version": None,
    "entry_point": None,
}
MACRO: Mapping[str, object] = {
    "config": {"docs": {"show": True, "node_color": None}, "meta": {}},
    "docs": {"show": True, "node_color": None},
    "meta": {},
    "patch_path": None,
    "supported_languages": None,
}
METADATA: Mapping[str, object] = {
    "quoting": {"database": False, "schema": True, "identifier": True, "column": None},
    "send_anonymous_usage_stats": False,
    "user_id": None,
}
