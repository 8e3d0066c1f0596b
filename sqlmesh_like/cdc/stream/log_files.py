"""The files of a log on this machine or in a bucket of S3, without Spark. Owns which of them Spark lists, and how it
names them.

In a bucket each look is a request: a listing of the part of the glob before its first wildcard, a thousand files a
request, and one for each file of a batch. Files may arrive before the last one in the order of their names, so that all
are listed, as by Spark. Sources: `FileStreamSource` and `InMemoryFileIndex` of Spark 3.5, Hadoop's `S3AFileSystem`.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import IO, cast
from urllib.parse import unquote, urlsplit

from sqlmesh_like.cdc.in_process.values import NotProvenError
from sqlmesh_like.cdc.sources.source_check import fixed_part
from sqlmesh_like.errors import SmlError
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.store_client import client_of, failing, key_of
from sqlmesh_like.plan.side_by_side import side_by_side

MOST_BYTES = 32 * 1024**2
"""Of the files of a batch. More is read by Spark: its start is then worth its while."""
_BUCKET = "s3a://"
_GLOB = re.compile(r"[^\[\]{}?\\]*")
_CERTAIN_PATH = re.compile(r"/[A-Za-z0-9/._=+@,-]+")
"""Paths whose characters are the same in a URI."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class LogFile:
    """A file of a batch. `location`: as Spark writes it in `_metadata.file_path`; `modified`: in ms since 1970.

    `content`: of one in a bucket, where it is read once.
    """

    location: str
    modified: int
    content: bytes | None = None

    @property
    def path(self) -> str:
        """Its path on this machine; of one in a bucket, its URI."""
        return self.location.removeprefix("file:")

    @property
    def name(self) -> str:
        return self.location.rpartition("/")[2]

    @property
    def size(self) -> int:
        return Path(self.path).stat().st_size if self.content is None else len(self.content)

    def open(self) -> IO[bytes]:
        """Its bytes, unpacked if it ends in `.gz`."""
        if self.name.endswith(".gz"):
            return cast(IO[bytes], gzip.open(self.path if self.content is None else BytesIO(self.content), "rb"))
        return Path(self.path).open("rb") if self.content is None else BytesIO(self.content)

    def require_unchanged(self) -> None:
        """Raise NotProvenError where a file was written since it was listed."""
        if self.content is None and Path(self.path).stat().st_mtime_ns // 10**6 != self.modified:
            raise _written_again(self.path)


def listed_files(glob: str) -> list[tuple[int, str]]:
    """The files of a log's glob that Spark lists: modification time in ms, and URI in Spark's log of files.

    Raises NotProvenError where they are not certain.
    """
    is_certain = _GLOB.fullmatch(folder(glob).path) and "**" not in glob
    if not is_certain or not (folder(glob).is_local or glob.startswith(_BUCKET)):
        raise NotProvenError(f"only Spark lists the files of {glob}")
    return _files_in_bucket(glob) if glob.startswith(_BUCKET) else _files_on_disk(glob)


def open_files(files: Sequence[tuple[int, str]]) -> list[LogFile]:
    """The files of a batch. Raises NotProvenError where one is gone or was written again, or they are large."""
    if any(uri.startswith(_BUCKET) for _, uri in files):
        budget = _Budget()
        return side_by_side(lambda file: _fetched(*file, budget.take), files)
    opened = [LogFile(f"file:{unquote(urlsplit(uri).path)}", modified) for modified, uri in files]
    if gone := [file.path for file in opened if not Path(file.path).exists()]:
        raise NotProvenError(f"{gone[0]} is gone")
    return opened


def _files_on_disk(glob: str) -> list[tuple[int, str]]:
    place = folder(glob)
    paths = [Path(path) for path in place.fs.glob(place.path)]
    if any(path.is_dir() or (path.name.startswith("_") and "=" in path.name) for path in paths):
        raise _has_folders(glob)
    listed = [path for path in paths if _is_shown(path.name)]
    return [(path.stat().st_mtime_ns // 10**6, f"file://{_certain(str(path))}") for path in listed]


def _files_in_bucket(glob: str) -> list[tuple[int, str]]:
    """Those of objects: what has a name that continues one of the glob is in a folder."""
    base, bucket = fixed_part(glob), glob.removeprefix(_BUCKET).partition("/")[0]
    if not key_of(glob):
        raise NotProvenError(f"only Spark lists the files of {glob}")
    wanted = re.compile(re.escape(key_of(glob)).replace(r"\*", "[^/]*") + "(?P<below>/.*)?", re.DOTALL)
    found, empty = list[tuple[int, str]](), list[str]()
    try:
        with failing(base):
            for page in client_of(glob).list(key_of(base) or None):
                for each in page:
                    key = str(each["path"])
                    match, name = wanted.fullmatch(key), key.rpartition("/")[2]
                    if match is None:
                        continue
                    if match["below"] is not None or (name.startswith("_") and "=" in name):
                        raise _has_folders(glob)
                    if not each["size"]:
                        empty.append(key)
                    if _is_shown(name):
                        found.append((_modified(each["last_modified"]), f"{_BUCKET}{bucket}{_certain(f'/{key}')}"))
            side_by_side(lambda key: client_of(glob).head(key), empty)
    except FileNotFoundError:  # an object that stands for a folder is listed without the end of its name
        raise _has_folders(glob) from None
    except SmlError as error:
        raise NotProvenError(f"{glob} cannot be listed without it: {error.message}") from error
    return found


class _Budget:
    """Bytes of the files of a batch that are fetched side by side."""

    def __init__(self) -> None:
        self._left, self._lock = MOST_BYTES, Lock()

    def take(self, size: int) -> None:
        with self._lock:
            self._left -= size
            if self._left < 0:
                raise NotProvenError(f"more than {MOST_BYTES // 1024**2} MB of events")


def _fetched(modified: int, uri: str, take: Callable[[int], None]) -> LogFile:
    if not uri.startswith(_BUCKET):
        raise NotProvenError("files of several stores")
    _certain("/" + key_of(uri))
    try:
        with failing(uri):
            answer = client_of(uri).get(key_of(uri))
            if _modified(answer.meta["last_modified"]) != modified:
                raise _written_again(uri)
            take(answer.meta["size"])
            return LogFile(uri, modified, bytes(answer.bytes()))
    except FileNotFoundError:
        raise NotProvenError(f"{uri} is gone") from None
    except SmlError as error:
        raise NotProvenError(f"{uri} cannot be read without it: {error.message}") from error


def _modified(at: datetime) -> int:
    """In whole seconds: Spark asks for each file by itself, and an answer has no parts of a second."""
    return (at - _EPOCH) // timedelta(seconds=1) * 1000


def _is_shown(name: str) -> bool:
    return not name.startswith(("_", ".")) and not name.endswith("._COPYING_")


def _certain(path: str) -> str:
    if not _CERTAIN_PATH.fullmatch(path) or ".." in path.split("/"):
        raise NotProvenError(f"the path {path}, which Spark may spell otherwise")
    return path


def _has_folders(glob: str) -> NotProvenError:
    return NotProvenError(f"{glob} has folders, of which Spark lists some")


def _written_again(path: str) -> NotProvenError:
    return NotProvenError(f"{path} was written again")
