"""Warnings about what dbt accepts and nothing here uses, with position; a call shows each once.

A warning that many places of a project may cause (`grants` in each model) is shown once, with the first place.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlmesh_like.errors import Location

LOGGER = "sqlmesh_like.project"
"""The logger that gets them; callers that load a project add a handler."""
REPEATED = "repeated_warning"
"""The attribute of a log record that has a `RepeatedWarning`."""
_log = logging.getLogger(LOGGER)
_log.addHandler(logging.NullHandler())


@dataclass(frozen=True)
class RepeatedWarning:
    """A warning that is shown once for all its places: the text without any, and one of them."""

    text: str
    place: Location


def merge_repeated(warnings: Iterable[RepeatedWarning]) -> Iterator[str]:
    """A line for each text: its first place, and how many others there are.

    >>> list(merge_repeated(RepeatedWarning("config 'grants' has no effect", Location("a.sql", n)) for n in (3, 1, 2)))
    ["warning: a.sql:1: config 'grants' has no effect, here and in 2 other places"]
    """
    places: dict[str, set[tuple[str, int, int]]] = {}
    for warning in warnings:
        place = warning.place
        places.setdefault(warning.text, set()).add((place.path, place.line or 0, place.column or 0))
    for text, its_places in places.items():
        path, line, column = min(its_places)
        others = len(its_places) - 1
        more = f", here and in {others} other place{'s' if others > 1 else ''}" if others else ""
        yield f"warning: {Location(path, line or None, column or None)}: {text}{more}"


def warn(location: Location | None, message: str, hint: str | None = None, *, once: bool = False) -> None:
    """Warn about something that is ignored; `once`: it is shown once, however many places of the project have it."""
    where = f"{location}: " if location else ""
    text = f"{message}{f' ({hint})' if hint else ''}"
    repeated = {REPEATED: RepeatedWarning(text, location)} if once and location else {}
    _log.warning("warning: %s%s", where, text, extra=repeated)
