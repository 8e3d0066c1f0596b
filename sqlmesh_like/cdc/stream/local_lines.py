"""The lines of a few text files, read without Spark. Owns which lines Spark would see."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import PurePosixPath

from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.in_process.values import NotProvenError
from sqlmesh_like.cdc.sources.event_log import LINE_COLUMNS
from sqlmesh_like.cdc.sources.file_log import FileLog, line_columns
from sqlmesh_like.cdc.sources.offset_range import Files, files_of
from sqlmesh_like.cdc.sources.route import declares
from sqlmesh_like.cdc.sources.table_folders import folder_names
from sqlmesh_like.cdc.stream.log_files import MOST_BYTES, LogFile, open_files

MOST_LINES = 20_000
"""More are read by Spark, as of `MOST_BYTES`."""
_PACKED = {".bz2", ".lz4", ".snappy", ".deflate", ".zst", ".zstd", ".lzo"}
_BYTE_ORDER = b"\xef\xbb\xbf"


def local_lines(log: FileLog, files: Sequence[tuple[int, str]]) -> tuple[RowFrame, Files]:
    """The lines of files (modification time in ms, URI) as `LINE_COLUMNS`, and the part of the log that they are.

    Raises NotProvenError where Spark would or may read other lines.
    """
    rows: list[tuple[object, ...]] = []
    total = 0
    for file in open_files(files):
        lines, size = _lines(file)
        total += size
        named = folder_names(log.glob, file.location, declares(log.tables))
        rows += [(text, file.location, file.modified, number, *named) for number, text in enumerate(lines, 1)]
        if total > MOST_BYTES or len(rows) > MOST_LINES:
            raise NotProvenError(f"more than {MOST_LINES:,} events, or {MOST_BYTES // 1024**2} MB of them")
        file.require_unchanged()
    frame = RowFrame(("value", "file", "modified", "line", "log_database", "log_table"), rows)
    columns = line_columns(log) | {"log_schema": "cast(null as string)"}
    lines_of = frame.selectExpr(*(f"{columns.get(name, name)} as {name}" for name in LINE_COLUMNS))
    return lines_of, files_of(list({(row[2], row[1]) for row in frame.rows}))


def _lines(file: LogFile) -> tuple[list[str], int]:
    suffix = PurePosixPath(file.name).suffix
    if suffix in _PACKED:
        raise NotProvenError(f"a file packed as {suffix}")
    try:
        with file.open() as opened:
            content = opened.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise NotProvenError(f"{file.path}: {error}") from None
    if len(content) > MOST_BYTES or b"\r" in content or content.startswith(_BYTE_ORDER):
        raise NotProvenError(f"{file.path} is large, or has carriage returns or a byte order mark")
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError:
        raise NotProvenError(f"{file.path} is not UTF-8") from None
    return (lines if lines[-1] else lines[:-1]), len(content)
