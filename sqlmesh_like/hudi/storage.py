"""File access without a JVM. Owns the mapping of Hadoop paths to libraries; leaves the meaning of files to others.

Object stores are read by obstore and HDFS by hdfs-native (`stores`), everything else by fsspec, which is imported where
a call needs it: most of what is asked of a folder on this machine, Python itself answers.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Literal, Protocol, cast, overload

from sqlmesh_like.errors import MachineError
from sqlmesh_like.hudi.stores.store_client import (
    STORE_PREFIX,
    child_names,
    get_content,
    obstore_address,
    put_file,
    require_library,
    uses_stores,
)
from sqlmesh_like.names import STORE_SCHEMES, is_in_reach, is_local, is_store
from sqlmesh_like.secrets import scrub_text

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

    from sqlmesh_like.hudi.stores.range_files import RangeFiles

_MOUNT_TABLE = "viewfs://"


class FileSystem(Protocol):
    """The part of fsspec's interface that is used here."""

    def exists(self, path: str) -> bool: ...
    def info(self, path: str) -> dict[str, object]: ...
    @overload
    def find(self, path: str) -> list[str]: ...
    @overload
    def find(self, path: str, *, detail: Literal[True]) -> dict[str, dict[str, object]]: ...
    def glob(self, path: str) -> list[str]: ...
    def ls(self, path: str, detail: bool = ...) -> list[str]: ...
    def cat_file(self, path: str) -> bytes: ...
    def mv(self, source: str, target: str, recursive: bool = ...) -> None: ...
    def rm(self, path: str, recursive: bool = ...) -> None: ...
    def cp_file(self, source: str, target: str) -> None: ...
    def open(self, path: str, mode: str) -> IO[bytes]: ...
    def makedirs(self, path: str, exist_ok: bool = ...) -> None: ...


@dataclass(frozen=True)
class Folder:
    """A folder on any file system: `uri` for Spark, `path` for `fs`."""

    uri: str
    path: str

    @property
    def fs(self) -> FileSystem:
        return _file_system(self.uri)

    @property
    def is_local(self) -> bool:
        return is_local(self.uri)

    @property
    def is_in_reach(self) -> bool:
        """Whether DuckDB and the writer of this project may work on its files: on this machine or on a store."""
        return is_in_reach(self.uri)

    def data_path(self, relative: str) -> str:
        """The path by which DuckDB knows a data file; that of a file of this process elsewhere stays what it is."""
        if relative.startswith("/"):
            return relative
        path = f"{self.path}/{relative}"
        return f"{STORE_PREFIX}{STORE_SCHEMES[self.uri.partition('://')[0]]}://{path}" if is_store(self.uri) else path

    def data_file(self, relative: str) -> IO[bytes]:
        """A data file for readers that ask for ranges of it; those of a store in few requests."""
        if self.is_local:
            return open(f"{self.path}/{relative}", "rb")  # noqa: PTH123 - the caller closes it
        if not is_store(self.uri):
            return self.fs.open(f"{self.path}/{relative}", "rb")
        return cast(IO[bytes], _ranges().open(self.data_path(relative)))

    def parquet_source(self, relative: str) -> str | IO[bytes]:
        """What pyarrow opens a data file by."""
        return self.data_file(relative) if is_store(self.uri) else f"{self.path}/{relative}"

    def data_sizes(self, relative: Collection[str]) -> list[int]:
        """Bytes of data files, 0 of one that is gone. On a store many are asked at once."""
        paths = [self.data_path(each) for each in relative]
        return _ranges().sizes(paths) if is_store(self.uri) else [_bytes_of(path) for path in paths]

    @contextmanager
    def new_file(self, relative: str) -> Iterator[Path]:
        """A path on this machine to write a file to. When the context ends, it is in the folder if it was written.

        An error inside leaves nothing on a store, and what was written on a disk.
        """
        if not is_store(self.uri):
            place = Path(self.path) / relative
            place.parent.mkdir(parents=True, exist_ok=True)
            yield place
            return
        with TemporaryDirectory(prefix="sml-") as scratch:
            place = Path(scratch, "file")
            yield place
            if place.exists():
                put_file(f"{self.uri}/{relative}", place)

    def names(self, relative: str = "") -> list[str]:
        """Names of the direct children, or of those of a folder below; empty where that does not exist."""
        path = f"{self.path}/{relative}" if relative else self.path
        if self.is_local:  # fsspec parses every name: a hundred timelines would take a second
            try:
                return [entry.name for entry in os.scandir(path)]
            except (FileNotFoundError, NotADirectoryError):
                return []
        if is_store(self.uri):
            return child_names(f"{self.uri}/{relative}")
        try:  # one request: to ask first whether there is such a folder would be two more
            entries = self.fs.ls(path, detail=False)
        except FileNotFoundError:
            return []
        return [entry.rstrip("/").rsplit("/", 1)[-1] for entry in entries]

    def read(self, relative: str) -> bytes:
        path = f"{self.path}/{relative}"
        if is_store(self.uri):
            return get_content(f"{self.uri}/{relative}")
        return Path(path).read_bytes() if self.is_local else self.fs.cat_file(path)

    def exists(self, relative: str = "") -> bool:
        path = f"{self.path}/{relative}" if relative else self.path
        return os.path.exists(path) if self.is_local else self.fs.exists(path)  # noqa: PTH110 - no object a table

    def files(self) -> list[str]:
        """Paths of all files below, relative to the folder."""
        if self.is_local:  # fsspec asks for the size of each
            return sorted(_files_below(self.path, ""))
        start = len(self.path) + 1
        return [entry[start:] for entry in self.fs.find(self.path)]

    def sizes(self) -> dict[str, int]:
        """Bytes of all files below, by path relative to the folder."""
        start = len(self.path) + 1
        match = self.fs.find(self.path, detail=True)
        return {path[start:]: int(str(info.get("size") or 0)) for path, info in match.items()}


def _files_below(path: str, prefix: str) -> Iterator[str]:
    """Files below a folder of this machine, as fsspec lists them: links are files, and closed folders are left out."""
    try:
        entries = list(os.scandir(path))
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _files_below(entry.path, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name


def range_files() -> AbstractFileSystem | None:
    """The file system by which DuckDB reads stores; None where no warehouse of this process is on one."""
    return _ranges() if uses_stores() else None


def forget_ranges() -> None:
    """Drop what was read of stores' files, and begin to count the bytes anew."""
    if uses_stores():
        _ranges().forget()


@cache
def _ranges() -> RangeFiles:
    from sqlmesh_like.hudi.stores.range_files import RangeFiles

    return RangeFiles()


def _bytes_of(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0  # the read will report that it is missing


def local_path(uri: str) -> Path:
    """The path of a folder on this machine, which may be named by a `file:` URI.

    >>> local_path("file:///lake/shop") == local_path("/lake/shop/") == Path("/lake/shop")
    True
    """
    return Path(folder(uri).path)


@lru_cache(maxsize=1024)
def folder(uri: str) -> Folder:
    """The folder at a path or Hadoop URI (`s3a://…`). Raises MachineError where what reads it is missing.

    >>> folder("/tmp/x/").path
    '/tmp/x'
    """
    uri = uri.rstrip("/")
    if is_local(uri):
        path = uri.removeprefix("file://").removeprefix("file:")
        return Folder(uri, str(Path.cwd() / os.path.expanduser(path)))  # noqa: PTH111 - "~name" may be no user's
    if is_store(uri):
        require_library(uri)
        return Folder(uri, obstore_address(uri)[1])
    require_readable(uri)
    return Folder(uri, _open_with_fsspec(uri)[1])


def _file_system(uri: str) -> FileSystem:
    if is_local(uri):
        return _local_files()
    return _object_files(obstore_address(uri)[0]) if is_store(uri) else _open_with_fsspec(uri)[0]


@cache
def _local_files() -> FileSystem:
    from fsspec.implementations.local import LocalFileSystem

    return cast(FileSystem, LocalFileSystem())


@lru_cache(maxsize=8)
def _object_files(scheme: str) -> FileSystem:
    if scheme == "hdfs":
        from sqlmesh_like.hudi.stores.hdfs_files import HdfsFiles

        return cast(FileSystem, HdfsFiles())
    from sqlmesh_like.hudi.stores.object_files import ObjectFiles

    return cast(FileSystem, ObjectFiles(scheme))


@lru_cache(maxsize=1024)
def _open_with_fsspec(uri: str) -> tuple[FileSystem, str]:
    """What fsspec opens any other place by, and the path in it."""
    from fsspec.core import url_to_fs

    try:
        fs, path = url_to_fs(uri, use_listings_cache=False)
    except (ImportError, ValueError) as error:
        raise MachineError(f"{scrub_text(uri)} cannot be read by Python: {error}") from error
    return cast(FileSystem, fs), path


def require_readable(uri: str) -> None:
    """Raises MachineError for a place that only Spark can read."""
    if uri.startswith(_MOUNT_TABLE):
        hint = "name the file system behind it: hdfs://NAMESERVICE/…"
        raise MachineError(f"{uri}: sml does not read mount tables of HDFS", hint=hint)
