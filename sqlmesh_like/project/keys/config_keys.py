"""The keys of `config` of models, seeds, snapshots and data tests, and of the settings by folder that give them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import get_args

from sqlmesh_like.errors import nearest
from sqlmesh_like.project.keys.config_values import (
    ConfigFault,
    Setting,
    boolean_setting,
    boundary_setting,
    hooks_setting,
    hudi_setting,
    key_setting,
    mapping_setting,
    one_of_setting,
    partitions_setting,
    publish_setting,
    setting_without_effect,
    text_setting,
    texts_setting,
    tolerance_setting,
    unchecked_setting,
)
from sqlmesh_like.project.keys.shape import JsonSchema, Shape
from sqlmesh_like.project.nodes import (
    AuthorStrategy,
    BuildBy,
    Materialized,
    Microbatch,
    ModelConfig,
    Refresh,
    TableType,
)

CHECKED: Mapping[str, Setting] = {
    "materialized": one_of_setting("What the model becomes.", *get_args(Materialized)),
    "unique_key": key_setting("Columns that identify a row; derived from the SQL by default.", ["order_id"]),
    "partition_by": partitions_setting("Columns by which the table's files are partitioned.", ["year_month"]),
    "frozen_before": boundary_setting(
        "Partitions with smaller values of the first column of `partition_by` keep their rows.", "2024-01-01"
    ),
    "build_by": one_of_setting(
        "Builds are done slice by slice: one for each such part of the first column of `partition_by`.",
        *get_args(BuildBy),
    ),
    "build_visible": boolean_setting("Whether readers see the slices of a build that are done so far."),
    "table_type": one_of_setting("Hudi's table type: copy-on-write or merge-on-read.", *get_args(TableType)),
    "refresh": one_of_setting("How the table is updated when its inputs change.", *get_args(Refresh)),
    "floating": tolerance_setting(
        "Relative tolerance within which sums and averages of doubles are merged; `recompute` computes groups anew."
    ),
    "tags": texts_setting("Tags to select by; those of all levels are combined.", ["nightly"]),
    "schema": text_setting("Schema of the table, appended to the target's where dbt's own rule applies.", "dws"),
    "alias": text_setting("Name of the table, if it differs from the file's.", "orders"),
    "enabled": boolean_setting("Whether the node is part of the project."),
    "full_refresh": boolean_setting("Whether --full-refresh rebuilds it: true always, false never."),
    "incremental_strategy": one_of_setting(
        "How an is_incremental() model's own rows are written.", *get_args(AuthorStrategy), *get_args(Microbatch)
    ),
    "merge_update_columns": texts_setting("For strategy merge: the only columns that a match changes.", ["amount"]),
    "merge_exclude_columns": texts_setting("For strategy merge: columns that a match does not change.", ["created_at"]),
    "incremental_predicates": texts_setting(
        "Conditions on the rows of the table that are compared.", ["day > '2024-01-01'"]
    ),
    "on_schema_change": one_of_setting(
        "What an is_incremental() model does when its columns change.",
        *("ignore", "fail", "append_new_columns", "sync_all_columns"),
    ),
    "pre_hook": hooks_setting("Statements before the model; those of all levels are combined.", "delete from audit"),
    "post_hook": hooks_setting(
        "Statements after the model; those of all levels are combined.", "analyze table {{ this }}"
    ),
    "publish": publish_setting(
        "Destinations to which the table is sent after each change.", {"to": "bi", "table": "orders"}
    ),
    "hudi": hudi_setting("Options of Hudi's writer; merged by key.", {"hoodie.parquet.compression.codec": "zstd"}),
    "contract": mapping_setting(
        "`enforced: true`: the query must have the columns that YAML declares.", {"enforced": True}
    ),
    "meta": mapping_setting("Any values of the project's own; merged by key.", {"owner": "sales"}),
    "group": text_setting("Group of the model.", "finance"),
    "access": one_of_setting("Who may ref() it.", "private", "protected", "public"),
    "docs": mapping_setting("Settings of dbt's site, e.g. `show`.", {"show": False}),
    "persist_docs": mapping_setting("dbt's; here it only decides what `state:` compares.", {"relation": True}),
}
_OF_SNAPSHOTS: Mapping[str, Setting] = {
    "strategy": unchecked_setting("Of a snapshot: how a changed row is noticed.", "`timestamp` | `check`", "timestamp"),
    "updated_at": unchecked_setting("Of a snapshot: says when a row was last written.", "column", "updated_at"),
    "check_cols": unchecked_setting(
        "Of a snapshot: the columns that are compared, or `all`.", "list of columns, or `all`", ["status"]
    ),
    "hard_deletes": unchecked_setting(
        "Of a snapshot: what happens to rows that are gone.", "`ignore` | `invalidate` | `new_record`", "invalidate"
    ),
    "invalidate_hard_deletes": unchecked_setting(
        "Of a snapshot: the old spelling of `hard_deletes: invalidate`.", "true or false", True
    ),
    "dbt_valid_to_current": unchecked_setting(
        "Of a snapshot: the value of `dbt_valid_to` while a row is valid.", "SQL", "to_date('9999-12-31')"
    ),
    "snapshot_meta_column_names": unchecked_setting(
        "Of a snapshot: other names of the added columns.", "mapping", {"dbt_valid_from": "valid_from"}
    ),
    "target_schema": unchecked_setting("Of a snapshot, the old spelling of `schema`.", "text", "history"),
}
_OF_SEEDS: Mapping[str, Setting] = {
    "column_types": unchecked_setting("Of a seed: types by column.", "mapping", {"price": "decimal(12,2)"}),
    "delimiter": unchecked_setting("Of a seed: the separator of its values.", "text", ";"),
}
_OF_BATCHES: Mapping[str, Setting] = {
    "event_time": unchecked_setting("The column to which a microbatch model's `begin` applies.", "column", "sold_at"),
    "begin": unchecked_setting(
        "Of a microbatch model: rows of its inputs before it are left out.", "date or time", "2024-01-01"
    ),
    "packages": unchecked_setting(
        "Of a Python model: what it needs; nothing is installed.", "list of texts", ["pandas"]
    ),
}
_OTHER_NAMES: Mapping[str, Setting] = {
    "predicates": texts_setting("dbt's other name of `incremental_predicates`, which wins.", ["day > '2024-01-01'"]),
}
_WITHOUT_EFFECT: Mapping[str, Setting] = {
    "batch_size": setting_without_effect("text", "day", "changes are read as they come, not in batches"),
    "lookback": setting_without_effect("whole number", 1, "late rows are changes like all others"),
    "concurrent_batches": setting_without_effect("true or false", True, "changes are not read in batches"),
    "grants": setting_without_effect(
        "mapping",
        {"select": ["analysts"]},
        "grant privileges where the tables are read: catalog, storage or publishing",
    ),
    "file_format": setting_without_effect("text", "hudi", "tables are Hudi tables", "hudi"),
    "location_root": setting_without_effect("path", "s3://lake", "tables are below the target's `warehouse`"),
    "buckets": setting_without_effect("whole number", 8, "files are laid out by Hudi; see `hudi`"),
    "clustered_by": setting_without_effect("list of columns", ["id"], "files are laid out by Hudi; see `hudi`"),
    "options": setting_without_effect("mapping", {"compression": "zstd"}, "give Hudi's options under `hudi`"),
    "tblproperties": setting_without_effect("mapping", {"owner": "sales"}, "give Hudi's options under `hudi`"),
    "database": setting_without_effect("text", "lake", "a target has one catalog"),
    "target_database": setting_without_effect("text", "lake", "a target has one catalog"),
    "quoting": setting_without_effect("mapping", {"identifier": True}, "names are quoted where they need it"),
    "quote_columns": setting_without_effect("true or false", True, "names are quoted where they need it"),
    "sql_header": setting_without_effect("SQL", "set x = 1", "no statement runs before a query; see `pre_hook`"),
    "static_analysis": setting_without_effect("text", "strict", "SQL is always analyzed"),
}
"""Keys of dbt (and dbt-spark) that are accepted so that an existing project compiles."""
SETTINGS: Mapping[str, Setting] = {
    **CHECKED,
    **_OF_SNAPSHOTS,
    **_OF_SEEDS,
    **_OF_BATCHES,
    **_OTHER_NAMES,
    **_WITHOUT_EFFECT,
}
_SEVERITIES = ("error", "warn")


def _severity(key: str, value: object) -> object:
    word = value.lower() if isinstance(value, str) else value
    if word not in _SEVERITIES:
        hint = nearest(word, _SEVERITIES) if isinstance(word, str) else None
        raise ConfigFault(key, f"severity is {value!r}; it must be one of {', '.join(_SEVERITIES)}", hint)
    return word


def _text(key: str, value: object) -> object:
    if not isinstance(value, str):
        raise ConfigFault(key, f"config {key!r} of a data test must be text, not {value!r}")
    return value


def _count(key: str, value: object) -> object:
    number = str(value).strip()
    if isinstance(value, bool) or not number.isdigit():
        raise ConfigFault(key, f"config {key!r} of a data test must be a whole number, not {value!r}")
    return int(number)


_STRING: JsonSchema = {"type": "string"}
_WORD: JsonSchema = {"type": "string", "pattern": "^([eE][rR][rR][oO][rR]|[wW][aA][rR][nN])$"}
_DIGITS: JsonSchema = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": r"^\s*\d+\s*$"}]}
_OF_TEST = " of a data test"
TEST_SETTINGS: Mapping[str, Setting] = {
    "severity": Setting(
        _severity, "`error` | `warn`", {"anyOf": [{"enum": list(_SEVERITIES)}, _WORD]}, "Severity of a failure.", "warn"
    ),
    "enabled": boolean_setting("Whether the test is part of the project.", _OF_TEST),
    "tags": Setting(
        lambda _key, value: tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),),
        "text or list of texts", {}, "Tags to select by.", ["nightly"],
    ),
    "where": Setting(_text, "SQL", _STRING, "The rows that are tested.", "day > current_date() - 7"),
    "limit": Setting(_count, "whole number", _DIGITS, "How many failing rows are read at most.", 100),
    "store_failures": boolean_setting("Whether failing rows are stored in a table.", _OF_TEST),
    "error_if": Setting(_text, "comparison", _STRING, "When the number of failing rows is an error.", "> 10"),
    "warn_if": Setting(_text, "comparison", _STRING, "When the number of failing rows is a warning.", "> 0"),
    "fail_calc": Setting(_text, "SQL", _STRING, "What is computed from the failing rows.", "count(*)"),
    "store_failures_as": unchecked_setting(
        "How failing rows are stored.", "`table` | `view` | `ephemeral`", "table"
    ),
    "meta": unchecked_setting("Any values of the project's own; merged by key.", "mapping", {"owner": "sales"}),
    "schema": unchecked_setting("Schema of the table of failing rows.", "text", "failures"),
    "alias": unchecked_setting("Name of the table of failing rows.", "text", "orders_without_buyer"),
    "group": unchecked_setting("Group of the test.", "text", "finance"),
    "materialized": unchecked_setting("dbt's; a test is always a query.", "`test`", "test"),
    **{name: _WITHOUT_EFFECT[name] for name in ("database", "sql_header", "static_analysis")},
}  # fmt: skip
_TEST_DEFAULTS: Mapping[str, object] = {"severity": "error", "enabled": True, "fail_calc": "count(*)",
                                        "error_if": "!= 0", "warn_if": "!= 0"}  # fmt: skip


def _default(name: str) -> object:
    fields = {one.name: one for one in dataclasses.fields(ModelConfig)}
    default = fields[name].default if name in fields else None
    return None if default is dataclasses.MISSING or default == () else default


class ConfigShape(Shape):
    """Keys of `config`, which YAML may write with hyphens: `pre-hook`."""

    def schema(self) -> JsonSchema:
        spelt = {spelling: key.schema() for name, key in self.keys.items() for spelling in _spellings(name)}
        return {"type": "object", "properties": spelt, "additionalProperties": False}


class FolderTree(Shape):
    """Settings by folder: a plain key is a setting if one has that name, else a folder; `+key` is always a setting."""

    def schema(self) -> JsonSchema:
        spelt = {
            f"{plus}{spelling}": key.schema()
            for name, key in self.keys.items()
            for spelling in _spellings(name)
            for plus in ("", "+")
        }
        known = {"enum": [name for name in spelt if name.startswith("+")]}
        folders: JsonSchema = {"anyOf": [self]}
        names: JsonSchema = {"anyOf": [known, {"not": {"pattern": r"^\+"}}]}
        return {"type": "object", "properties": spelt, "propertyNames": names, "additionalProperties": folders}


def _spellings(name: str) -> tuple[str, ...]:
    return (name, name.replace("_", "-")) if "_" in name else (name,)


_KEYS = {name: setting.key(_default(name)) for name, setting in SETTINGS.items()}
_TEST_KEYS = {name: setting.key(_TEST_DEFAULTS.get(name)) for name, setting in TEST_SETTINGS.items()}
CONFIG = ConfigShape("the config of a node", _KEYS, others="warn")
NODES_BY_FOLDER = FolderTree("the settings of nodes by folder", _KEYS, others="take")
TEST_CONFIG = Shape("the config of a data test", _TEST_KEYS, others="warn")
TESTS_BY_FOLDER = FolderTree("the settings of data tests by folder", _TEST_KEYS, others="take")
