"""What a project has and nothing reads: settings that apply to nothing, folders in the place of files.

Owns the warnings; dbt warns of unused settings as well. A misspelt folder, or one that was renamed, is silent else:
its models are built with the settings of the folders above, in another schema.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from sqlmesh_like.errors import Location, nearest
from sqlmesh_like.project.config import is_config_key
from sqlmesh_like.project.keys.settings_keys import PATH_DEFAULTS
from sqlmesh_like.project.reading.file_dependencies import record_folder
from sqlmesh_like.project.reading.yaml_node import YamlNode
from sqlmesh_like.project.settings import DBT_FILE, OWN_FILE, OWN_TABLE, Settings, has_own_table

Fqn = tuple[str, ...]
_READ = frozenset({".sql", ".py", ".csv", ".yml", ".yaml"})


def unread(root: Path, settings: Settings) -> Iterator[str]:
    """A warning for each path that matches no node and each folder of files that does not exist.

    The nodes are those whose settings have been read: this is called when everything else has been.
    """
    if settings.is_absent:
        message = f"no settings file: {settings.name!r} is the name of the folder, and no schemas or profile are set"
        yield f"{message} (add {DBT_FILE}, or [tool.{OWN_TABLE}] to {OWN_FILE})"
    for place, folder in _absent_folders(root, settings):
        yield f"{place}: there is no folder {folder!r} in the project: nothing is read from there"
    yield from _unread_files(root, settings)
    if settings.file == DBT_FILE and has_own_table(root):
        yield f"{OWN_FILE}: [tool.{OWN_TABLE}] is not read beside {DBT_FILE} (leave one of them out)"
    for name, tree in settings.trees.items():
        fqns = settings.asked.get(id(tree), set())
        for path, node in _unused_paths(tree, (), {*fqns, *(fqn[1:] for fqn in fqns if fqn[0] == settings.name)}):
            known = {fqn[len(path) - 1] for fqn in fqns if fqn[: len(path) - 1] == path[:-1] and len(fqn) >= len(path)}
            hint = nearest(path[-1], sorted(known))
            message = f"the settings of {name}: {'.'.join(path)} apply to nothing: no folder or node has this path"
            yield f"{node.key_location}: {message}{f' ({hint})' if hint else ''}"


def _unused_paths(level: YamlNode, path: Fqn, fqns: set[Fqn]) -> Iterator[tuple[Fqn, YamlNode]]:
    for key, child in level.items():
        below = (*path, key)
        if not isinstance(child.value, dict) or key.startswith("+") or is_config_key(key):
            continue
        if any(fqn[: len(below)] == below for fqn in fqns):
            yield from _unused_paths(child, below, fqns)
        else:
            yield below, child


def _absent_folders(root: Path, settings: Settings) -> Iterator[tuple[Location, str]]:
    """Folders that the settings name; dbt's own names are written into every new project, and git drops empty ones."""
    for key, node in settings.paths.items():
        for element in node.elements or (node,):
            folder = str(element.value)
            record_folder(root / folder)
            if folder not in (PATH_DEFAULTS.get(key), "analysis") and not (root / folder).is_dir():
                yield element.location, folder


def _unread_files(root: Path, settings: Settings) -> Iterator[str]:
    """Files, folders and links below the project's folders that look as if they were read."""
    bases = (*settings.model_paths, *settings.seed_paths, *settings.snapshot_paths, *settings.macro_paths)
    for base in dict.fromkeys(bases):
        has_seeds = base in settings.seed_paths or base not in settings.model_paths
        for folder, names, files in os.walk(root / base):
            record_folder(Path(folder))
            names[:] = sorted(name for name in names if not name.startswith("."))
            shown = sorted(name for name in files if not name.startswith("."))
            for path in (Path(folder) / name for name in (*names, *shown)):
                if why := _why_unread(path, path.name in files, has_seeds):
                    yield f"{path.relative_to(root).as_posix()}: {why}"


def _why_unread(path: Path, is_file: bool, has_seeds: bool) -> str | None:
    suffix = path.suffix.lower()
    if path.is_symlink() and not is_file:
        return "links to folders are not followed: nothing below it is read (put the folder there)"
    if suffix in _READ and not is_file:
        return "this is a folder, though its name is that of a file: it is not read as one"
    if suffix == ".csv" and not has_seeds:
        return "a CSV file is not read from a folder of models (put it into one of seeds)"
    if suffix not in _READ and not path.exists():
        return f"this is a link to {path.readlink()}, which does not exist: nothing is read there"
    return None
