"""Diagnostics for people and for CI. Owns their forms: text, JSON, GitHub's annotations and SARIF 2.1.0."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from sqlmesh_like import __version__
from sqlmesh_like.cli.printing.writer import echo, echo_commands
from sqlmesh_like.control_characters import escape_json
from sqlmesh_like.errors import Location, SmlError
from sqlmesh_like.plan.checks.type_warning import TypeWarning

Severity = Literal["error", "warning"]
FORMS = ("text", "json", "github", "sarif")
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True)
class Diagnostic:
    """An error or warning at a location in the project; lines and columns are 1-based."""

    rule: str
    level: Severity
    message: str
    path: str
    line: int | None = None
    column: int | None = None
    hint: str | None = None

    def __str__(self) -> str:
        place = str(Location(self.path, self.line, self.column)) if self.path else ""
        hint = f"\n  {self.hint}" if self.hint else ""
        rule = f"{self.rule} " if self.level == "warning" else ""
        return f"{place}: {rule}{self.message}{hint}" if place else f"{rule}{self.message}{hint}"


def from_error(error: SmlError, rule: str = "compile") -> Diagnostic:
    """Return the diagnostic of an error."""
    place = error.location or Location("")
    return Diagnostic(rule, "error", error.message, place.path, place.line, place.column, error.hint)


def from_type_warning(type_warning: TypeWarning) -> Diagnostic:
    """Return the diagnostic of a check's warning."""
    place = type_warning.location
    return Diagnostic(type_warning.rule, "warning", type_warning.message, place.path, place.line, place.column)


def format_findings(findings: Sequence[Diagnostic], form: str) -> str:
    """Return all diagnostics in one of `FORMS`.

    >>> format_findings([Diagnostic("LNT001", "warning", "a%b", "models/a.sql", 1, 2)], "github")
    '::warning file=models/a.sql,line=1,col=2,title=LNT001::a%25b'
    """
    match form:
        case "json":
            return escape_json(
                json.dumps({"findings": [asdict(diagnostic) for diagnostic in findings]}, ensure_ascii=False, indent=2)
            )
        case "github":
            return "\n".join(_annotation(diagnostic) for diagnostic in findings)
        case "sarif":
            return escape_json(json.dumps(_sarif(findings), ensure_ascii=False, indent=2))
        case _:
            return "\n".join(map(str, findings))


def print_findings(findings: Sequence[Diagnostic], form: str) -> None:
    """Print all diagnostics in one of `FORMS`; of GitHub's lines, only those are commands that this module made."""
    text = format_findings(findings, form)
    (echo_commands if form == "github" else echo)(text)


def _annotation(diagnostic: Diagnostic) -> str:
    parts = {"file": diagnostic.path, "line": diagnostic.line, "col": diagnostic.column, "title": diagnostic.rule}
    escaped = {key: _data(str(value)).replace(":", "%3A").replace(",", "%2C") for key, value in parts.items() if value}
    shown = ",".join(f"{key}={value}" for key, value in escaped.items())
    text = f"{diagnostic.message}\n{diagnostic.hint}" if diagnostic.hint else diagnostic.message
    return f"::{diagnostic.level} {shown}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _sarif(findings: Sequence[Diagnostic]) -> dict[str, object]:
    rules = [{"id": rule} for rule in sorted({diagnostic.rule for diagnostic in findings})]
    driver = {"name": "sml", "version": __version__, "rules": rules}
    results: list[dict[str, object]] = []
    for diagnostic in findings:
        region = {
            key: value for key, value in (("startLine", diagnostic.line), ("startColumn", diagnostic.column)) if value
        }
        physical: dict[str, object] = {"artifactLocation": {"uri": re.sub(r"[<> ]", "_", diagnostic.path)}}
        physical |= {"region": region} if region else {}
        text = f"{diagnostic.message} ({diagnostic.hint})" if diagnostic.hint else diagnostic.message
        result: dict[str, object] = {"ruleId": diagnostic.rule, "level": diagnostic.level, "message": {"text": text}}
        results.append({**result, "locations": [{"physicalLocation": physical}]} if diagnostic.path else result)
    return {
        "$schema": _SARIF,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
