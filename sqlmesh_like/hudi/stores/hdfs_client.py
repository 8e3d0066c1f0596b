"""HDFS behind the part of obstore's interface that is used here, without a JVM. Owns puts on a condition there.

HDFS has no conditional put, but renames that are atomic and refuse to replace a file. So a file that must not be there
yet is written beside its place and renamed to it. A file that must still have the content that was read is replaced by
whoever holds its *slot*, a folder beside it that only one writer can make, since it comes by a rename as well:

1. the new content is written as `.smlput_<token>/<token>`, and this folder renamed to `.smlput_next_<name>`, which
   fails while another writer holds it;
2. the holder compares the content of the file with what was read; where it differs, it gives the slot back;
3. `.smlput_next_<name>/<token>` is renamed over the file, which makes the slot an empty folder, and that is removed.

A slot whose holder was killed, or stands still, is broken after `_HELD` seconds by removing the file in it. Its holder
cannot go on then: what it would rename is gone, and nobody else's file has its token. The times that are compared are
both the NameNode's. Renames: `FSNamesystem.renameTo` of Hadoop 3.3, under the lock of its namespace.

A tag is the hash of the content: a file that was changed and changed back counts as unchanged, which it is.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from sqlmesh_like.errors import MachineError, NodeError

if TYPE_CHECKING:
    from hdfs_native import Client, FileReader, FileStatus

_PATIENCE = {
    "dfs.client.failover.max.attempts": "4",
    "dfs.client.failover.sleep.base.millis": "300",
    "dfs.client.failover.sleep.max.millis": "2000",
    "dfs.client.socket-timeout": "20000",
}
"""A NameNode that is down is given up after some seconds; the library's own patience is three minutes."""
_OWN = ".smlput_"
"""Begins the names of files and folders that are there for the time of a put."""
_HELD = 20.0
"""Seconds after which the slot of a file may be taken from its holder, who needs milliseconds."""
_WAIT = 0.05
_GIVEN_UP = 60.0
"""Seconds after which a slot that cannot be taken is an error: it is of a user whose files this one may not delete."""
_PIECE = 4 * 1024**2
Read = TypeVar("Read")


@dataclass(frozen=True)
class _Answer:
    """Content and facts of a file, as obstore's `GetResult`."""

    meta: Mapping[str, Any]
    _content: bytes

    def stream(self, *, min_chunk_size: int) -> Iterator[bytes]:
        """The content in pieces."""
        for start in range(0, len(self._content), min_chunk_size):
            yield self._content[start : start + min_chunk_size]

    def bytes(self) -> bytes:
        return self._content


class _Changed(Exception):
    """A slot was broken while its holder stood still."""


class HdfsClient:
    """Files of one HDFS by their paths without the slash in front.

    Raises FileNotFoundError, obstore's errors of conditions, and errors in words.
    """

    def __init__(self, authority: str, settings: Mapping[str, str]) -> None:
        self._url = f"hdfs://{authority}"
        self._settings = {**_PATIENCE, **settings}

    @cached_property
    def _hdfs(self) -> Client:
        from hdfs_native import Client

        if not self._url.removeprefix("hdfs://"):
            hint = "name it: hdfs://NAMESERVICE/… or hdfs://HOST:PORT/…"
            raise MachineError("hdfs:/// does not say which file system", hint=hint)
        with _failing(self._url):
            return Client(self._url, self._settings)

    def put(self, key: str, content: bytes | Path, *, mode: object = "overwrite") -> dict[str, str | None]:
        """Write a file: `overwrite`, `create`, or `{"e_tag": …}` of the content that it must have.

        A file of this machine is written in place: nobody knows its name before its commit is complete.
        """
        path = f"/{key}"
        if isinstance(content, Path):
            assert mode == "overwrite"
            self._write(path, content)
            return {"e_tag": None, "version": None}
        if mode == "overwrite":
            self._put_beside(path, content, overwrite=True)
        elif mode == "create":
            self._create(path, content)
        else:
            assert isinstance(mode, dict)
            self._replace(path, content, mode["e_tag"])
        return {"e_tag": _tag(content), "version": None}

    def get(self, key: str, *, options: Mapping[str, Any] | None = None) -> _Answer:
        """A file, or the `{"range": {"suffix": n}}` bytes at its end."""
        suffix = options["range"]["suffix"] if options else None
        facts = self.head(key)

        def read() -> _Answer:
            reader = self._hdfs.read(f"/{key}")
            size = len(reader)
            start = 0 if suffix is None else max(0, size - suffix)
            content = _range(reader, start, size)
            return _Answer({**facts, "size": size, "e_tag": None if start else _tag(content)}, content)

        return self._twice(key, read)

    def head(self, key: str) -> Mapping[str, Any]:
        with _failing(f"{self._url}/{key}"):
            status = self._hdfs.get_file_info(f"/{key}")
            if status.isdir:
                raise FileNotFoundError(f"/{key} is a folder")
            return _meta(key, status)

    def get_range(self, key: str, *, start: int, end: int) -> bytes:
        return self._twice(key, lambda: _range(self._hdfs.read(f"/{key}"), start, end))

    def is_folder(self, key: str) -> bool:
        with _failing(f"{self._url}/{key}"):
            try:
                return self._hdfs.get_file_info(f"/{key}").isdir
            except FileNotFoundError:
                return False

    def list(self, prefix: str | None = None) -> Iterator[Sequence[Mapping[str, Any]]]:
        """All files below a folder, in one batch."""
        with _failing(f"{self._url}/{prefix or ''}"):
            listed = self._list_files(prefix, recursive=True)
        yield [_meta(each.path.lstrip("/"), each) for each in listed if not each.isdir]

    def list_with_delimiter(self, prefix: str | None = None) -> Mapping[str, Any]:
        """The files and folders right below a folder."""
        with _failing(f"{self._url}/{prefix or ''}"):
            listed = self._list_files(prefix, recursive=False)
        return {
            "common_prefixes": [each.path.lstrip("/") for each in listed if each.isdir],
            "objects": [_meta(each.path.lstrip("/"), each) for each in listed if not each.isdir],
        }

    def delete(self, keys: str | Sequence[str]) -> None:
        """Delete files; one that is gone is none to delete."""
        with _failing(self._url):
            for key in [keys] if isinstance(keys, str) else keys:
                self._hdfs.delete(f"/{key}", False)

    def copy(self, source: str, target: str) -> None:
        """Copy a file over another one, through this process."""
        with _failing(f"{self._url}/{target}"):
            reader = self._hdfs.read(f"/{source}")
            with self._hdfs.create(f"/{target}", _options()) as file:
                for start in range(0, len(reader), _PIECE):
                    file.write(_range(reader, start, min(start + _PIECE, len(reader))))

    def rename(self, source: str, target: str) -> None:
        """Move a file over another one, or a folder to where none is, in one step."""
        with _failing(f"{self._url}/{target}"):
            is_folder = self._hdfs.get_file_info(f"/{source}").isdir
            self._hdfs.mkdirs(_parent(f"/{target}"), create_parent=True)
            self._hdfs.rename(f"/{source}", f"/{target}", not is_folder)

    def delete_folder(self, key: str) -> None:
        """Delete a folder, or a file, and all that is below it, if it is there."""
        with _failing(f"{self._url}/{key}"):
            self._hdfs.delete(f"/{key}", True)

    def _list_files(self, prefix: str | None, *, recursive: bool) -> Sequence[FileStatus]:
        """What is below a folder, less what is there for the time of a put."""
        return [each for each in self._all(prefix, recursive=recursive) if f"/{_OWN}" not in each.path]

    def _all(self, prefix: str | None, *, recursive: bool = False) -> Sequence[FileStatus]:
        try:
            return list(self._hdfs.list_status(f"/{prefix or ''}", recursive))
        except FileNotFoundError:
            return []

    def _twice(self, key: str, read: Callable[[], Read]) -> Read:
        """A read, tried again where it fails: the blocks of a file that was replaced meanwhile are gone."""
        with _failing(f"{self._url}/{key}"):
            try:
                return read()
            except FileNotFoundError:
                raise
            except (OSError, RuntimeError):
                return read()

    def _write(self, path: str, content: bytes | Path) -> None:
        with _failing(f"{self._url}{path}"), self._hdfs.create(path, _options()) as file:
            if isinstance(content, bytes):
                if content:
                    file.write(content)
                return
            with content.open("rb") as source:
                while piece := source.read(_PIECE):
                    file.write(piece)

    def _put_beside(self, path: str, content: bytes, *, overwrite: bool) -> None:
        """Write a file so that others see all of it or nothing. Raises FileExistsError."""
        beside = f"{_parent(path)}/{_OWN}{uuid4().hex}"
        self._write(beside, content)
        try:
            with _failing(f"{self._url}{path}"):
                self._hdfs.rename(beside, path, overwrite)
        except BaseException:
            with suppress(OSError, RuntimeError):
                self._hdfs.delete(beside, False)
            raise

    def _create(self, path: str, content: bytes) -> None:
        from obstore.exceptions import AlreadyExistsError

        with _failing(f"{self._url}{path}"):
            is_there = self._exists(path)
        try:
            if not is_there:
                self._put_beside(path, content, overwrite=False)
                return
        except FileExistsError:
            pass
        raise AlreadyExistsError(f"{path} exists")

    def _replace(self, path: str, content: bytes, tag: str) -> None:
        while True:
            with suppress(_Changed):
                self._replace_once(path, content, tag)
                return

    def _replace_once(self, path: str, content: bytes, tag: str) -> None:
        from obstore.exceptions import PreconditionError

        token, slot = uuid4().hex, f"{_parent(path)}/{_OWN}next_{path.rpartition('/')[2]}"
        self._require_tag(path, tag)
        made = f"{_parent(path)}/{_OWN}{token}"
        self._write(f"{made}/{token}", content)
        with _failing(f"{self._url}{path}"):
            try:
                written = self._hdfs.get_file_info(f"{made}/{token}").modification_time
                self._take_slot(made, slot, written, lambda: self._require_tag(path, tag))
                made = slot
                self._require_tag(path, tag)
                self._hdfs.rename(f"{slot}/{token}", path, True)
            except FileNotFoundError:
                if self._exists(path):
                    raise _Changed from None
                raise PreconditionError(f"{path} is gone") from None
            finally:
                with suppress(OSError, RuntimeError):
                    self._hdfs.delete(f"{made}/{token}", False)
                with suppress(OSError, RuntimeError):
                    self._hdfs.delete(made, False)

    def _take_slot(self, made: str, slot: str, written: int, still_wanted: Callable[[], None]) -> None:
        """Rename a folder to the slot, once no other writer holds it. `written`: when its file was, in milliseconds.

        Raises NodeError where it stays taken.
        """
        since = time.monotonic()
        while True:
            try:
                self._hdfs.rename(made, slot, False)
            except FileExistsError:
                held = self._all(slot.lstrip("/"))
                waited = time.monotonic() - since
                for each in held:
                    if written + waited * 1000 - each.modification_time > _HELD * 1000:
                        self._hdfs.delete(each.path, False)
                with suppress(RuntimeError):  # it is held
                    self._hdfs.delete(slot, False)
                still_wanted()
                if waited > _GIVEN_UP:
                    hint = "delete it if no call of sml is running, with the rights of its owner"
                    raise NodeError(f"{self._url}{slot} is held by another writer", hint=hint) from None
                time.sleep(_WAIT)
            else:
                return

    def _require_tag(self, path: str, tag: str) -> None:
        from obstore.exceptions import PreconditionError

        if self.get(path.lstrip("/")).meta["e_tag"] != tag:
            raise PreconditionError(f"{path} has changed")

    def _exists(self, path: str) -> bool:
        try:
            self._hdfs.get_file_info(path)
        except FileNotFoundError:
            return False
        return True


def _range(reader: FileReader, start: int, end: int) -> bytes:
    return bytes(reader.read_range(start, end - start)) if end > start else b""


def _options() -> Any:
    from hdfs_native import WriteOptions

    return WriteOptions(overwrite=True, create_parent=True)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _tag(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _meta(key: str, status: FileStatus) -> Mapping[str, Any]:
    changed = datetime.fromtimestamp(status.modification_time / 1000, UTC)
    return {"path": key, "size": status.length, "last_modified": changed, "e_tag": None, "version": None}


@contextmanager
def _failing(place: str) -> Iterator[None]:
    """Raise errors of the library in words; the library adds Java's stack to many."""
    try:
        yield
    except (FileNotFoundError, FileExistsError):
        raise
    except PermissionError as error:
        hint = "check who you are (HADOOP_USER_NAME, kinit) and the rights of the folder"
        raise MachineError(f"{place}: access is denied: {_first_line(error)}", hint=hint) from error
    except OSError as error:
        hint = "check the address and the network; the names of a nameservice are read from HADOOP_CONF_DIR"
        raise MachineError(f"{place}: HDFS does not answer: {_first_line(error)}", hint=hint) from error
    except RuntimeError as error:
        text = _first_line(error)
        if "AccessControlException" in text:
            hint = "check who you are (HADOOP_USER_NAME, kinit) and the rights of the folder"
            raise MachineError(f"{place}: access is denied: {text}", hint=hint) from error
        if "PathIsNotEmpty" in text:
            raise
        if "No NameNode" in text:
            hint = "set HADOOP_CONF_DIR to the folder with the cluster's hdfs-site.xml, or name HOST:PORT"
            raise MachineError(f"{place}: no NameNode of that name is known", hint=hint) from error
        if "SafeMode" in text:
            hint = "wait until the NameNode has left its safe mode"
            raise MachineError(f"{place}: the NameNode is in safe mode", hint=hint) from error
        raise NodeError(f"{place}: HDFS failed: {text}", hint="run the same command again") from error


def _first_line(error: Exception) -> str:
    """
    >>> _first_line(RuntimeError('RPCError("org.x.Y", "no\\\\n\\\\tat org.z")'))
    'RPCError("org.x.Y", "no'
    """
    return str(error).replace("\\n", "\n").strip().partition("\n")[0].strip()
