"""The config of data tests. Owns how levels of it merge; `keys` declares which settings there are.

As in dbt, the YAML entry of a generic test overrides its macro, in-file `config()` of a singular test overrides its
entry, and the settings of the project are weakest; tags are combined, `meta` merges by key.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlmesh_like.errors import ProjectError, nearest
from sqlmesh_like.project.config import canonical
from sqlmesh_like.project.keys.config_keys import TEST_SETTINGS
from sqlmesh_like.project.keys.config_values import ConfigFault, UnknownSetting
from sqlmesh_like.project.reading.project_warnings import warn
from sqlmesh_like.project.reading.values import ValueRenderer
from sqlmesh_like.project.reading.yaml_node import YamlNode


def check_test_setting(key: str, value: object) -> object:
    """The value in its normal form; None unsets a key. Raises ConfigFault, or UnknownSetting for an unknown key.

    >>> check_test_setting("severity", "WARN"), check_test_setting("tags", "nightly")
    ('warn', ('nightly',))
    """
    if key not in TEST_SETTINGS:
        raise UnknownSetting(key, f"unknown config key {key!r} of a data test is ignored", nearest(key, TEST_SETTINGS))
    return None if value is None else TEST_SETTINGS[key].check(key, value)


def check_test_setting_at(key: str, node: YamlNode, values: ValueRenderer) -> object:
    """The normal form of a value in YAML, with Jinja rendered. Raises ProjectError; warns about an unknown key."""
    value = values.render(node).value
    try:
        return check_test_setting(key, value)
    except UnknownSetting as unknown:
        warn(node.key_location, unknown.message, unknown.hint, once=unknown.once)
        return value
    except ConfigFault as fault:
        raise ProjectError(fault.message, location=node.key_location, hint=fault.hint) from fault


def setting_by_folder(key: str, node: YamlNode, values: ValueRenderer) -> tuple[str, object] | None:
    """A setting under `data_tests:` of the project's settings; None if the key is a folder."""
    name = canonical(key)
    if not key.startswith("+") and isinstance(node.value, dict):
        return None
    return name, check_test_setting_at(name, node, values)


def merge_settings(*levels: Mapping[str, object]) -> dict[str, object]:
    """Levels of checked settings as one, the weakest first.

    >>> merge_settings({"tags": ("a",), "limit": 1}, {"tags": ("b",), "limit": 2})
    {'tags': ('a', 'b'), 'limit': 2}
    """
    settings: dict[str, object] = {}
    for level in levels:
        for key, value in level.items():
            old = settings.get(key)
            if key == "tags" and isinstance(old, tuple) and isinstance(value, tuple):
                settings[key] = tuple(dict.fromkeys((*old, *value)))
            elif key == "meta" and isinstance(old, Mapping) and isinstance(value, Mapping):
                settings[key] = {**old, **value}
            else:
                settings[key] = value
    return settings
