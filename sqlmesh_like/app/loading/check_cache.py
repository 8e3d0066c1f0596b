"""A cache of checks. A project is checked again only if something that a check reads has changed.

A key covers the rendered nodes, the columns of their inputs, and the program itself; only checks that found no
error are cached, with their warnings. A cache miss costs time and never causes an error.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import sqlmesh_like
from sqlmesh_like.artifacts.files import write_json
from sqlmesh_like.errors import Location
from sqlmesh_like.plan.checks.type_warning import TypeWarning
from sqlmesh_like.regular_files import read_regular

MAX_CHECKS = 16
"""Number of checks that are cached for a project, one per selection."""


def check_key(*looked_at: object) -> str:
    """Return a key made of everything that a check reads: frozen values whose `repr` is complete."""
    digest = hashlib.sha256(program_version().encode())
    for part in looked_at:
        digest.update(repr(part).encode(errors="surrogatepass"))
    return digest.hexdigest()


def cached_warnings(folder: Path, key: str) -> tuple[TypeWarning, ...] | None:
    """Return the cached warnings of a check, None where it is not cached. `folder`: the project's target folder."""
    try:
        entries = _load(folder).get(key)
        if entries is None:
            return None
        return tuple(
            TypeWarning(rule, message, Location(path, line, column), is_refused=False)
            for rule, message, path, line, column in entries
        )
    except (TypeError, ValueError):
        return None


def store_warnings(folder: Path, key: str, warnings: Iterable[TypeWarning]) -> None:
    """Cache the warnings of a check that found no error. Raises MachineError where the folder cannot be written."""
    others = [stored for stored in _load(folder).items() if stored[0] != key]
    entries = [[one.rule, one.message, one.location.path, one.location.line, one.location.column] for one in warnings]
    newest_first = [(key, entries), *others]
    write_json(_cache_file(folder), dict(newest_first[:MAX_CHECKS]))


def _load(folder: Path) -> dict[str, list[list[Any]]]:
    try:
        stored = json.loads(read_regular(_cache_file(folder)))
    except (OSError, ValueError):
        return {}
    return (
        {key: entries for key, entries in stored.items() if isinstance(entries, list)}
        if isinstance(stored, dict)
        else {}
    )


def _cache_file(folder: Path) -> Path:
    return folder / "checked.json"


@cache
def program_version() -> str:
    """Return a text that differs between versions of sqlglot and of this package's code."""
    return "\n".join([_sqlglot_version(), *sorted(_stamps(str(Path(sqlmesh_like.__file__).parent), ""))])


def _sqlglot_version() -> str:
    """Return its place and the file that states its version: `importlib.metadata` imports thirty modules to say it."""
    found = find_spec("sqlglot")
    place = found.origin if found is not None else None
    try:
        return f"{place}\n{read_regular(Path(place or '').with_name('_version.py'))!r}"
    except (OSError, ValueError):
        from importlib.metadata import version

        return version("sqlglot")


def _stamps(folder: str, name: str) -> Iterator[str]:
    """Path, size and time of each module in a folder. Each call needs them: `pathlib` would take five times as long."""
    for entry in os.scandir(folder):
        if entry.name.endswith(".py"):
            stat = entry.stat()
            yield f"{name}{entry.name} {stat.st_size} {stat.st_mtime_ns}"
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from _stamps(entry.path, f"{name}{entry.name}/")
