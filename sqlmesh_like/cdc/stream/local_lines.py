"""The lines of a few text files of this machine, read without Spark. Owns which files and lines Spark would see."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.in_process.values import NotProvenError
from sqlmesh_like.cdc.sources.event_log import LINE_COLUMNS
from sqlmesh_like.cdc.sources.file_log import FileLog, line_columns
from sqlmesh_like.cdc.sources.offset_range import Files, files_of
from sqlmesh_like.cdc.sources.route import declares
from sqlmesh_like.cdc.sources.table_folders import folder_names
from sqlmesh_like.hudi.storage import folder

MOST_BYTES = 32 * 1024**2
MOST_LINES = 20_000
"""More is read by Spark: its start is then worth its while."""
_PACKED = {".bz2", ".lz4", ".snappy", ".deflate", ".zst", ".zstd", ".lzo"}
_GLOB = re.compile(r"[^\[\]{}?\\]*")
_BYTE_ORDER = b"\xef\xbb\xbf"


def listed_files(glob: str) -> list[Path]:
    """The files of a log's glob that Spark lists. Raises NotProvenError where that is not certain."""
    place = folder(glob)
    if not place.is_local or not _GLOB.fullmatch(place.path) or "**" in place.path:
        raise NotProvenError(f"only Spark lists the files of {glob}")
    paths = [Path(path) for path in place.fs.glob(place.path)]
    if any(path.is_dir() or (path.name.startswith("_") and "=" in path.name) for path in paths):
        raise NotProvenError(f"{glob} has folders, of which Spark lists some")
    return [path for path in paths if not path.name.startswith(("_", ".")) and not path.name.endswith("._COPYING_")]


def local_lines(log: FileLog, files: Sequence[tuple[int, str]]) -> tuple[RowFrame, Files]:
    """The lines of files (modification time in ms, URI) as `LINE_COLUMNS`, and the part of the log that they are.

    Raises NotProvenError where Spark would or may read other lines.
    """
    rows: list[tuple[object, ...]] = []
    total = 0
    for modified, uri in files:
        path = local_path(uri)
        lines, size = _lines(path)
        total += size
        file = file_uri(path)
        named = folder_names(log.glob, file, declares(log.tables))
        rows += [(text, file, modified, number, *named) for number, text in enumerate(lines, 1)]
        if total > MOST_BYTES or len(rows) > MOST_LINES:
            raise NotProvenError(f"more than {MOST_LINES:,} events, or {MOST_BYTES // 1024**2} MB of them")
        require_unchanged(path, modified)
    frame = RowFrame(("value", "file", "modified", "line", "log_database", "log_table"), rows)
    columns = line_columns(log) | {"log_schema": "cast(null as string)"}
    lines_of = frame.selectExpr(*(f"{columns.get(name, name)} as {name}" for name in LINE_COLUMNS))
    return lines_of, files_of(list({(row[2], row[1]) for row in frame.rows}))


def local_path(uri: str) -> Path:
    """The file of a URI in Spark's log of files."""
    return Path(unquote(urlsplit(uri).path))


def file_uri(path: Path) -> str:
    """A file as Spark writes it in `_metadata.file_path`, unlike in its log of files."""
    return f"file:{path}"


def require_unchanged(path: Path, modified: int) -> None:
    """Raise NotProvenError where a file was written since it was listed, at `modified` (ms since 1970)."""
    if path.stat().st_mtime_ns // 10**6 != modified:
        raise NotProvenError(f"{path} was written again")


def _lines(path: Path) -> tuple[list[str], int]:
    if path.suffix in _PACKED:
        raise NotProvenError(f"a file packed as {path.suffix}")
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise NotProvenError(f"{path}: {error}") from None
    if len(content) > MOST_BYTES or b"\r" in content or content.startswith(_BYTE_ORDER):
        raise NotProvenError(f"{path} is large, or has carriage returns or a byte order mark")
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError:
        raise NotProvenError(f"{path} is not UTF-8") from None
    return (lines if lines[-1] else lines[:-1]), len(content)
