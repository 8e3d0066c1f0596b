"""File access without a JVM. Owns the mapping of Hadoop paths to libraries; leaves the meaning of files to others.

Object stores are read by obstore (`stores`), everything else by fsspec.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Literal, Protocol, cast, overload

import fsspec

from sqlmesh_like.errors import MachineError
from sqlmesh_like.hudi.stores.store_client import is_store, obstore_address, require_library
from sqlmesh_like.names import is_local
from sqlmesh_like.secrets import scrubbed

_HDFS = ("hdfs", "viewfs")


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
    def open(self, path: str, mode: str) -> IO[bytes]: ...
    def makedirs(self, path: str, exist_ok: bool = ...) -> None: ...


@dataclass(frozen=True)
class Folder:
    """A folder on any file system: `uri` for Spark, `path` for `fs`."""

    uri: str
    fs: FileSystem
    path: str

    @property
    def is_local(self) -> bool:
        return is_local(self.uri)

    def names(self) -> list[str]:
        """Names of the direct children; empty where the folder does not exist."""
        if self.is_local:  # fsspec parses every name: a hundred timelines would take a second
            return [entry.name for entry in os.scandir(self.path)] if Path(self.path).is_dir() else []
        try:  # one request: to ask first whether there is such a folder would be two more
            entries = self.fs.ls(self.path, detail=False)
        except FileNotFoundError:
            return []
        return [entry.rstrip("/").rsplit("/", 1)[-1] for entry in entries]

    def read(self, relative: str) -> bytes:
        return self.fs.cat_file(f"{self.path}/{relative}")

    def exists(self, relative: str = "") -> bool:
        return self.fs.exists(f"{self.path}/{relative}" if relative else self.path)

    def files(self) -> list[str]:
        """Paths of all files below, relative to the folder."""
        start = len(self.path) + 1
        return [entry[start:] for entry in self.fs.find(self.path)]

    def sizes(self) -> dict[str, int]:
        """Bytes of all files below, by path relative to the folder."""
        start = len(self.path) + 1
        match = self.fs.find(self.path, detail=True)
        return {path[start:]: int(str(info.get("size") or 0)) for path, info in match.items()}


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
    if is_store(uri):
        scheme, path = obstore_address(uri)
        return Folder(uri, _object_files(scheme, uri), path)
    require_readable(uri)
    try:
        fs, path = fsspec.core.url_to_fs(uri, use_listings_cache=False)
    except (ImportError, ValueError) as error:
        raise MachineError(f"{scrubbed(uri)} cannot be read by Python: {error}") from error
    return Folder(uri, cast(FileSystem, fs), path)


@lru_cache(maxsize=8)
def _object_files_of(scheme: str) -> FileSystem:
    from sqlmesh_like.hudi.stores.object_files import ObjectFiles

    return cast(FileSystem, ObjectFiles(scheme))


def _object_files(scheme: str, uri: str) -> FileSystem:
    require_library(uri)
    return _object_files_of(scheme)


def require_readable(uri: str) -> None:
    """Raises MachineError for a place that only Spark can read."""
    if uri.partition("://")[0] in _HDFS:
        hint = "keep the warehouse on s3a:// or on a mounted file system"
        raise MachineError(
            f"{uri}: sml cannot read HDFS: it reads timelines without a JVM, and no Python package has libhdfs",
            hint=hint,
        )
