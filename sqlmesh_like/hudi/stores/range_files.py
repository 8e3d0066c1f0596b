"""Files of object stores for readers that ask for ranges: DuckDB and pyarrow. Owns few requests, and their bound.

Reading a Parquet file begins with its end. So the first request is for the end, which also says the size, and ranges
that lie in it cost no further request; a small file costs one. Data files never change once they are written: what was
read of one is kept as long as the object lives that shows them.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Any

from fsspec import AbstractFileSystem

from sqlmesh_like.errors import SmlError
from sqlmesh_like.hudi.stores.store_client import STORE_PREFIX, client_of, failing
from sqlmesh_like.names import STORE_SCHEMES

_END = 128 * 1024
"""Bytes of a file's end that the first request is for."""
_KEPT = 512
"""Ends of files that are kept, 64 MB at most."""
_SIDE_BY_SIDE, _MOST_FILES = 16, 2_000
MOST_BYTES = 4 * 1024**3
"""Bytes that one reader may fetch: beyond it, executors near the store do the work."""


@dataclass(frozen=True)
class _End:
    """The size and the end of a file."""

    size: int
    content: bytes
    modified: datetime

    @property
    def start(self) -> int:
        return self.size - len(self.content)


class RangeFiles(AbstractFileSystem):  # type: ignore[misc]
    """Files of all buckets, by paths with `STORE_PREFIX`, read only. Raises OSError once `most` bytes are fetched."""

    protocol = tuple(f"{STORE_PREFIX}{scheme}" for scheme in sorted({*STORE_SCHEMES.values()}))
    cachable = False

    def __init__(self, most: int = MOST_BYTES) -> None:
        super().__init__()
        self._most, self._fetched = most, 0
        self._ends: OrderedDict[str, _End] = OrderedDict()
        self._lock = Lock()

    def open(self, path: str, mode: str = "rb", **_: object) -> io.RawIOBase:
        if mode not in ("r", "rb"):
            raise OSError(f"{path} is read only")
        end = self.end(path)
        return RangeFile(end.size, lambda start, stop: self.range(path, start, stop))

    def size(self, path: str) -> int:
        return self.end(path).size

    def modified(self, path: str) -> datetime:
        return self.end(path).modified

    def info(self, path: str, **_: object) -> dict[str, Any]:
        return {"name": path, "size": self.size(path), "type": "file"}

    def exists(self, path: str, **_: object) -> bool:
        try:
            self.end(path)
        except FileNotFoundError:
            return False
        return True

    def isfile(self, path: str) -> bool:
        return self.exists(path)

    def glob(self, path: str, **_: object) -> list[str]:
        """The path itself: files are named one by one, and a partition's name may look like a pattern."""
        return [path]

    def end(self, path: str) -> _End:
        """The end of a file, fetched once."""
        with self._lock:
            if (known := self._ends.get(path)) is not None:
                self._ends.move_to_end(path)
                return known
        end = _end_of(*_uri_and_key(path))
        self._count(len(end.content))
        with self._lock:
            self._ends[path] = end
            while len(self._ends) > _KEPT:
                self._ends.popitem(last=False)
        return end

    def sizes(self, paths: Sequence[str]) -> list[int]:
        """Bytes of these files, 0 of one that is gone: their ends are fetched side by side."""
        if len(paths) > _MOST_FILES:
            raise OSError(f"{len(paths)} files of a store would be opened here")
        with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
            return list(pool.map(self._size_if_readable, paths))

    def _size_if_readable(self, path: str) -> int:
        try:
            return self.size(path)
        except (FileNotFoundError, SmlError):
            return 0  # the read reports it

    def forget(self) -> None:
        """Drop what was read, and begin to count anew."""
        with self._lock:
            self._ends.clear()
            self._fetched = 0

    def range(self, path: str, start: int, stop: int) -> bytes:
        """These bytes of a file."""
        end = self.end(path)
        if start >= end.start:
            return end.content[start - end.start : stop - end.start]
        uri, key = _uri_and_key(path)
        with failing(uri):
            content = bytes(client_of(uri).get_range(key, start=start, end=stop))
        self._count(len(content))
        return content

    def _count(self, fetched: int) -> None:
        with self._lock:
            self._fetched += fetched
            if self._fetched > self._most:
                raise OSError(f"more than {self._most // 1024**2} MB of a store would be fetched here")


def _end_of(uri: str, key: str) -> _End:
    from obstore.exceptions import NotSupportedError

    client = client_of(uri)
    with failing(uri):
        try:
            answer = client.get(key, options={"range": {"suffix": _END}})
            return _End(answer.meta["size"], bytes(answer.bytes()), answer.meta["last_modified"])
        except NotSupportedError:  # Azure knows no range from the end
            meta = client.head(key)
            content = client.get_range(key, start=max(0, meta["size"] - _END), end=meta["size"])
            return _End(meta["size"], bytes(content), meta["last_modified"])


class RangeFile(io.RawIOBase):
    """A file of `size` bytes whose ranges `fetch` returns, by first byte and the one after the last."""

    def __init__(self, size: int, fetch: Callable[[int, int], bytes]) -> None:
        super().__init__()
        self._size, self._fetch, self._at = size, fetch, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def size(self) -> int:
        return self._size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, count: int | None = -1) -> bytes:
        start = self._at
        stop = self._size if count is None or count < 0 else min(start + count, self._size)
        content = self._fetch(start, stop) if stop > start else b""
        self._at = start + len(content)
        return content

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: Any) -> int:
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)


def _uri_and_key(path: str) -> tuple[str, str]:
    uri = path.removeprefix(STORE_PREFIX)
    return uri, uri.partition("://")[2].partition("/")[2]
