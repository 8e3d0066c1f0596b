"""`sml deps`: what a run needs beyond Python's packages. Owns the command; `packages` and `spark.jvm.jars` fetch."""

from __future__ import annotations

from pathlib import Path

import click

from sqlmesh_like.app.loading.loaded import load_target_of
from sqlmesh_like.app.setup.packages import fetch_packages
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.activity import show_phase
from sqlmesh_like.cli.printing.download_progress import show_progress
from sqlmesh_like.errors import MachineError, ProjectError
from sqlmesh_like.project.reading.values import parse_vars
from sqlmesh_like.project.settings import find_project
from sqlmesh_like.spark.jvm.cds_archive import archive_options, can_archive, make_archive
from sqlmesh_like.spark.jvm.jars import ensure_jars, locked_jars
from sqlmesh_like.spark.jvm.java import Jdk, find_jdk


@click.command("deps")
@click.option("--kafka", is_flag=True, help="Fetch the jars that read Kafka too.")
@shared_options
def command(flags: Flags, kafka: bool) -> None:
    """Fetch the packages of packages.yml, and the pinned jars, checked by SHA-256; prepare Java to start fast.

    With -t and a target of type duckdb no jar is fetched. Those that read Kafka come with --kafka, else with
    the first ingestion from it. SML_CACHE_DIR names another cache, SML_MAVEN_URL a mirror of the Maven
    repository. A package is pinned in package-lock.yml until packages.yml changes.
    """
    _fetch_packages(flags)
    if not _needs_jars(flags):
        return
    jars = locked_jars("kafka") if kafka else locked_jars()
    with show_progress() as progress:
        paths = ensure_jars(jars, progress=progress)
    for jar, path in zip(jars, paths, strict=True):
        click.echo(f"{jar} verified: {path}")
    prepare_archive(find_jdk(), paths[: len(locked_jars())])


def prepare_archive(jdk: Jdk, jars: tuple[Path, ...]) -> None:
    """Make the class archive where there is none. A failure is reported but is not an error: sessions start slower."""
    if not can_archive(jdk) or archive_options(jdk, jars):
        return
    show_phase("preparing Java's class archive")
    click.echo("preparing Java's class archive, once: about 40 seconds; sessions then start in half the time", err=True)
    try:
        make_archive(jdk, jars)
    except (MachineError, OSError) as error:
        click.echo(f"warning: {error}", err=True)


def _needs_jars(flags: Flags) -> bool:
    """Whether the target that the call names runs on Spark; without a project, or a name, it may."""
    return flags.target is None or load_target_of(flags).type == "spark"


def _fetch_packages(flags: Flags) -> None:
    try:
        root = find_project((flags.project_dir or Path.cwd()).resolve())
    except ProjectError:
        return  # jars may be fetched anywhere
    show_phase("fetching packages")
    for package in fetch_packages(root, parse_vars(flags.vars)):
        click.echo(f"installed {package}")
