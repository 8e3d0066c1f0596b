"""Shell completion: names of nodes and words of selectors. Owns finding them quickly, only from file names.

If a project has errors, completion offers nothing and prints nothing.
"""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from sqlmesh_like.errors import SmlError
from sqlmesh_like.project.reading.files import files_under
from sqlmesh_like.project.selection import METHODS
from sqlmesh_like.project.settings import find_project, load_settings

_OPERATORS = "+@0123456789"


def complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Return models and seeds whose names start with `incomplete`."""
    return [CompletionItem(name) for name in _names(ctx) if name.startswith(incomplete)]


def complete_selectors(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Return names of nodes, also after operators such as `+` and `@`, and the methods of selection."""
    word = incomplete.lstrip(_OPERATORS)
    before = incomplete[: len(incomplete) - len(word)]
    offered = [*_names(ctx), *(f"{method}:" for method in METHODS if method != "fqn")]
    return [CompletionItem(f"{before}{name}") for name in offered if name.startswith(word)]


def _names(ctx: click.Context) -> list[str]:
    try:
        root = find_project(Path(ctx.params.get("project_dir") or Path.cwd()).resolve())
        settings = load_settings(root, {})
        sql = files_under(root, settings.model_paths, (".sql",))
        csv = files_under(root, settings.seed_paths, (".csv",))
    except (SmlError, OSError):
        return []
    return sorted({path.stem for path in (*sql, *csv)})
