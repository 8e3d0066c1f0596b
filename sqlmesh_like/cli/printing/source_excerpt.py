"""The source line of an error, with a caret. Owns how it looks, and which files may be shown.

In files that may contain secrets, such as profiles and settings of ingestion, a line is shown only up to its key: an
error can occur before it is known which part is secret.
"""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from unicodedata import east_asian_width

from sqlmesh_like.errors import Location, ProjectError, SmlError
from sqlmesh_like.project.settings import find_project
from sqlmesh_like.regular_files import MAX_TEXT, read_regular

_TEXT = frozenset({".sql", ".py", ".yml", ".yaml", ".toml", ".csv", ".md"})
_SETTINGS = frozenset({"profiles.yml", "packages.yml", "dependencies.yml", "dbt_project.yml", "pyproject.toml"})
_SECRETIVE = re.compile(
    r"(?m)^\s*(?:-\s+)?[\"']?(?:ingest|outputs|hudi|spark|publish)[\"']?\s*:|[{,]\s*(?:ingest|publish)\s*:"
)
"""Blocks of properties that may contain addresses and passwords."""
_WIDTH = 100


def with_source(error: SmlError, start: Path) -> str:
    """Return the text of an error, with the source line of each location. `start`: the project, or a folder in it."""
    try:
        root = find_project(start.resolve())
    except ProjectError:
        return str(error)
    lines = [error.heading] if error.heading else []
    for part in error.parts:
        lines.append(str(part))
        if part.location is not None and (excerpt := source_excerpt(root, part.location)):
            lines.append(excerpt)
    return "\n".join(lines)


def source_excerpt(root: Path, place: Location) -> str | None:
    """Return the line at a location below `root`, with a caret below its column; None where it cannot be shown."""
    path = (root / place.path).resolve()
    if place.line is None or path.suffix not in _TEXT or not path.is_relative_to(root) or not path.is_file():
        return None
    try:
        text = read_regular(path, MAX_TEXT).decode("utf-8", errors="replace")
    except OSError:
        return None
    line = next(islice(text.split("\n"), place.line - 1, None), "").rstrip()
    column = place.column
    if _may_hold_secrets(path, text):
        line = _up_to_value(line)
        column = None if column is None else min(column, len(line))  # a hidden value is where its `…` stands
    if not line.strip():
        return None
    return _excerpt(line, place.line, column)


def _may_hold_secrets(path: Path, text: str) -> bool:
    if path.suffix not in (".yml", ".yaml", ".toml"):
        return False
    return path.name in _SETTINGS or bool(_SECRETIVE.search(text))


def _up_to_value(line: str) -> str:
    """
    >>> _up_to_value("  password: hunter2"), _up_to_value("- {name: id, password: hunter2}"), _up_to_value("hunter2")
    ('  password: …', '- {name: …', '')
    """
    match = re.match(r"(\s*(?:-\s+)?(?:\{\s*)?[\w+.-]+\s*[:=])(\s+\S)?", line)
    return "" if match is None else f"{match[1]} …" if match[2] else match[1]


def _excerpt(line: str, number: int, column: int | None) -> str:
    """
    >>> print(_excerpt("select a frm t", 3, 10))
      3 | select a frm t
        |          ^
    """
    at = column or 1
    start = max(0, at - _WIDTH // 2) if len(line) > _WIDTH and at > _WIDTH - 10 else 0
    shown = line[start : start + _WIDTH].replace("\t", " ")
    shown = f"{'…' if start else ''}{shown}{'…' if start + _WIDTH < len(line) else ''}"
    text = f"  {number} | {shown}"
    if column is None or at > len(line) + 1:
        return text
    before = shown[: at - 1 - start + bool(start)]
    cells = sum(2 if east_asian_width(character) in "WF" else 1 for character in before)
    return f"{text}\n  {' ' * len(str(number))} | {' ' * cells}^"
