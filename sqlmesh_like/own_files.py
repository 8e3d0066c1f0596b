"""Files that only this user can write. Owns the check of a cache before its contents are trusted.

A cache contains executable content: pickles, jars, archives of classes. Anyone who can write there could run code.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from sqlmesh_like.errors import MachineError

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def require_own(folder: Path) -> None:
    """Raises MachineError where an existing folder belongs to another user, or others can write into it."""
    try:
        state = folder.stat()
    except OSError:
        return  # it does not exist yet, and will be this user's
    if not _is_trusted(state):
        hint = "remove it, or name another folder by SML_CACHE_DIR"
        raise MachineError(f"the cache folder {folder} is another user's, or others can write there", hint=hint)


def read_own(path: Path) -> bytes | None:
    """Return the content of a file that only this user can have written; None for any other, and for a link."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        state = os.fstat(file.fileno())
        return file.read() if _is_trusted(state) and stat.S_ISREG(state.st_mode) else None


def _is_trusted(state: os.stat_result) -> bool:
    """Whether only this user or root, who can do anything anyway, can write. Windows has no such bits."""
    if not hasattr(os, "getuid"):
        return True
    return state.st_uid in (0, os.getuid()) and not state.st_mode & _OTHERS_WRITE
