"""`sml deps`: what a run needs beyond the Python packages. Owns the command; `engine.jars` fetches and verifies."""

from __future__ import annotations

from pathlib import Path

import click

from sqlmesh_like.cli.download import shown
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.engine.class_archive import archive_options, can_archive, make_archive
from sqlmesh_like.engine.jars import ensure_jars, locked_jars
from sqlmesh_like.engine.java import Jdk, find_jdk
from sqlmesh_like.errors import Location, MachineError, ProjectError

PACKAGES_FILE = "packages.yml"


@click.command("deps")
@click.option("--kafka", is_flag=True, help="Fetch the jars that read Kafka too.")
@shared_options
def command(flags: Flags, kafka: bool) -> None:
    """Fetch the pinned jars into the user's cache, check their SHA-256, and prepare Java to start fast.

    Those that read Kafka come with --kafka, else with the first ingestion from it. SML_CACHE_DIR names
    another cache, SML_MAVEN_URL a mirror of the Maven repository.
    """
    refuse_packages(flags.project_dir or Path())
    jars = locked_jars("kafka") if kafka else locked_jars()
    with shown() as progress:
        paths = ensure_jars(jars, progress=progress)
    for jar, path in zip(jars, paths, strict=True):
        click.echo(f"{jar} verified: {path}")
    prepare_archive(find_jdk(), paths[: len(locked_jars())])


def prepare_archive(jdk: Jdk, jars: tuple[Path, ...]) -> None:
    """Make the class archive where there is none. Its failure is told and is no error: sessions only start slower."""
    if not can_archive(jdk) or archive_options(jdk, jars):
        return
    click.echo("preparing Java's class archive, once: about 40 seconds; sessions then start in half the time", err=True)
    try:
        make_archive(jdk, jars)
    except (MachineError, OSError) as error:
        click.echo(f"warning: {error}", err=True)


def refuse_packages(project_dir: Path) -> None:
    """Raises ProjectError where the project asks for dbt packages: its models would miss their macros later on."""
    if (project_dir / PACKAGES_FILE).is_file():
        hint = "copy the macros you need into macros/ and remove the file"
        raise ProjectError("dbt packages are not supported yet", location=Location(PACKAGES_FILE), hint=hint)
