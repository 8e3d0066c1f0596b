"""`sml debug`: checks whether machine and project are ready. Owns the command; `app.setup.doctor` runs the checks."""

from __future__ import annotations

from pathlib import Path

import click

from sqlmesh_like.app.setup.doctor import CheckRequest, run_checks
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.activity import show_phase
from sqlmesh_like.cli.printing.writer import echo
from sqlmesh_like.project.reading.values import parse_vars


@click.command("debug")
@shared_options
def command(flags: Flags) -> int:
    """Check project, profile, Python, JDK, jars, warehouse and catalog."""
    start = (flags.project_dir or Path()).resolve()
    failed = 0
    show_phase("checking project and machine")
    for check in run_checks(
        CheckRequest(start, flags.profiles_dir, flags.profile, flags.target, parse_vars(flags.vars))
    ):
        echo(str(check))
        failed += not check.ok
    if failed:
        echo(f"{failed} check{'s' if failed > 1 else ''} failed", err=True)
        return 1
    echo("All checks passed!")
    return 0
