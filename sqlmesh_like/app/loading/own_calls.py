"""Which `run_results.json` a call of this user wrote. Owns its note in the user's cache.

The file is in the project's folder, where a pull request can bring one: the flags in it choose profile and target.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from contextlib import suppress
from pathlib import Path

from sqlmesh_like.own_files import read_own, require_own
from sqlmesh_like.regular_files import read_regular, write_new


def note_own_call(results: Path) -> None:
    """Note the content of a file that this call has written. A cache that cannot be written costs only convenience."""
    with suppress(OSError):
        note = _note(results)
        note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside = note.with_name(f".{uuid.uuid4().hex}")
        write_new(beside, _digest(results), 0o600)
        os.replace(beside, note)


def is_own_call(results: Path) -> bool:
    """Whether the file is as a call of this user, on this machine, has written it."""
    note = _note(results)
    require_own(note.parent)
    try:
        return read_own(note) == _digest(results)
    except OSError:
        return False


def _digest(results: Path) -> bytes:
    return hashlib.sha256(read_regular(results)).hexdigest().encode()


def _note(results: Path) -> Path:
    from sqlmesh_like.spark.jvm.jars import cache_dir  # as in `project_cache`

    return cache_dir() / "calls" / hashlib.sha256(str(results.resolve()).encode()).hexdigest()[:32]
