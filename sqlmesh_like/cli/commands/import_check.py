"""`sml import-check`: one page for someone who comes with a dbt project. Owns the command. No JVM, no lake."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import get_args

import click

from sqlmesh_like.app.loading import loaded
from sqlmesh_like.app.reporter import Level
from sqlmesh_like.app.setup.import_check import ImportedModel, ImportReport, import_report
from sqlmesh_like.cli.context import TerminalReporter, staying
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.project.nodes import AuthorStrategy

_MOST = 5
_AUTHORS = get_args(AuthorStrategy)
"""Kinds of models whose own incremental SQL is run: what it does not see is lost."""
_OTHER = ("view", "snapshot", "asks", "broken", "full_refresh", *_AUTHORS)
_FORMS = ("text", "json")


@dataclass(frozen=True)
class _Collecting(TerminalReporter):
    """Keeps warnings for the page."""

    warnings: list[str] = field(default_factory=list)

    def notify(self, text: str, level: Level = "info") -> None:
        if level == "warn":
            self.warnings.append(text.removeprefix("warning: "))
        else:
            super().notify(text, level)


@click.command("import-check")
@click.option("--output", "form", type=click.Choice(_FORMS), default="text", help="For people, or as JSON.")
@shared_options
def command(flags: Flags, form: str) -> int:
    """Report what becomes of a dbt project here: what compiles, what is incremental, what to change first.

    Exit code 1 if a model is broken. Builds nothing.
    """
    reporter = _Collecting(flags)
    with staying():
        project = loaded.load(flags, reporter=reporter, broken=True)
    report = import_report(project)
    if form == "json":
        click.echo(json.dumps(_data(report, reporter.warnings), indent=2, ensure_ascii=False))
    else:
        click.echo("\n".join(_page(project.project.name, report, reporter.warnings)))
    return 1 if report.of("broken") else 0


def _page(name: str, report: ImportReport, warnings: list[str]) -> list[str]:
    counted = ", ".join(
        f"{number} {_plural(kind) if number > 1 else kind}" for kind, number in sorted(report.nodes.items())
    )
    lines = [f"{name}: {counted}", "", *_summary(report)]
    parts = {
        "Rebuilt by each run that finds a change, and why": [_why(model) for model in report.of("full_refresh")],
        "Run as their incremental SQL says, and why that may lose rows": [_why(m) for m in report.of(*_AUTHORS)],
        "Broken": [str(model.error) for model in report.of("broken")],
        "Known in a run only: the template asks the lake": [", ".join(m.name for m in report.of("asks"))],
        "Ignored, or likely a mistake": _grouped(warnings),
        "What to change first": _first(report),
    }
    for title, entries in parts.items():
        if any(entries):
            lines += ["", title, *(f"  {line}" for entry in entries for line in entry.splitlines())]
    return lines


def _plural(kind: str) -> str:
    return "analyses" if kind == "analysis" else f"{kind}s"


def _summary(report: ImportReport) -> list[str]:
    strategies = Counter(model.kind for model in report.models if model.kind not in _OTHER)
    rows = {
        "followed incrementally": sum(strategies.values()),
        "views, inlined where they are read": len(report.of("view")),
        "snapshots": len(report.of("snapshot")), "rebuilt where something changed": len(report.of("full_refresh")),
        "run as their incremental SQL says": len(report.of(*_AUTHORS)),
        "known in a run only": len(report.of("asks")), "broken": len(report.of("broken")),
    }  # fmt: skip
    width = max(map(len, rows))
    lines = [f"  {what.ljust(width)}  {number}" for what, number in rows.items() if number or what == "broken"]
    if strategies:
        lines[0] += f"   ({', '.join(f'{number} {strategy}' for strategy, number in strategies.most_common())})"
    return lines


def _why(model: ImportedModel) -> str:
    why = "; ".join(f"{reason.rule} {reason.message}" for reason in model.reasons)
    return f"{model.name}: {why}{_read_by(model)}"


def _read_by(model: ImportedModel) -> str:
    return f" (read by {model.readers})" if model.readers else ""


def _first(report: ImportReport) -> list[str]:
    """Broken models, rebuilds, incremental SQL of authors, each with those first that most nodes depend on."""
    steps = [f"fix {model.path}{_read_by(model)}" for model in report.of("broken")]
    for model in (*report.of("full_refresh"), *report.of(*_AUTHORS)):
        hint = next((reason.hint for reason in model.reasons if reason.hint), "")
        steps.append(f"{model.name}: {hint}" if hint else f"{model.name}: `sml explain {model.name}` says more")
    return [f"{number}. {step}" for number, step in enumerate(steps[:_MOST], 1)]


def _grouped(warnings: list[str]) -> list[str]:
    """Each warning once, the places of equal ones counted."""
    texts: dict[str, list[str]] = {}
    for warning in warnings:
        place, _, text = warning.partition(": ")
        texts.setdefault(text or warning, []).append(place)
    return [
        f"{places[0]}: {text}" + (f" (and {len(places) - 1} more)" if len(places) > 1 else "")
        if text not in places else text
        for text, places in texts.items()
    ]  # fmt: skip


def _data(report: ImportReport, warnings: list[str]) -> dict[str, object]:
    return {
        "nodes": dict(report.nodes),
        "models": [
            {
                "name": model.name, "path": model.path, "kind": model.kind, "readers": model.readers,
                "reasons": [{"rule": reason.rule, "message": reason.message} for reason in model.reasons],
                "error": None if model.error is None else str(model.error),
            }
            for model in report.models
        ],
        "warnings": warnings,
    }  # fmt: skip
