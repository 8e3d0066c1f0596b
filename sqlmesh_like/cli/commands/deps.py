"""`sml deps`: fetch what a run needs besides Python packages. Owns the command and its lines."""

from __future__ import annotations

from functools import partial

import click

from sqlmesh_like.app.setup.dependencies import prepare_archive, project_packages, spark_jars, target_of
from sqlmesh_like.cli.context import TerminalReporter
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.writer import echo


@click.command("deps")
@click.option("--kafka", is_flag=True, help="Fetch the jars that read Kafka too.")
@shared_options
def command(flags: Flags, kafka: bool) -> None:
    """Fetch the packages of packages.yml, and the pinned jars, checked by SHA-256, and prepare Java to start fast.

    For a target of type duckdb (-t) no jars are fetched. The jars that read Kafka are fetched with --kafka, or by the
    first ingestion from Kafka; those of s3a:// for a target with such a warehouse. SML_CACHE_DIR sets the cache folder,
    SML_MAVEN_URL a mirror of the Maven repository.
    A package is pinned in package-lock.yml until packages.yml changes.
    """
    reporter = TerminalReporter(flags)
    for package in project_packages(flags, reporter):
        echo(f"installed {package}")
    target = target_of(flags)
    if flags.target is not None and target is not None and target.type == "duckdb":
        return
    jars = spark_jars(reporter, target, kafka=kafka)
    for jar, path in jars:
        echo(f"{jar} verified: {path}")
    prepare_archive(tuple(path for _, path in jars), reporter, partial(echo, err=True))
