"""Selectors as a user writes them: words of the command line as a tree. Owns the grammar; `plan` finds what matches."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from sqlmesh_like.errors import SelectionError, nearest

Method = Literal[
    "fqn",
    "path",
    "file",
    "tag",
    "source",
    "exposure",
    "semantic_model",
    "metric",
    "saved_query",
    "group",
    "access",
    "config",
    "resource_type",
    "test_type",
    "test_name",
    "unit_test",
    "package",
    "state",
    "result",
    "source_status",
    "version",
]
Indirect = Literal["eager", "cautious", "buildable", "empty"]
"""Which tests are selected with the nodes that they read: if any is selected; if all are; if all are or are upstream
of selected nodes; none."""

METHODS: tuple[str, ...] = get_args(Method)
INDIRECT: tuple[str, ...] = get_args(Indirect)
_TERM = re.compile(r"(?P<at>@)?(?:(?P<up>\d*)(?P<parents>\+))?(?P<body>[^+@]+?)(?:(?P<children>\+)(?P<down>\d*))?")
_METHOD = re.compile(r"(?P<method>[a-z_]+(?:\.[\w.]+)?):(?P<value>.+)")


@dataclass(frozen=True)
class SelectorTerm:
    """One selector without spaces and commas. A depth of None is without limit.

    `method` may carry an argument after a dot (`config.materialized`); `indirect` None: as the command says.
    """

    text: str
    method: str
    value: str
    parents: bool = False
    parents_depth: int | None = None
    children: bool = False
    children_depth: int | None = None
    at: bool = False
    indirect: Indirect | None = None


@dataclass(frozen=True)
class SelectorUnion:
    """All nodes that any of these selects."""

    of: tuple[Selector, ...]


@dataclass(frozen=True)
class SelectorIntersection:
    """The nodes that all of these select."""

    of: tuple[Selector, ...]


@dataclass(frozen=True)
class SelectorDifference:
    """The nodes that `of` selects and `minus` does not."""

    of: Selector
    minus: Selector


Selector = SelectorTerm | SelectorUnion | SelectorIntersection | SelectorDifference


def parse_word(word: str) -> Selector:
    """Parse a word without spaces; commas mean intersection. Raises SelectionError if it is malformed.

    >>> parse_word("tag:daily+").value
    'daily'
    """
    if "" in (parts := word.split(",")):
        hint = "a comma stands between two selectors: both must match"
        raise SelectionError(f"selector {word!r} is malformed: nothing stands on one side of a comma", hint=hint)
    terms = tuple(parse_term(part) for part in parts)
    return terms[0] if len(terms) == 1 else SelectorIntersection(terms)


def parse_term(word: str) -> SelectorTerm:
    """Parse one term. Raises SelectionError if it is malformed or has an unknown method."""
    match = _TERM.fullmatch(word)
    if match is None or (match["at"] and (match["parents"] or match["children"])):
        raise SelectionError(f"selector {word!r} is malformed", hint="write m, +m, m+, 2+m, m+3, @m, tag:x, path:x …")
    method = _METHOD.fullmatch(match["body"])
    if match["body"].endswith(":"):
        if hint := unknown_method(match["body"][:-1]):
            raise SelectionError(f"selector {word!r} has the unknown method {match['body'][:-1]!r}", hint=hint)
        raise SelectionError(f"selector {word!r} has no value", hint=f"write {match['body']}x, without a space")
    if method is not None and (hint := unknown_method(method["method"])):
        raise SelectionError(f"selector {word!r} has the unknown method {method['method']!r}", hint=hint)
    return SelectorTerm(
        text=word,
        method=method["method"] if method else implied_method(match["body"]),
        value=method["value"] if method else match["body"],
        parents=bool(match["parents"]),
        parents_depth=int(match["up"]) if match["up"] else None,
        children=bool(match["children"]),
        children_depth=int(match["down"]) if match["down"] else None,
        at=bool(match["at"]),
    )


def unknown_method(method: str) -> str | None:
    """A hint for a method that does not exist; None if it does."""
    if method.partition(".")[0] in METHODS:
        return None
    return nearest(method, METHODS) or f"known methods: {', '.join(METHODS)}"


def implied_method(body: str) -> Method:
    """As in dbt: a path has a slash, a file a suffix, everything else is a name.

    >>> implied_method("models/dws"), implied_method("rates.csv"), implied_method("orders")
    ('path', 'file', 'fqn')
    """
    if "/" in body:
        return "path"
    return "file" if body.endswith((".sql", ".py", ".csv")) else "fqn"
