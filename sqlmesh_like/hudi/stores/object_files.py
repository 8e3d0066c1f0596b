"""A bucket as folders and files, for readers that want fsspec's interface. Owns errors in words and few requests."""

from __future__ import annotations

from typing import Any

from obstore.fsspec import BufferedFile, FsspecStore

from sqlmesh_like.hudi.stores.store_client import client_of, failing


class ObjectFiles(FsspecStore):  # type: ignore[misc]
    """Files of the buckets of one scheme; a path is `bucket/key`."""

    cachable = False

    def __init__(self, scheme: str) -> None:
        super().__init__(scheme)

    def _construct_store(self, bucket: str) -> Any:
        return client_of(f"{self.protocol}://{bucket}")

    def _uri(self, path: str) -> str:
        return f"{self.protocol}://{str(path).partition('://')[2] or path}"

    async def _info(self, path: str, **kwargs: Any) -> Any:
        with failing(self._uri(path)):
            return await super()._info(path, **kwargs)

    async def _ls(self, path: str, detail: bool = False, **kwargs: Any) -> Any:
        with failing(self._uri(path)):
            return await super()._ls(path, detail=detail, **kwargs)

    async def _find(self, path: str, maxdepth: int | None = None, withdirs: bool = False, **kwargs: Any) -> Any:
        """All files below in one listing, a thousand a request: folder by folder each would cost one."""
        if maxdepth is not None or withdirs:
            return await super()._find(path, maxdepth=maxdepth, withdirs=withdirs, **kwargs)
        bucket, prefix = self._split_path(path)
        files: dict[str, dict[str, Any]] = {}
        with failing(self._uri(path)):
            async for batch in self._construct_store(bucket).list(prefix or None):
                for each in batch:
                    name = f"{bucket}/{each['path']}"
                    files[name] = {"name": name, "size": each["size"], "type": "file", "e_tag": each["e_tag"],
                                   "last_modified": each["last_modified"]}  # fmt: skip
        names = sorted(files)
        return {name: files[name] for name in names} if kwargs.get("detail") else names

    async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> Any:
        with failing(self._uri(path)):
            return await super()._cat_file(path, start=start, end=end, **kwargs)

    async def _rm_file(self, path: str, **kwargs: Any) -> Any:
        with failing(self._uri(path)):
            return await super()._rm_file(path, **kwargs)

    async def _cp_file(self, path1: str, path2: str, **kwargs: Any) -> Any:
        with failing(self._uri(path1)):
            return await super()._cp_file(path1, path2, **kwargs)

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> BufferedFile:
        with failing(self._uri(path)):
            return super()._open(path, mode, **kwargs)
