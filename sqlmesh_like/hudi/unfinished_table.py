"""A table whose creation was interrupted. Owns recognizing it and removing it for the next writer.

Hudi creates `.hoodie`, then `hoodie.properties`, then the first commit. A process that dies in between leaves a folder
which Hudi neither completes nor replaces. Files that a commit may refer to are never removed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.storage import Folder, folder

_REQUIRED = ("hoodie.table.name", "hoodie.table.type", "hoodie.table.version", "hoodie.table.checksum")
"""Hudi 1.2.0 does not open tables without these."""
_COMMITTED = re.compile(r"\d{14,17}(_\d{14,17})?\.(commit|deltacommit|replacecommit|savepoint|restore)")
_WITHOUT_COMMIT = re.compile(r"[^/]+_\d+-\d+-\d+_\d{14,17}\.parquet|\.[^/]+\.log\.\d+_.+|\.hoodie_partition_metadata.*")
"""Names of the files that Hudi writes for a commit: base files, log files and partition metadata."""
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)")
"""How Java writes what is not plain in a properties file."""
_DATA_FILE = re.compile(r"[^/]+_\d+-\d+-\d+_(\d{14,17})\.parquet|\.[^/]+_(\d{14,17})\.log\.\d+_.+")
"""Base and log files, and the instant that wrote them."""


def properties_of(text: str) -> Mapping[str, str]:
    """`hoodie.properties` as a mapping, without a line that was cut off within its key.

    >>> properties_of("#x\\nhoodie.table.name=a\\nhoodie.timeline.path=a\\\\:b\\nhood")
    {'hoodie.table.name': 'a', 'hoodie.timeline.path': 'a:b'}
    >>> properties_of("hoodie.table.partition.fields=\\u5206\\u533a")
    {'hoodie.table.partition.fields': '分区'}
    """
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {key.strip(): _ESCAPE.sub(_character, value.strip()) for key, value in pairs}


def _character(escape: re.Match[str]) -> str:
    code = escape[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}.get(code, code)


def clear_unfinished(uri: str) -> bool:
    """Remove the remains of a table whose creation was interrupted. Returns whether there was one.

    Raises NodeError where the properties are broken but the table has commits or its folder has other files, which may
    be somebody's rows.
    """
    place = folder(uri)
    if not place.exists(".hoodie") or _is_whole(place):
        return False
    broken = f"{uri}/.hoodie/hoodie.properties is missing or cut short"
    below = place.files()
    if any(_is_of_commit(path) for path in below if path.startswith(".hoodie/")):
        hint = "take the file from a backup of the table, or remove the folder to have the table made again"
        raise NodeError(f"{broken}, and the table has commits", hint=hint)
    others = [path for path in below if not path.startswith(".hoodie/") and not _is_written_by_hudi(path)]
    if others:
        raise NodeError(
            f"{broken}, and {others[0]} is not a file of Hudi's", hint="remove the folder, or move the file"
        )
    place.fs.rm(place.path, recursive=True)
    return True


def rows_without_commit(uri: str) -> str | None:
    """A data file in a table that has no commit, not written by one under way; None where there is no such file.

    The table's timeline was lost: a first commit would make these rows visible again, beside its own.
    """
    place = folder(uri)
    timeline = folder(f"{uri}/.hoodie/timeline").names()
    if any(_is_of_commit(name) for name in timeline) or not place.exists(".hoodie") or not _is_whole(place):
        return None
    below = place.files()
    if any(_is_of_commit(path) for path in below if path.startswith(".hoodie/")):
        return None
    pending = {name.split(".")[0] for name in timeline}
    files = ((path, _DATA_FILE.fullmatch(path.rpartition("/")[2])) for path in sorted(below))
    return next((path for path, match in files if match and (match[1] or match[2]) not in pending), None)


def clear_without_commit(uri: str) -> None:
    """Remove a table that has no commit, with its files. Raises NodeError where it has files that are not Hudi's."""
    place = folder(uri)
    others = [path for path in place.files() if not path.startswith(".hoodie/") and not _is_written_by_hudi(path)]
    if others:
        raise NodeError(f"{uri} has no commit, and {others[0]} is not a file of Hudi's", hint="move the file")
    place.fs.rm(place.path, recursive=True)


def _is_whole(place: Folder) -> bool:
    # Hudi itself uses the backup where the file is broken.
    return any(_has_all(place, f".hoodie/{name}") for name in ("hoodie.properties", "hoodie.properties.backup"))


def _has_all(place: Folder, path: str) -> bool:
    if not place.exists(path):
        return False
    text = place.read(path).decode(errors="replace")
    return text.endswith("\n") and all(properties_of(text).get(key) for key in _REQUIRED)


def _is_of_commit(path: str) -> bool:
    name = path.rpartition("/")[2]
    # A table with archived commits or a metadata table has had commits.
    return bool(_COMMITTED.fullmatch(name)) or "/archived/" in path or "/history/" in path or "/metadata/" in path


def _is_written_by_hudi(path: str) -> bool:
    name = path.rpartition("/")[2]
    if name.startswith(".") and name.endswith(".crc"):  # the checksum that Hadoop writes beside a file on a local disk
        name = name[1:].removesuffix(".crc")
    return bool(_WITHOUT_COMMIT.fullmatch(name))
