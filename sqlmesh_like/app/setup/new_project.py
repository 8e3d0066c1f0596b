"""A new project that runs as it is. Owns creating it; `project_templates` has its files, one folder per example."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from sqlmesh_like.errors import UsageError

EXAMPLE_PROJECTS = {
    "minimal": "sml build",
    "cdc": "sml ingest && sml build; README.md goes on",
}
"""The examples, each with the commands to call first."""
_NAME_IN_TEMPLATES = "PROJECT"
_GIT_IGNORE = "target/\nwarehouse/\n"  # not a file of the templates: packaging tools would apply it to them


def make_project(name: str, example: str) -> None:
    """Create the folder `name` with the files of an example.

    Raises UsageError, and changes nothing, where the name cannot be that of a project or is taken.
    """
    check_name(name)
    template = files("sqlmesh_like.app.setup").joinpath("project_templates", example)
    write_project(name, ((path, text.replace(_NAME_IN_TEMPLATES, name)) for path, text in _files(template, "")))


def check_name(name: str) -> None:
    """Raises UsageError where the name cannot be that of a project, or is taken."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise UsageError(f"{name!r} cannot be a project's name", hint="letters, digits and _ only: sml init my_lake")
    if Path(name).exists():
        raise UsageError(f"{name} exists already", hint="choose another name, or remove it")


def write_project(name: str, files: Iterable[tuple[str, str]]) -> None:
    """Create the folder `name` with these files (path, text)."""
    folder = Path(name)
    # Created in a temporary folder, so that an interruption leaves nothing.
    with tempfile.TemporaryDirectory(prefix=".sml-init-", dir=folder.parent) as temporary:
        project = Path(temporary) / name
        for path, text in [(".gitignore", _GIT_IGNORE), *files]:
            (project / path).parent.mkdir(parents=True, exist_ok=True)
            (project / path).write_text(text, encoding="utf-8")
        project.rename(folder)


def _files(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield path and text of each file of a new project."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.read_text(encoding="utf-8")
