"""`sml lint`: likely mistakes in valid queries. Owns the command; `plan.checks.lint` owns the rules."""

from __future__ import annotations

import click

from sqlmesh_like.app.operations.linting import lint_models
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, shared_options, within_limits
from sqlmesh_like.cli.printing.diagnostics import FORMS, Diagnostic, print_findings
from sqlmesh_like.errors import UsageError
from sqlmesh_like.plan.checks.lint import LINT_RULES, Suspicion


@click.command("lint")
@within_limits
@click.option("--output", "form", type=click.Choice(FORMS), default="text", help="For people, or for CI.")
@click.option("--off", multiple=True, metavar="RULE", help="A rule to leave out, such as LNT004.")
@shared_options
def command(flags: Flags, form: str, off: tuple[str, ...]) -> int:
    """Report likely mistakes in the selected models; exit code 1 if there are any.

    A model switches rules off by meta: {lint_off: [LNT004]}. Formatting is left to sqlfluff.
    """
    known = {rule.id for rule in LINT_RULES}
    if unknown := set(off) - known:
        raise UsageError(f"there is no rule {sorted(unknown)[0]!r}", hint=f"rules: {', '.join(sorted(known))}")
    linted = lint_models(open_project(flags), off)
    diagnostics = [_diagnostic(warning) for warning in linted.warnings]
    if diagnostics or form in ("json", "sarif"):
        print_findings(diagnostics, form)
    if form == "text":
        make_output(flags).line(f"Linted {linted.models} models: {len(diagnostics)} findings")
    return 1 if diagnostics else 0


def _diagnostic(warning: Suspicion) -> Diagnostic:
    place = warning.location
    return Diagnostic(warning.rule, "warning", warning.message, place.path, place.line, place.column)
