"""`sml lint`: what is likely a mistake in queries that run. Owns the command; `plan.lint` has the rules. No JVM."""

from __future__ import annotations

import click

from sqlmesh_like.app.loading.preflight import input_schemas
from sqlmesh_like.cli.context import load, make_output
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.diagnostics import FORMS, Diagnostic, formatted
from sqlmesh_like.compiler import Compiler
from sqlmesh_like.errors import UsageError
from sqlmesh_like.plan.checks.lint import LINT_RULES, lint


@click.command("lint")
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
    loaded = load(flags)
    chosen = {node.unique_id for node in loaded.selected("model", "snapshot")}
    compiler = Compiler(input_schemas(loaded, chosen))
    diagnostics: list[Diagnostic] = []
    models = {model.unique_id: model for model in loaded.rendered.models}
    above = loaded.graph.above(chosen)
    for unique_id in loaded.graph.order(above & models.keys()):
        model = models[unique_id]
        if model.asks_lake:
            continue
        compiler.compile(model)
        if unique_id in chosen:
            schemas = {ref.unique_id: compiler.columns(ref) for ref in model.inputs}
            left_out = frozenset({*off, *_texts(model.config.meta.get("lint_off"))})
            for said in lint(model, schemas, left_out):
                place = said.location
                diagnostics.append(Diagnostic(said.rule, "warning", said.message, place.path, place.line, place.column))
    if diagnostics or form in ("json", "sarif"):
        click.echo(formatted(diagnostics, form))
    if form == "text":
        make_output(flags).line(f"Linted {len(chosen)} models: {len(diagnostics)} findings")
    return 1 if diagnostics else 0


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),) if value else ()
