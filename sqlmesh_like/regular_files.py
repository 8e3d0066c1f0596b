"""The door to files: content within a size, and new files. Owns what is never opened; not which folders are allowed.

Never opened are pipes, devices and sockets, which may block or have no end, links unless the caller follows them, and
files that another user put into a folder that everybody can write to, such as /tmp. `project.reading.files` adds what
is asked of the files of a project.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

MAX_TEXT = 64_000_000
"""Most bytes of a file that is parsed as text: YAML, SQL, Markdown."""
MAX_DATA = 2_000_000_000
"""Most bytes of any other file: CSV, artifacts."""

_READ = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_BINARY"))
_SHARED = stat.S_ISVTX | stat.S_IWOTH


def read_regular(path: str | Path, limit: int = MAX_DATA) -> bytes:
    """Return the content of a regular file. Raises OSError for a link, for anything else, and for more than `limit`."""
    descriptor = os.open(path, _READ)
    try:
        state = os.fstat(descriptor)
        if stat.S_ISDIR(state.st_mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a file", str(path))
        if _is_planted(path, state):
            raise OSError(errno.EPERM, "it is another user's, in a folder that everybody can write to", str(path))
        return _content(descriptor, state.st_size, limit, path)
    finally:
        os.close(descriptor)


def read_followed(path: str | Path, limit: int = MAX_DATA) -> bytes:
    """Like `read_regular`, also through a link. The caller knows where it may lead."""
    try:
        return read_regular(path, limit)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
    return read_regular(os.path.realpath(path), limit)


def write_new(path: str | Path, content: bytes, mode: int = 0o666) -> None:
    """Write a file that does not exist yet. Raises OSError, also where anything has this name, such as a link."""
    descriptor = os.open(path, _CREATE, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _content(descriptor: int, size: int, limit: int, path: str | Path) -> bytes:
    """Read to the end, as the size of a file may change, or be unknown as in /proc."""
    parts: list[bytes] = []
    read = 0
    while read <= limit and (part := os.read(descriptor, max(min(size, limit) + 1 - read, 65_536))):
        parts.append(part)
        read += len(part)
    if read > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit / 1e6:,.0f} MB", str(path))
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _is_planted(path: str | Path, state: os.stat_result) -> bool:
    """Whether someone else can have put the file there. Windows has no such bits."""
    if not hasattr(os, "getuid") or state.st_uid in (0, os.getuid()):
        return False
    return os.stat(os.path.dirname(path) or ".").st_mode & _SHARED == _SHARED  # noqa: PTH116, PTH120 (for each file)
