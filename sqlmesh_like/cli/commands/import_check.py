"""`sml import-check`: a one-page assessment of an existing dbt project. Owns the command. Needs no JVM and no lake."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import get_args

import click

from sqlmesh_like.app.loading import loaded
from sqlmesh_like.app.reporter import Level
from sqlmesh_like.app.setup.import_check import ImportedModel, ImportReport, import_report
from sqlmesh_like.cli.context import TerminalReporter, freeze_objects
from sqlmesh_like.cli.options import Flags, shared_options, within_limits
from sqlmesh_like.cli.printing.counts import counted_nodes
from sqlmesh_like.cli.printing.writer import echo, echo_json
from sqlmesh_like.plan.graph import SEMANTIC_TYPES
from sqlmesh_like.project.nodes import AuthorStrategy

_MOST = 5
_AUTHORS = get_args(AuthorStrategy)
"""Kinds of models whose author's incremental SQL is run: changes that it does not select are lost."""
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
@within_limits
@click.option("--output", "form", type=click.Choice(_FORMS), default="text", help="For people, or as JSON.")
@shared_options
def command(flags: Flags, form: str) -> int:
    """Report how a dbt project works here: what compiles, what is incremental, what to change first.

    Exit code 1 if a model is broken. Builds nothing.
    """
    reporter = _Collecting(flags)
    with freeze_objects():
        project = loaded.load(flags, reporter=reporter, broken=True)
    report = import_report(project)
    if form == "json":
        echo_json(_data(report, reporter.warnings), indent=2)
    else:
        echo("\n".join(_page(project.project.name, report, reporter.warnings)))
    return 1 if report.of("broken") else 0


def _page(name: str, report: ImportReport, warnings: list[str]) -> list[str]:
    counted = ", ".join(counted_nodes(report.nodes))
    lines = [f"{name}: {counted}", "", *_summary(report)]
    parts = {
        "Rebuilt by each run that finds a change, and why": [_why(model) for model in report.of("full_refresh")],
        "Run as their incremental SQL says, and why that may lose rows": [_why(m) for m in report.of(*_AUTHORS)],
        "Broken": [str(model.error) for model in report.of("broken")],
        "Known in a run only: the template asks the lake": [", ".join(m.name for m in report.of("asks"))],
        "Ignored, or likely a mistake": _group_warnings(warnings),
        "Listed only": _semantic(report),
        "What to change first": _first(report),
    }
    for title, entries in parts.items():
        if any(entries):
            lines += ["", title, *(f"  {line}" for entry in entries for line in entry.splitlines())]
    return lines


def _semantic(report: ImportReport) -> list[str]:
    """Return a line about semantic nodes, so that nobody expects them to be computed."""
    counted = counted_nodes({kind: number for kind, number in report.nodes.items() if kind in SEMANTIC_TYPES})
    return [f"{', '.join(counted)}: `sml ls` and the manifest have them, nothing here computes them"] if counted else []


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
    """Return the first steps: broken models, rebuilds, authors' incremental SQL, those with most readers first."""
    steps = [f"fix {model.path}{_read_by(model)}" for model in report.of("broken")]
    for model in (*report.of("full_refresh"), *report.of(*_AUTHORS)):
        hint = next((reason.hint for reason in model.reasons if reason.hint), "")
        steps.append(f"{model.name}: {hint}" if hint else f"{model.name}: `sml explain {model.name}` says more")
    return [f"{number}. {step}" for number, step in enumerate(steps[:_MOST], 1)]


def _group_warnings(warnings: list[str]) -> list[str]:
    """Return each warning once, with the number of its further locations."""
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
