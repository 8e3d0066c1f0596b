"""Extraction of tarballs. Owns what is extracted: regular files and folders below one folder, within limits.

Every name is checked before anything is written; Python's own filters differ by version.
"""

from __future__ import annotations

import bz2
import io
import lzma
import shutil
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from sqlmesh_like.project.paths import leads_out

MAX_FILES = 20_000
MAX_BYTES = 200_000_000
MAX_HEADER = 100_000
MAX_RATIO = 200
"""Most bytes of files for one byte of the archive; text is rarely compressed by more than a factor of 20."""


class ArchiveError(Exception):
    """Content that is not an archive, or an archive with entries that are not allowed."""


def extract(content: bytes, into: Path) -> None:
    """Write the files of a tarball below a new folder. Raises ArchiveError, and then has written nothing."""
    try:
        whole = _decompress(content)
        _require_short_headers(whole)
        with tarfile.open(fileobj=io.BytesIO(whole), mode="r:") as archive:
            members = _check_members(archive, len(content))
            into.mkdir(parents=True)
            for member in members:
                _write(archive, member, into)
    except (tarfile.TarError, lzma.LZMAError, zlib.error, OSError, EOFError, ValueError, RecursionError) as error:
        shutil.rmtree(into, ignore_errors=True)
        raise ArchiveError(f"this is not a tarball: {error}") from None
    except ArchiveError:
        shutil.rmtree(into, ignore_errors=True)
        raise


def _decompress(content: bytes) -> bytes:
    """Return the tarball as it is without compression. Raises ArchiveError where it is larger than a package."""
    start = next((start for sign, start in _COMPRESSED.items() if content.startswith(sign)), None)
    if start is None:
        return content
    parts: list[bytes] = []
    left = min(MAX_BYTES, MAX_RATIO * max(len(content), 4096)) + 1_000_000
    while content:
        stream = start()
        while not stream.eof and left > 0:
            part = stream.decompress(content, min(left, 1_000_000))
            content = getattr(stream, "unconsumed_tail", b"")
            parts.append(part)
            left -= len(part)
            if not part and not content:
                break
        if left <= 0:
            raise ArchiveError("it holds more, or larger files, than a package does")
        if not stream.eof:
            raise EOFError("it ends too early")
        content = stream.unused_data.lstrip(b"\0") if stream.eof else b""
    return b"".join(parts)


def _require_short_headers(tarball: bytes) -> None:
    """Raise ArchiveError for long names and attributes of more than `MAX_HEADER` bytes: Python reads them at once."""
    at = 0
    while (block := tarball[at : at + tarfile.BLOCKSIZE]).strip(b"\0"):
        member = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        is_header = member.type in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, b"L", b"K")
        if member.size < 0 or (is_header and member.size > MAX_HEADER):
            raise ArchiveError(f"a header of it has {member.size:,} bytes")
        has_content = is_header or member.isreg()
        at += tarfile.BLOCKSIZE + (-(-member.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE if has_content else 0)


_COMPRESSED: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(31),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ": lambda: lzma.LZMADecompressor(memlimit=MAX_BYTES),
    b"\x5d\x00\x00": lambda: lzma.LZMADecompressor(memlimit=MAX_BYTES),
}
"""How compressed files begin, and what decompresses them within limits."""


def _check_members(archive: tarfile.TarFile, size: int) -> list[tarfile.TarInfo]:
    members: list[tarfile.TarInfo] = []
    total = 0
    for member in archive:
        if member.type == tarfile.XGLTYPE:
            continue
        if not member.isreg() and not member.isdir():
            raise ArchiveError(f"{member.name!r} is neither a file nor a folder")
        if member.size < 0:  # of a pax header: what follows would be what came before, again and again
            raise ArchiveError(f"{member.name!r} has a negative size")
        if leads_out(member.name):
            raise ArchiveError(f"{member.name!r} leads out of the archive")
        total += member.size
        members.append(member)
        if len(members) > MAX_FILES or total > MAX_BYTES or total > MAX_RATIO * max(size, 4096):
            raise ArchiveError("it holds more, or larger files, than a package does")
    return members


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, into: Path) -> None:
    path = into.joinpath(*PurePosixPath(member.name).parts)
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    source = archive.extractfile(member)
    if source is None:
        raise ArchiveError(f"{member.name!r} cannot be read")
    with source, path.open("wb") as file:  # owner and mode of the archive are not applied
        shutil.copyfileobj(source, file)
