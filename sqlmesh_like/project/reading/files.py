"""Reads the files of a project. Owns decoding and how a path is named in messages; not what files mean.

No file is read through a link that leaves the project: a pull request could show what else the machine holds. A file
below the project is opened here and nowhere else (`tools/file_access.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sqlmesh_like.errors import Location, ProjectError
from sqlmesh_like.limits.record import note_file
from sqlmesh_like.project.paths import folders_below, refuse_links_out, refuse_ways_out
from sqlmesh_like.project.reading.file_dependencies import list_files, record_content, record_listing
from sqlmesh_like.regular_files import MAX_DATA, MAX_TEXT, read_followed


def read_text(path: Path, root: Path) -> str:
    """The file's text with `\\n` line ends and without a byte order mark. Raises ProjectError if it cannot be read."""
    content = read_bytes(path, root, MAX_DATA if path.suffix.lower() == ".csv" else MAX_TEXT)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"not UTF-8 text: byte 0x{error.object[error.start]:02x} at offset {error.start}"
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ProjectError(
            message, location=Location(relative(path, root), line), hint="save the file as UTF-8"
        ) from error
    record_content(path, content)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def read_bytes(path: Path, root: Path, limit: int = MAX_DATA) -> bytes:
    """The file's content. Raises ProjectError if it cannot be read, is not a regular file, or is not of this project.

    A file outside of the root, such as a profile, is one that the user has named: links to it are followed.
    """
    refuse_ways_out(path, root)
    try:
        content = read_followed(path, limit)
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        raise ProjectError(message, location=Location(relative(path, root))) from error
    note_file(relative(path, root), len(content))
    return content


def relative(path: Path, root: Path) -> str:
    """The path as messages name it: relative to the project if it is inside, with forward slashes."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def files_under(root: Path, folders: Iterable[str], suffixes: tuple[str, ...]) -> tuple[Path, ...]:
    """All files with these suffixes under the folders, hidden ones left out, sorted by path, each once."""
    folders = tuple(folders)
    # The folder that links in these folders must not leave: their project, which for a package is not the root.
    parts = Path(folders[0]).parts if folders else ()
    above = (root.joinpath(*parts[:depth]) for depth in range(2, len(parts)))
    base = next((folder for folder in above if (folder / "dbt_project.yml").is_file()), root)
    refuse_links_out(base, folders_below(base, root, folders), root)  # before they are listed: one may lead to /
    record_listing(root, folders, suffixes)
    paths = tuple(Path(path) for path in list_files(root, folders, suffixes))
    refuse_links_out(base, paths, root)
    return paths
