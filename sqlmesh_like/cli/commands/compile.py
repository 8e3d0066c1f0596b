"""`sml compile`: render the SQL of the selected nodes. Owns the command; starts no JVM."""

from __future__ import annotations

import sys
from dataclasses import replace

import click

from sqlmesh_like.app.operations.compiling import compile_project
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, shared_options, within_limits
from sqlmesh_like.cli.printing.diagnostics import FORMS, from_error, from_type_warning, print_findings
from sqlmesh_like.cli.printing.writer import echo, echo_sql
from sqlmesh_like.control_characters import escape_line
from sqlmesh_like.errors import SeveralErrors, SmlError
from sqlmesh_like.plan.checks.type_warning import TypeWarning
from sqlmesh_like.render.renderer import render_inline


@click.command("compile")
@within_limits
@click.option("--no-check", is_flag=True, help="Render only; do not bind names and types.")
@click.option("--output", "form", type=click.Choice(FORMS), default="text", help="Errors for people, or for CI.")
@click.option("--inline", metavar="SQL", help="Print this SELECT rendered, and nothing else.")
@shared_options
def command(flags: Flags, no_check: bool, form: str, inline: str | None) -> int:
    """Render models and tests into <target-path>/compiled and write manifest.json. Starts no JVM.

    Models named by --select are printed; hand-written incremental SQL is printed with both branches. With --output
    json, github or sarif, all errors and warnings go to standard output in that form; errors end with code 2 as well.
    """
    if inline is not None:
        loaded = open_project(flags)
        echo_sql(render_inline(loaded.project, loaded.target, inline, now=loaded.now).sql.strip())
        return 0
    if form == "text":
        for warning in _compile(flags, no_check):
            make_output(flags, sys.stderr).line(f"warning: {from_type_warning(warning)}", "warn")
        return 0
    code = 0
    try:
        warnings = _compile(replace(flags, quiet=True), no_check, prints=False)
        findings = [from_type_warning(warning) for warning in warnings]
    except SmlError as error:
        errors = error.errors if isinstance(error, SeveralErrors) else (error,)
        findings, code = [from_error(failure) for failure in errors], 2
    print_findings(findings, form)
    return code


def _compile(flags: Flags, no_check: bool, *, prints: bool = True) -> tuple[TypeWarning, ...]:
    loaded = open_project(flags, broken=True)
    compiled = compile_project(loaded, checks=not no_check)
    rendered, output = compiled.rendered, make_output(flags)
    if flags.select and prints:
        for model in (*rendered.models, *rendered.analyses):
            echo(f"-- {escape_line(model.name)}: {escape_line(model.path)}")
            echo_sql(model.sql.strip())
            if model.incremental_sql is not None:
                echo(f"\n-- {escape_line(model.name)}: where the table exists (is_incremental() is true)")
                echo_sql(model.incremental_sql.strip())
            echo()
    if asking := ", ".join(model.name for model in compiled.asking):
        output.line(f"{asking} ask the lake while they are rendered: their SQL is final, and checked, in a run")
    folder = f"{loaded.project.target_path}/compiled/{loaded.project.name}"
    counted = f"{len(rendered.models)} models and {len(rendered.tests)} tests"
    output.line(f"Compiled {counted}; wrote {compiled.files} files to {folder}")
    return compiled.warnings
