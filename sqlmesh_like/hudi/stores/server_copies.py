"""Files of a store copied by the store itself: no byte passes through this process. Owns how many at once."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from sqlmesh_like.errors import NodeError, RetryableError
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.store_client import bucket_of, client_of, failing, key_of
from sqlmesh_like.plan.side_by_side import side_by_side
from sqlmesh_like.secrets import scrub_text

_INSTANT = re.compile(r"\d{14,17}[._]")
MOST_BYTES = 5 * 1024**3
"""Of a file that S3 copies in one request."""


def require_copyable(uri: str, sizes: Mapping[str, int]) -> None:
    """Raises NodeError where one of these files, with their bytes, is larger than a store copies."""
    if large := [path for path, size in sizes.items() if size > MOST_BYTES]:
        raise NodeError(f"{scrub_text(uri)}/{large[0]} has more than 5 GB, which S3 does not copy in one request")


def file_sizes(uri: str) -> dict[str, int]:
    """Bytes of all files below a folder, by path relative to it.

    Without the objects that stand for folders, which Hadoop's client of S3 makes: they are listed as empty files, and
    there is none of that name. Instants may be empty files, and are told by theirs.
    """
    sizes, client, start = folder(uri).sizes(), client_of(uri), key_of(uri)

    def is_file(path: str) -> bool:
        try:
            with failing(uri):
                client.head(f"{start}/{path}")
        except FileNotFoundError:
            return False
        return True

    empty = [path for path, size in sizes.items() if size == 0 and not _INSTANT.match(path.rpartition("/")[2])]
    folders = {path for path, is_one in zip(empty, side_by_side(is_file, empty), strict=True) if not is_one}
    return {path: size for path, size in sizes.items() if path not in folders}


def copy_files(source: str, target: str, relative: Collection[str]) -> None:
    """Copy files between two folders of a bucket, over those that are there; the order is not defined.

    Raises RetryableError where one of them is gone.
    """
    assert bucket_of(source) == bucket_of(target), "a store copies within a bucket"
    client, start, end = client_of(source), key_of(source), key_of(target)

    def copy(path: str) -> None:
        with failing(target):
            client.copy(f"{start}/{path}", f"{end}/{path}")

    try:
        side_by_side(copy, [*relative])
    except FileNotFoundError as error:
        raise RetryableError(f"a file of {scrub_text(source)} is gone: its history was removed meanwhile") from error


def require_copies(target: str, sizes: Mapping[str, int]) -> None:
    """Raises RetryableError unless a folder has these files with their bytes: a store may report a copy too early."""
    copied = folder(target).sizes()
    if lacking := [path for path, size in sizes.items() if copied.get(path) != size]:
        raise RetryableError(f"{scrub_text(target)}/{lacking[0]} was not copied as a whole", hint="run the same again")
