"""`sml init NAME`: a new project that runs as it is. Owns the command; what a project starts with is in
`cli/project_templates`, a folder for each `--example`."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from sqlmesh_like.errors import UsageError

EXAMPLES = {
    "minimal": "sml build (-t test: on DuckDB, in seconds)",
    "cdc": "sml build -t test (on DuckDB, in seconds), then sml ingest && sml build; README.md goes on",
}
"""What there is to start with, and what to call then."""
_NAME_IN_TEMPLATES = "PROJECT"
_GIT_IGNORE = "target/\nwarehouse/\n"  # no file of the templates: tools that package us would obey it


@click.command("init")
@click.argument("name")
@click.option(
    "--example",
    type=click.Choice(list(EXAMPLES)),
    default="minimal",
    help="minimal: a seed and a model. cdc: Debezium's events of two tables, two models, a unit test.",
)
def command(name: str, example: str) -> None:
    """Make the folder NAME with a small project, its tests and targets with and without Java. Asks nothing."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise UsageError(f"{name!r} cannot be a project's name", hint="letters, digits and _ only: sml init my_lake")
    folder = Path(name)
    if folder.exists():
        raise UsageError(f"{name} exists already", hint="choose another name, or remove it")
    with tempfile.TemporaryDirectory(prefix=".sml-init-", dir=folder.parent) as made:  # an end halfway leaves nothing
        beside = Path(made) / name
        for path, text in _files(example):
            (beside / path).parent.mkdir(parents=True, exist_ok=True)
            (beside / path).write_text(text.replace(_NAME_IN_TEMPLATES, name), encoding="utf-8")
        beside.rename(folder)
    click.echo(f"Made {name}. Next: cd {name} && {EXAMPLES[example]}")


def _files(example: str) -> Iterator[tuple[str, str]]:
    """Path and text of each file that a project starts with."""
    yield ".gitignore", _GIT_IGNORE
    yield from _below(files("sqlmesh_like.cli").joinpath("project_templates", example), "")


def _below(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _below(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.read_text(encoding="utf-8")
