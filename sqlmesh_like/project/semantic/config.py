"""The settings of semantic models, metrics and saved queries. Owns how their levels merge.

As in dbt the entry wins over the project's settings, and those of the root project over a package's entry; `meta`
merges by key. An unknown key is written to the manifest unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from sqlmesh_like.project.folder_config import FolderConfig
from sqlmesh_like.project.reading.yaml_node import YamlNode
from sqlmesh_like.project.settings import check_setting_at

SettingsKey = Literal["semantic-models", "metrics", "saved-queries"]
Config = Mapping[str, object]
_CHECKED = frozenset({"enabled", "group", "meta"})


def merged_config(
    key: SettingsKey, fqn: tuple[str, ...], entry: YamlNode, by_folder: FolderConfig
) -> dict[str, object]:
    """The effective settings of an entry of this fqn. Raises ProjectError for a wrong value."""
    own = entry.mapping_of("config")
    levels = [*_settings(key, fqn, by_folder), {name: _value(name, child) for name, child in own.items()}]
    return merge([*levels, *_settings(key, fqn, by_folder, of_root=True)])


def _settings(
    key: SettingsKey, fqn: tuple[str, ...], by_folder: FolderConfig, *, of_root: bool = False
) -> list[Config]:
    """The project's own settings, or with `of_root` the root project's for a package; the outermost folder first."""
    settings = by_folder.over if of_root else by_folder.settings
    levels = [] if settings is None else settings.plain_config(key, fqn)
    values = by_folder.values
    return [{name: _value(name, values.render(child)) for name, child in level.items()} for level in levels]


def _value(name: str, node: YamlNode) -> object:
    return check_setting_at(name, node) if name in _CHECKED else node.value


def merge(levels: Iterable[Config]) -> dict[str, object]:
    """Levels as one, the weakest first.

    >>> merge([{"meta": {"a": 1}, "group": "x"}, {"meta": {"b": 2}, "group": "y"}])
    {'enabled': True, 'group': 'y', 'meta': {'a': 1, 'b': 2}}
    """
    config: dict[str, object] = {"enabled": True, "group": None, "meta": {}}
    for level in levels:
        for key, value in level.items():
            if key == "meta":
                metas = (meta for meta in (config.get(key), value) if isinstance(meta, Mapping))
                config[key] = {name: one for meta in metas for name, one in meta.items()}
            else:
                config[key] = value
    return config
