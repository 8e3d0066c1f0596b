"""Extraction of tarballs. Owns what is extracted: regular files and folders below one folder, within limits.

Every name is checked before anything is written; Python's own filters differ by version.
"""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path, PurePosixPath

from sqlmesh_like.project.paths import leads_out

MAX_FILES = 20_000
MAX_BYTES = 200_000_000
MAX_RATIO = 200
"""Most bytes of files for one byte of the archive; text is rarely compressed by more than a factor of 20."""


class ArchiveError(Exception):
    """Content that is not an archive, or an archive with entries that are not allowed."""


def extract(content: bytes, into: Path) -> None:
    """Write the files of a tarball below a new folder. Raises ArchiveError, and then has written nothing."""
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            members = _checked(archive, len(content))
            into.mkdir(parents=True)
            for member in members:
                _write(archive, member, into)
    except (tarfile.TarError, OSError, EOFError, ValueError, RecursionError) as error:
        shutil.rmtree(into, ignore_errors=True)
        raise ArchiveError(f"this is not a tarball: {error}") from None


def _checked(archive: tarfile.TarFile, size: int) -> list[tarfile.TarInfo]:
    members: list[tarfile.TarInfo] = []
    total = 0
    for member in archive:
        if member.type == tarfile.XGLTYPE:
            continue
        if not member.isreg() and not member.isdir():
            raise ArchiveError(f"{member.name!r} is neither a file nor a folder")
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
