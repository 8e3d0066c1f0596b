"""What has been checked before. Owns when a project need not be checked again: nothing that a check looks at is other.

A key covers the rendered nodes, the columns of what they read, and the program itself; only checks that found nothing
are remembered. A key that is missing costs time, never an error.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.metadata import version
from pathlib import Path

import sqlmesh_like
from sqlmesh_like.artifacts.files import write_json

KEPT = 16
"""So many selections of a project are remembered."""


def key_of(*looked_at: object) -> str:
    """Names a check by all that it looks at: frozen values, whose text says all that they are."""
    digest = hashlib.sha256(_program().encode())
    for part in looked_at:
        digest.update(repr(part).encode(errors="surrogatepass"))
    return digest.hexdigest()


def is_checked(folder: Path, key: str) -> bool:
    """Whether this check found nothing before. `folder`: the target folder of the project."""
    return key in _known(folder)


def remember(folder: Path, key: str) -> None:
    """This check found nothing. Raises MachineError where the folder cannot be written."""
    write_json(_file(folder), [key, *_known(folder)][:KEPT])


def _known(folder: Path) -> list[str]:
    try:
        found = json.loads(_file(folder).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [key for key in found if isinstance(key, str)] if isinstance(found, list) else []


def _file(folder: Path) -> Path:
    return folder / "checked.json"


@cache
def _program() -> str:
    """Another for each version of the code that checks."""
    root = Path(sqlmesh_like.__file__).parent
    stats = ((path.relative_to(root), path.stat()) for path in sorted(root.rglob("*.py")))
    files = [f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in stats]
    return "\n".join([version("sqlglot"), *files])
