"""Files to search, on this machine or on an object store. Owns fetching those of a store, each once and whole.

A search reads all bytes of a file, its values, and its rows: an object is fetched by one request into a nameless file,
of which nothing is left when the process dies, and some are fetched while one is searched.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from sqlmesh_like.hudi.storage import folder, local_path
from sqlmesh_like.names import is_store

Source = Path | IO[bytes]
"""A file on this machine, or an open one without a name."""
_AHEAD = 8
"""Objects that are fetched while another one is searched: they take as many files' space in the temporary folder."""
_PIECE = 8 * 1024**2


@dataclass(frozen=True)
class Finding:
    """A file that still has a text, or a value of a key (`text`); `path` is absolute, an address on a store."""

    path: Path | str
    text: str


@dataclass(frozen=True)
class SearchedFile:
    """A file to search. `path`: what a finding calls it; `below`: its path in the lake, in which texts count too."""

    source: Source
    path: Path | str
    below: str


def start_of(uri: str) -> str:
    """What the paths of all files below a place start with."""
    return f"{uri.rstrip('/') if is_store(uri) else local_path(uri)}/"


def local_file(path: Path, root: Path) -> SearchedFile:
    """A file on this machine; names of folders above `root` do not count."""
    return SearchedFile(path, path, str(path.relative_to(root)) if path.is_relative_to(root) else path.name)


def files_below(root: Path) -> list[Path]:
    """All files below a folder, sorted; a file itself. None where nothing is there."""
    if root.is_file():
        return [root]
    return sorted(path for path in root.rglob("*") if path.is_file())


def searched_files(uri: str, relative: Iterable[str] | None = None) -> Iterator[SearchedFile]:
    """The files of a place, or those of these paths in it; what is gone meanwhile is left out.

    A file of a store is open until the next one is asked for.
    """
    if not is_store(uri):
        root = local_path(uri)
        paths = files_below(root) if relative is None else [root / each for each in relative]
        yield from (local_file(path, root) for path in paths)
        return
    base, sizes = uri.rstrip("/"), folder(uri).sizes() if relative is None else dict.fromkeys(relative, 1)
    for name, copy in _copies(base, sizes):
        with copy:
            yield SearchedFile(copy, f"{base}/{name}", name)


def _copies(uri: str, sizes: Mapping[str, int]) -> Iterator[tuple[str, IO[bytes]]]:
    """Each object with its content, in their order. `sizes`: bytes by path; of an empty one nothing is fetched."""
    with ThreadPoolExecutor(_AHEAD) as pool:
        waiting, rest = deque[tuple[str, Future[IO[bytes] | None]]](), iter(sizes)
        try:
            while True:
                while len(waiting) <= _AHEAD and (name := next(rest, None)) is not None:
                    waiting.append((name, pool.submit(_download if sizes[name] else _empty, f"{uri}/{name}")))
                if not waiting:
                    return
                name, task = waiting.popleft()
                if (copy := task.result()) is not None:
                    yield name, copy
        finally:
            _discard([task for _, task in waiting])


def _discard(tasks: Iterable[Future[IO[bytes] | None]]) -> None:
    """Close what was fetched for nobody, because the search ended earlier."""
    for task in tasks:
        if not task.cancel():
            with suppress(Exception):
                if (copy := task.result()) is not None:
                    copy.close()


def _empty(_: str) -> IO[bytes]:
    return BytesIO()


def _download(uri: str) -> IO[bytes] | None:
    """An object's content in a file without a name; None where it is gone."""
    from sqlmesh_like.hudi.stores.store_client import client_of, failing, key_of  # needs obstore

    copy = TemporaryFile()  # noqa: SIM115 - the caller closes it
    try:
        with failing(uri):
            for piece in client_of(uri).get(key_of(uri)).stream(min_chunk_size=_PIECE):
                copy.write(piece)
    except FileNotFoundError:
        copy.close()
        return None
    except BaseException:
        copy.close()
        raise
    return copy


@contextmanager
def open_source(source: Source) -> Iterator[IO[bytes]]:
    """The file from its beginning."""
    if isinstance(source, Path):
        with source.open("rb") as file:
            yield file
        return
    source.seek(0)
    yield source
