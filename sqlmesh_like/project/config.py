"""The settings of `config`. Owns how three levels of them merge; `keys` declares the settings.

Precedence: in-file `config()` > properties YAML > project settings; tags and hooks are combined, `meta` and `hudi`
merge by key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from sqlmesh_like.errors import nearest
from sqlmesh_like.project.keys.config_keys import CHECKED, SETTINGS
from sqlmesh_like.project.keys.config_values import ConfigFault, UnknownSetting
from sqlmesh_like.project.nodes import ModelConfig

ConfigValues = Mapping[str, object]
_ADDING = frozenset({"tags", "pre_hook", "post_hook"})
_MERGING = frozenset({"meta", "hudi"})
HookTime = Literal["pre_hook", "post_hook"]
HOOKS = frozenset({"pre_hook", "post_hook", "pre-hook", "post-hook"})


def canonical(key: str) -> str:
    """The key as `config()` spells it: YAML's `+pre-hook` is `pre_hook`.

    >>> canonical("+pre-hook")
    'pre_hook'
    """
    return key.removeprefix("+").replace("-", "_")


def refuse_both_spellings(keys: Iterable[str]) -> None:
    """Raise ConfigFault where one level has both spellings of a hook: one of them would not be run.

    >>> refuse_both_spellings(["pre-hook", "post_hook", "tags"])
    """
    plain = {key.removeprefix("+") for key in keys}
    for key in ("pre_hook", "post_hook"):
        other = key.replace("_", "-")
        if {key, other} <= plain:
            message = f"{key} and {other} are one setting: only one of them can be given"
            raise ConfigFault(key, message, "write one, with a list of all statements")


def is_config_key(key: str) -> bool:
    """Whether a plain key under `models:` of the settings is a setting rather than a folder."""
    return canonical(key) in SETTINGS


def check_setting(key: str, value: object) -> object:
    """The value in its normal form; None unsets a key. Raises ConfigFault, or UnknownSetting for an unknown key.

    >>> check_setting("unique_key", "id"), check_setting("unique_key", "")
    (('id',), ())
    """
    if key not in SETTINGS:
        hint = nearest(key, sorted(SETTINGS)) or "settings of your own go under meta: {…}"
        raise UnknownSetting(key, f"unknown config key {key!r} is ignored", hint)
    return None if value is None else SETTINGS[key].check(key, value)


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
        # Merge grants by privilege, as in dbt; `+select` adds to those who have the privilege.
        grants = dict(old)
        for name, whom in new.items():
            privilege, before = name.removeprefix("+"), grants.get(name.removeprefix("+"), ())
            added = _as_list(before) if name.startswith("+") else []
            grants[privilege] = [*added, *_as_list(whom)]
        return grants
    if key in _MERGING and isinstance(old, Mapping) and isinstance(new, Mapping):
        return {**old, **new}
    return new


def _as_list(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [value]


def build_config(values: ConfigValues) -> ModelConfig:
    """The effective config of checked settings; keys of dbt without effect here are left out.

    >>> build_config({"materialized": "table", "tags": ("daily",)}).tags
    ('daily',)
    """
    known = {key: value for key, value in values.items() if key in CHECKED and value is not None}
    if predicates := values.get("predicates"):
        known["incremental_predicates"] = predicates
    if isinstance(known.get("partition_by"), Mapping):  # BigQuery's form, which only templates see
        del known["partition_by"]
    return ModelConfig(**known)  # type: ignore[arg-type]  # the checks give each key its type
