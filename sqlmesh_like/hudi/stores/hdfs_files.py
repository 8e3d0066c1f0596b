"""HDFS as folders and files, for readers that want fsspec's interface; a path is `host:port/path`, as of a bucket."""

from __future__ import annotations

from io import BufferedReader, BytesIO
from typing import IO, Any

from fsspec import AbstractFileSystem

from sqlmesh_like.hudi.stores.hdfs_client import HdfsClient
from sqlmesh_like.hudi.stores.range_files import RangeFile
from sqlmesh_like.hudi.stores.store_client import client_of

_BUFFER = 1024 * 1024


class HdfsFiles(AbstractFileSystem):  # type: ignore[misc]
    """Files of every HDFS."""

    protocol = "hdfs"
    cachable = False

    def info(self, path: str, **_: object) -> dict[str, Any]:
        client, authority, key = _split_path(path)
        try:
            return _file(authority, client.head(key))
        except FileNotFoundError:
            if not client.is_folder(key):
                raise
        return {"name": f"{authority}/{key}", "size": 0, "type": "directory"}

    def ls(self, path: str, detail: bool = False, **_: object) -> Any:
        client, authority, key = _split_path(path)
        listed = client.list_with_delimiter(key)
        folders = [
            {"name": f"{authority}/{each}", "size": 0, "type": "directory"} for each in listed["common_prefixes"]
        ]
        entries = [*folders, *(_file(authority, each) for each in listed["objects"])]
        if not entries:
            entry = self.info(path)  # raises where there is nothing
            entries = [entry] if entry["type"] == "file" else []
        return entries if detail else [entry["name"] for entry in entries]

    def find(self, path: str, maxdepth: int | None = None, withdirs: bool = False, **kwargs: Any) -> Any:
        """All files below."""
        if maxdepth is not None or withdirs:
            return super().find(path, maxdepth=maxdepth, withdirs=withdirs, **kwargs)
        client, authority, key = _split_path(path)
        files = [_file(authority, each) for batch in client.list(key) for each in batch]
        entries = {file["name"]: file for file in sorted(files, key=lambda file: str(file["name"]))}
        return entries if kwargs.get("detail") else list(entries)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: object) -> bytes:
        client, key = _client(path)
        if start is None and end is None:
            return client.get(key).bytes()
        size = client.head(key)["size"]
        return client.get_range(key, start=start or 0, end=size if end is None else min(end, size))

    def rm_file(self, path: str) -> None:
        client, key = _client(path)
        client.delete(key)

    def rm(self, path: str, recursive: bool = False, maxdepth: int | None = None) -> None:  # noqa: ARG002 - fsspec's
        client, key = _client(path)
        if recursive:
            client.delete_folder(key)
        else:
            client.delete(key)

    def mv(self, path1: str, path2: str, **_: object) -> None:
        """One rename, which replaces a file."""
        client, source = _client(path1)
        client.rename(source, _client(path2)[1])

    def cp_file(self, path1: str, path2: str, **_: object) -> None:
        client, source = _client(path1)
        client.copy(source, _client(path2)[1])

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Nothing: a folder comes with its first file."""

    def open(self, path: str, mode: str = "rb", **_: object) -> IO[bytes]:
        client, key = _client(path)
        if mode in ("r", "rb"):
            size = client.head(key)["size"]
            ranges = RangeFile(size, lambda start, stop: client.get_range(key, start=start, end=stop))
            return BufferedReader(ranges, _BUFFER)
        return _NewFile(client, key)


class _NewFile(BytesIO):
    """A file that is written when it is closed."""

    def __init__(self, client: HdfsClient, key: str) -> None:
        super().__init__()
        self._client, self._key = client, key

    def __exit__(self, kind: object, *rest: object) -> None:
        if kind is not None:
            super().close()
        self.close()

    def close(self) -> None:
        if not self.closed:
            self._client.put(self._key, self.getvalue())
        super().close()


def _client(path: str) -> tuple[HdfsClient, str]:
    client, _, key = _split_path(path)
    return client, key


def _split_path(path: str) -> tuple[HdfsClient, str, str]:
    """The client, the file system's name, and the path in it."""
    authority, _, key = path.removeprefix("hdfs://").strip("/").partition("/")
    client = client_of(f"hdfs://{authority}/{key}")
    assert isinstance(client, HdfsClient)
    return client, authority, key


def _file(authority: str, meta: Any) -> dict[str, Any]:
    return {
        "name": f"{authority}/{meta['path']}",
        "size": meta["size"],
        "type": "file",
        "last_modified": meta["last_modified"],
    }
