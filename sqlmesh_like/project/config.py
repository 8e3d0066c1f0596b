"""The keys of `config`. Owns which there are, what values they take and how three levels of them merge.

Precedence: in-file `config()` > properties YAML > project settings; tags and hooks add up, `meta` and `hudi`
merge by key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import get_args

from sqlmesh_like.errors import nearest
from sqlmesh_like.project.nodes import AuthorStrategy, Materialized, Microbatch, ModelConfig, Refresh, TableType
from sqlmesh_like.project.publishing import Publish

ConfigValues = Mapping[str, object]


class ConfigFault(Exception):
    """A wrong key or value; whoever knows the place turns it into a located error."""

    def __init__(self, key: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.key = key
        self.message = message
        self.hint = hint


class UnknownSetting(ConfigFault):
    """A key that means nothing here. As in dbt it may be there: whoever knows the place warns of it."""

    @property
    def kept(self) -> bool:
        """Whether the value is kept for templates that ask for it."""
        return True


class UnusedSetting(UnknownSetting):
    """A value that only another database knows, of a key that would mean something here: as if it were not there."""

    @property
    def kept(self) -> bool:
        return False


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise ConfigFault(key, f"config {key!r} must be text, not {value!r}")
    return value


def _texts(key: str, value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    parts = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(part, str) for part in parts):
        raise ConfigFault(key, f"config {key!r} must be a text or a list of texts, not {value!r}")
    return tuple(parts)


def _partitions(key: str, value: object) -> tuple[str, ...]:
    """Columns. BigQuery's mapping of a field means its column where a partition is a value of it: a date by day."""
    if not isinstance(value, Mapping):
        return _texts(key, value)
    column = value.get("field")
    is_value = value.get("data_type", "date") == "date" and value.get("granularity", "day") == "day"
    if not isinstance(column, str) or not is_value:
        hint = "give a column, or a list of them; this form is known for a date by day alone"
        raise UnusedSetting(key, f"config {key!r} of another database is ignored: the table is not partitioned", hint)
    return (column,)


def _hooks(key: str, value: object) -> tuple[str, ...]:
    parts = value if isinstance(value, list | tuple) else [value]
    return _texts(key, [part.get("sql") if isinstance(part, Mapping) else part for part in parts if part is not None])


def flag(key: str, value: object, of: str = "") -> bool:
    """A setting `of` something that is true or false, as a word too. Raises ConfigFault."""
    words: Mapping[object, bool] = {True: True, False: False, "true": True, "false": False}
    word = value.strip().lower() if isinstance(value, str) else value
    if not isinstance(word, str | bool) or word not in words:
        raise ConfigFault(key, f"config {key!r}{of} must be true or false, not {value!r}")
    return words[word]


def _mapping(key: str, value: object) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigFault(key, f"config {key!r} must be a mapping of keys to values, not {value!r}")
    return {str(name): part for name, part in value.items()}


def _settings(key: str, value: object) -> Mapping[str, str]:
    return {name: _setting(f"{key}.{name}", part) for name, part in _mapping(key, value).items()}


def _setting(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise ConfigFault(key, f"config {key!r} must be a text, number or boolean, not {value!r}")


def _publish(key: str, value: object) -> Publish | None:
    if isinstance(value, bool):
        return Publish() if value else None
    if not isinstance(value, Mapping):
        return Publish(_texts(key, value))
    unknown = sorted(map(str, value.keys() - {"to", "table"}))
    if unknown:
        raise ConfigFault(key, f"unknown key {unknown[0]!r} in config {key!r}", "known keys: to, table")
    table = value.get("table")
    return Publish(_texts(key, value.get("to")), None if table is None else _text(f"{key}.table", table))


def _one_of(*allowed: str) -> Callable[[str, object], str]:
    def check(key: str, value: object) -> str:
        if value not in allowed:
            hint = nearest(value, allowed) if isinstance(value, str) else None
            raise ConfigFault(key, f"config {key!r} is {value!r}; it must be one of {', '.join(allowed)}", hint)
        return str(value)

    return check


_CHECKS: Mapping[str, Callable[[str, object], object]] = {
    "materialized": _one_of(*get_args(Materialized)),
    "unique_key": _texts,
    "partition_by": _partitions,
    "table_type": _one_of(*get_args(TableType)),
    "refresh": _one_of(*get_args(Refresh)),
    "tags": _texts,
    "schema": _text,
    "alias": _text,
    "enabled": flag,
    "full_refresh": flag,
    "incremental_strategy": _one_of(*get_args(AuthorStrategy), *get_args(Microbatch)),
    "merge_update_columns": _texts,
    "merge_exclude_columns": _texts,
    "incremental_predicates": _texts,
    "on_schema_change": _one_of("ignore", "fail", "append_new_columns", "sync_all_columns"),
    "pre_hook": _hooks,
    "post_hook": _hooks,
    "publish": _publish,
    "hudi": _settings,
    "contract": _mapping,
    "meta": _mapping,
    "group": _text,
    "access": _one_of("private", "protected", "public"),
    "docs": _mapping,
    "persist_docs": _mapping,
}

# Keys of dbt (and dbt-spark) that change nothing here: taken as they are, so that an existing project compiles.
_DBT_KEYS = frozenset(
    {
        *("batch_size", "begin", "buckets", "clustered_by", "column_types", "concurrent_batches", "database"),
        *(
            "delimiter",
            "event_time",
            "file_format",
            "grants",
            "location_root",
        ),
        *("lookback", "options", "packages"),
        *("strategy", "updated_at", "check_cols", "hard_deletes", "invalidate_hard_deletes", "target_schema"),
        *("target_database", "dbt_valid_to_current", "snapshot_meta_column_names"),
        *("quote_columns", "quoting", "sql_header", "static_analysis", "tblproperties"),
    }
)
_MODEL_KEYS = frozenset(_CHECKS) | _DBT_KEYS
_ADDING = frozenset({"tags", "pre_hook", "post_hook"})
_MERGING = frozenset({"meta", "hudi"})
HOOKS = frozenset({"pre_hook", "post_hook", "pre-hook", "post-hook"})


def canonical(key: str) -> str:
    """The key as `config()` spells it: YAML's `+pre-hook` is `pre_hook`.

    >>> canonical("+pre-hook")
    'pre_hook'
    """
    return key.removeprefix("+").replace("-", "_")


def is_config_key(key: str) -> bool:
    """Whether a plain key under `models:` of the settings is a setting rather than a folder."""
    return canonical(key) in _MODEL_KEYS


def check_setting(key: str, value: object) -> object:
    """The value in its normal form; None unsets a key. Raises ConfigFault for a wrong value, UnknownSetting for a key.

    >>> check_setting("unique_key", "id")
    ('id',)
    """
    if key not in _MODEL_KEYS:
        hint = nearest(key, sorted(_MODEL_KEYS)) or "settings of your own go under meta: {…}"
        raise UnknownSetting(key, f"unknown config key {key!r} is ignored", hint)
    if value is None or key not in _CHECKS:
        return value
    return _CHECKS[key](key, value)


def merge_config(base: ConfigValues, over: ConfigValues) -> dict[str, object]:
    """Two levels of checked settings as one.

    >>> merge_config({"tags": ("a",), "schema": "x"}, {"tags": ("b", "a"), "schema": "y"})
    {'tags': ('a', 'b'), 'schema': 'y'}
    """
    merged = dict(base)
    for key, value in over.items():
        merged[key] = _combine(key, merged.get(key), value)
    return merged


def _combine(key: str, old: object, new: object) -> object:
    if key in _ADDING and isinstance(old, tuple) and isinstance(new, tuple):
        return tuple(dict.fromkeys((*old, *new)))
    if key == "grants" and isinstance(old, Mapping) and isinstance(new, Mapping):
        return _granted(old, new)
    if key in _MERGING and isinstance(old, Mapping) and isinstance(new, Mapping):
        return {**old, **new}
    return new


def _granted(old: ConfigValues, new: ConfigValues) -> dict[str, object]:
    """As in dbt privilege by privilege; `+select` adds to those that have it."""
    grants = dict(old)
    for name, whom in new.items():
        privilege, before = name.removeprefix("+"), grants.get(name.removeprefix("+"), ())
        added = _listed(before) if name.startswith("+") else []
        grants[privilege] = [*added, *_listed(whom)]
    return grants


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [value]


def build_config(values: ConfigValues) -> ModelConfig:
    """The effective config of checked settings; keys of dbt without a meaning here stay out.

    >>> build_config({"materialized": "table", "tags": ("daily",)}).tags
    ('daily',)
    """
    known = {key: value for key, value in values.items() if key in _CHECKS and value is not None}
    if isinstance(known.get("partition_by"), Mapping):  # BigQuery's form, which stays for templates
        del known["partition_by"]
    return ModelConfig(**known)  # type: ignore[arg-type]  # the checks give each key its type
