"""What reading a project depended on. Owns recording it, and whether all of it is unchanged; not what files mean.

A cached result of a project's files is valid while every record holds: contents by their hash, listings
of folders, missing files, and environment variables. What has another value in each call, such as the time,
is recorded with the node whose template used it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from sqlmesh_like.regular_files import read_followed

_NODE: ContextVar[str | None] = ContextVar("_NODE", default=None)


@dataclass
class FileDependencies:
    """The record of one reading of a project.

    `clocked`: unique ids of nodes whose template reads a value that differs in each call. `is_clocked`: something that
    is not a node's template does so.
    """

    files: dict[str, str | None] = field(default_factory=dict)
    listings: dict[tuple[str, tuple[str, ...], tuple[str, ...]], str] = field(default_factory=dict)
    folders: dict[str, str | None] = field(default_factory=dict)
    variables: dict[str, str | None] = field(default_factory=dict)
    clocked: set[str] = field(default_factory=set)
    is_clocked: bool = False

    def are_unchanged(self) -> bool:
        """Whether everything that was recorded is still the same."""
        return (
            all(content_hash(os.environ.get(name)) == value for name, value in self.variables.items())
            and all(_entries(folder) == value for folder, value in self.folders.items())
            and all(_hash_listing(*asked) == value for asked, value in self.listings.items())
            and all(_content(path) == value for path, value in self.files.items())
        )


_OPEN: ContextVar[tuple[FileDependencies, ...]] = ContextVar("_OPEN", default=())


@contextmanager
def recording() -> Iterator[FileDependencies]:
    """Record what is read within the context."""
    reads = FileDependencies()
    before = _OPEN.set((*_OPEN.get(), reads))
    try:
        yield reads
    finally:
        _OPEN.reset(before)


@contextmanager
def rendering_node(unique_id: str) -> Iterator[None]:
    """A context in which clocks are recorded for this node: only such nodes of a cached project are rendered again."""
    before = _NODE.set(unique_id)
    try:
        yield
    finally:
        _NODE.reset(before)


def rendered_node() -> str | None:
    """The node whose template is being rendered, if that is known."""
    return _NODE.get()


def record_clock() -> None:
    """Record that a template read a value that differs in each call."""
    node = _NODE.get()
    for reads in _OPEN.get():
        if node is None:
            reads.is_clocked = True
        else:
            reads.clocked.add(node)


def record_file(path: Path) -> None:
    """Record the file's content, or that it does not exist."""
    for reads in _OPEN.get():
        reads.files[str(path)] = _content(str(path))


def record_content(path: Path, content: bytes) -> None:
    """Record the content that was read from a file."""
    for reads in _OPEN.get():
        reads.files[str(path)] = hashlib.blake2b(content).hexdigest()


def record_listing(root: Path, folders: Iterable[str], suffixes: tuple[str, ...]) -> None:
    for reads in _OPEN.get():
        asked = (str(root), tuple(folders), suffixes)
        reads.listings[asked] = _hash_listing(*asked)


def record_folder(path: Path) -> None:
    for reads in _OPEN.get():
        reads.folders[str(path)] = _entries(str(path))


def record_variable(name: str) -> None:
    for reads in _OPEN.get():
        reads.variables[name] = content_hash(os.environ.get(name))


def list_files(root: Path, folders: Iterable[str], suffixes: tuple[str, ...]) -> tuple[str, ...]:
    """All files with these suffixes under the folders, hidden ones left out, sorted, each once.

    A link that leads nowhere counts as a file: whoever reads it says so.
    """
    files: set[str] = set()
    for folder in folders:
        for path, below, names in os.walk(root / folder):
            below[:] = [name for name in below if not name.startswith(".")]
            wanted = (name for name in names if not name.startswith(".") and name.lower().endswith(suffixes))
            paths = (os.path.join(path, name) for name in wanted)  # noqa: PTH118 (a Path for each costs more)
            files.update(path for path in paths if os.path.isfile(path) or os.path.islink(path))  # noqa: PTH113, PTH114 (as above)
    return tuple(sorted(files))


def content_hash(text: str | None) -> str | None:
    """The hash that is recorded instead of a text, as a variable may be a secret."""
    return None if text is None else hashlib.blake2b(text.encode(errors="surrogatepass")).hexdigest()


def _content(path: str) -> str | None:
    try:
        return hashlib.blake2b(read_followed(path)).hexdigest()
    except OSError:
        return None


def _hash_listing(root: str, folders: tuple[str, ...], suffixes: tuple[str, ...]) -> str:
    return str(content_hash("\n".join(list_files(Path(root), folders, suffixes))))


def _entries(path: str) -> str | None:
    try:
        return content_hash("\n".join(sorted(os.listdir(path))))  # noqa: PTH208 (names alone)
    except OSError:
        return None
