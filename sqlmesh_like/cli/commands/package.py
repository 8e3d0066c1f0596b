"""`sml package`: one archive that runs the project on a cluster. Owns the command and its lines."""

from __future__ import annotations

from pathlib import Path

import click

from sqlmesh_like.app.setup.project_package import package_project, platform_name
from sqlmesh_like.cli.context import TerminalReporter
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.writer import echo


@click.command("package")
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="The archive (default: target/PROJECT.tar.gz).")  # fmt: skip
@shared_options
def command(flags: Flags, output: Path | None) -> None:
    """Make one archive that runs the project on a cluster, where neither its files nor a network are at hand.

    It holds the project with its profiles.yml, the Python libraries installed here, the pinned jars, and submit.sh,
    which gives a command to spark-submit: on YARN in cluster mode. Spark and Java are the cluster's own. Hidden files,
    what commands wrote, and files of events are left out.
    """
    made = package_project(flags, output, TerminalReporter(flags))
    echo(f"{made.project_files} files of the project, {made.libraries} libraries, {made.jars} jars")
    echo(f"{made.path} ({made.size / 1e6:.0f} MB, {platform_name()})")
    folder = made.path.name.removesuffix(".tar.gz")
    echo(f"There: mkdir {folder} && tar -xzf {made.path.name} -C {folder} && {folder}/submit.sh run")
