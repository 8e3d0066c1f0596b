"""`sml debug`: is this machine and project ready to run. Owns the command; `cli.checks` looks."""

from __future__ import annotations

from pathlib import Path

import click

from sqlmesh_like.cli.checks import Asked, run_checks


@click.command("debug")
@click.option("--project-dir", type=click.Path(path_type=Path, file_okay=False, exists=True), default=Path())
@click.option("--profiles-dir", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--profile", help="Profile to use instead of the project's.")
@click.option("-t", "--target", help="Target to use instead of the profile's.")
@click.pass_context
def command(
    context: click.Context, project_dir: Path, profiles_dir: Path | None, profile: str | None, target: str | None
) -> None:
    """Check project, profile, Python, JDK, jars, warehouse and catalog."""
    failed = 0
    for check in run_checks(Asked(project_dir.resolve(), profiles_dir, profile, target)):
        click.echo(str(check))
        failed += not check.ok
    if failed:
        click.echo(f"{failed} check{'s' if failed > 1 else ''} failed", err=True)
        context.exit(1)
    click.echo("All checks passed!")
