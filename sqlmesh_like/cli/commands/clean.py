"""`sml clean`: removes what earlier commands wrote. Owns the command; only folders inside the project are touched."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from sqlmesh_like.cli.context import load_parsed, make_output
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.errors import Location, ProjectError
from sqlmesh_like.project.nodes import ParsedProject


@click.command("clean")
@shared_options
def command(flags: Flags) -> None:
    """Remove the folders of clean-targets (default: the target folder)."""
    project = load_parsed(flags)
    output = make_output(flags)
    # All are looked at before the first is removed: a refusal leaves everything as it was.
    folders = [checked_folder(project, name) for name in project.clean_targets]
    for name, folder in zip(project.clean_targets, folders, strict=True):
        if folder.is_dir():
            shutil.rmtree(folder)
            output.line(f"Removed {name}")
    output.line("Finished cleaning")


def checked_folder(project: ParsedProject, name: str) -> Path:
    """The folder of one clean target. Raises ProjectError where it is not a folder of outputs."""
    folder = (project.root / name).resolve()
    place = Location(project.settings_file)
    if folder == project.root or not folder.is_relative_to(project.root):
        message = f"clean-targets: {name!r} is not a folder inside the project"
        raise ProjectError(message, location=place, hint="name folders below the project's own, such as target")
    sources = [*(model.path for model in project.models), *(seed.path for seed in project.seeds)]
    holds = [path for path in sources if (project.root / path).is_relative_to(folder)]
    if holds:
        message = f"clean-targets: {name!r} holds source files of the project ({holds[0]} …)"
        raise ProjectError(message, location=place, hint="name folders that commands write, such as target")
    return folder
