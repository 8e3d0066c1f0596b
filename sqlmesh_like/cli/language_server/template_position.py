"""The context of the cursor: a call of ref() or source(), a setting of config(), a call of a macro, plain SQL.

Owns deriving it from the text before the cursor and the line: text that is being typed is rarely a valid template.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Offered = Literal["refs", "sources", "tables", "config_keys", "macros", "columns"]
_ENDS: tuple[tuple[Offered, re.Pattern[str]], ...] = (
    ("refs", re.compile(r"\bref\(\s*['\"](?:\w+['\"]\s*,\s*['\"])?[\w-]*$")),
    ("tables", re.compile(r"\bsource\(\s*['\"](?P<source>[\w-]+)['\"]\s*,\s*['\"][\w-]*$")),
    ("sources", re.compile(r"\bsource\(\s*['\"][\w-]*$")),
    ("config_keys", re.compile(r"\bconfig\((?:[^()]*,)?\s*\w*$")),
    ("macros", re.compile(r"\{[{%](?:(?![}%]\})[^'\"])*?\b[\w.]*$")),
)
_CALLS = re.compile(
    r"\bref\(\s*['\"](?P<node>[\w-]+)['\"]\s*(?:,\s*['\"](?P<of_package>[\w-]+)['\"])?[^)]*\)"
    r"|\bsource\(\s*['\"](?P<source>[\w-]+)['\"]\s*,\s*['\"](?P<table>[\w-]+)['\"]\s*\)"
    r"|(?P<macro>\b\w+(?:\.\w+)?)(?=\()"
)

_FAR = 1_000
"""Characters around the cursor that are looked at: a line may have millions."""


@dataclass(frozen=True)
class CompletionContext:
    """What may be typed next; `source`: the source whose tables are offered."""

    offered: Offered
    source: str = ""


@dataclass(frozen=True)
class CallTarget:
    """What a call names: a node, a macro or, with `source`, the table of a source."""

    kind: Literal["node", "source", "macro"]
    name: str
    source: str = ""


def completion_context(before: str) -> CompletionContext:
    """Return what may be typed after this text.

    >>> completion_context("select * from {{ ref('or").offered, completion_context("select a.").offered
    ('refs', 'columns')
    >>> completion_context("{{ source('shop', '")
    CompletionContext(offered='tables', source='shop')
    """
    for offered, pattern in _ENDS:
        if match := pattern.search(before[-_FAR:]):
            return CompletionContext(offered, match.groupdict().get("source") or "")
    return CompletionContext("columns")


def call_target(line: str, column: int) -> CallTarget | None:
    """Return what the call under the cursor names; `column` counts from 0.

    >>> call_target("from {{ source('shop', 'user') }}", 10)
    CallTarget(kind='source', name='user', source='shop')
    """
    start = max(column - _FAR, 0)
    for match in _CALLS.finditer(line[start : column + _FAR]):
        if match.start() <= column - start <= match.end():
            if match["source"]:
                return CallTarget("source", match["table"], match["source"])
            if match["node"]:
                return CallTarget("node", match["of_package"] or match["node"])
            return CallTarget("macro", match["macro"])
    return None


def is_below_config(lines: list[str], row: int) -> bool:
    """Whether a line of YAML is a key of `config:`, by its indentation."""
    indent = len(lines[row]) - len(lines[row].lstrip()) if row < len(lines) else 0
    for line in reversed(lines[:row]):
        own = len(line) - len(line.lstrip())
        if line.strip() and own < indent:
            return line.strip().removeprefix("- ") == "config:"
    return False
