"""What reading a project looked at. Owns noting it, and whether all of it is still as it was; not what files mean.

Whoever keeps what a project's files came to may take it again while every note holds: contents by their hash, listings
of folders, which files are not there, and environment variables.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_CLOCKED = ("run_started_at", "modules", "invocation_id")
"""Words of templates that mean another value in each call."""


@dataclass
class FileDependencies:
    """Notes of one reading. `is_clocked`: some text has another meaning in each call."""

    files: dict[str, str | None] = field(default_factory=dict)
    listings: dict[tuple[str, tuple[str, ...], tuple[str, ...]], str] = field(default_factory=dict)
    folders: dict[str, str | None] = field(default_factory=dict)
    variables: dict[str, str | None] = field(default_factory=dict)
    is_clocked: bool = False

    def are_unchanged(self) -> bool:
        """Whether everything is as it was."""
        return (
            all(content_hash(os.environ.get(name)) == value for name, value in self.variables.items())
            and all(_entries(folder) == value for folder, value in self.folders.items())
            and all(_listed(*asked) == value for asked, value in self.listings.items())
            and all(_content(path) == value for path, value in self.files.items())
        )


_open: list[FileDependencies] = []


@contextmanager
def recording() -> Iterator[FileDependencies]:
    """Notes of what is read within."""
    reads = FileDependencies()
    _open.append(reads)
    try:
        yield reads
    finally:
        _open.remove(reads)


def record_file(path: Path, text: str | None = None) -> None:
    """The file's content matters, or that there is none. `text`: what it says, where templates may be in it."""
    for reads in _open:
        reads.files[str(path)] = _content(str(path))
        reads.is_clocked |= text is not None and any(word in text for word in _CLOCKED)


def record_listing(root: Path, folders: Iterable[str], suffixes: tuple[str, ...]) -> None:
    for reads in _open:
        asked = (str(root), tuple(folders), suffixes)
        reads.listings[asked] = _listed(*asked)


def record_folder(path: Path) -> None:
    for reads in _open:
        reads.folders[str(path)] = _entries(str(path))


def record_variable(name: str) -> None:
    for reads in _open:
        reads.variables[name] = content_hash(os.environ.get(name))


def list_files(root: Path, folders: Iterable[str], suffixes: tuple[str, ...]) -> tuple[str, ...]:
    """All files with these suffixes under the folders, hidden ones left out, sorted, each once."""
    files: set[str] = set()
    for folder in folders:
        for path, below, names in os.walk(root / folder):
            below[:] = [name for name in below if not name.startswith(".")]
            wanted = (name for name in names if not name.startswith(".") and name.lower().endswith(suffixes))
            paths = (os.path.join(path, name) for name in wanted)  # noqa: PTH118 (a Path for each costs more)
            files.update(path for path in paths if os.path.isfile(path))  # noqa: PTH113 (as above)
    return tuple(sorted(files))


def content_hash(text: str | None) -> str | None:
    """A text as a note holds it: a variable may be a secret."""
    return None if text is None else hashlib.blake2b(text.encode(errors="surrogatepass")).hexdigest()


def _content(path: str) -> str | None:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 (as above)
            return hashlib.blake2b(file.read()).hexdigest()
    except OSError:
        return None


def _listed(root: str, folders: tuple[str, ...], suffixes: tuple[str, ...]) -> str:
    return str(content_hash("\n".join(list_files(Path(root), folders, suffixes))))


def _entries(path: str) -> str | None:
    try:
        return content_hash("\n".join(sorted(os.listdir(path))))  # noqa: PTH208 (names alone)
    except OSError:
        return None
