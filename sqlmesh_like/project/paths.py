"""Paths below a project's root. Owns the check that what is read, written and removed stays there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath, PureWindowsPath
from urllib.parse import urlsplit

from sqlmesh_like.errors import Location, ProjectError

PACKAGE_FOLDERS = ("dbt_packages", "dbt_modules")
"""Folders of packages, by dbt's names."""


def within_package(path: str, package: str) -> str:
    """The path of a package's file relative to the package, as in dbt; any other path unchanged.

    >>> within_package("dbt_packages/kit/models/m.sql", "kit")
    'models/m.sql'
    """
    head, _, rest = path.partition(f"/{package}/")
    return rest if rest and head in PACKAGE_FOLDERS else path


_LONGEST_NAME, _LONGEST_PATH = 255, 3_000
"""Bytes of a name, and characters of a path below a project's."""


def leads_out(text: str) -> bool:
    r"""Whether a path, as it is written, may leave the folder that it starts from, or is one that no system has.

    >>> [leads_out(path) for path in ("models/x", "../x", "/etc", "a/../../b", "C:\\x", "a\\..\\b")]
    [False, True, True, True, True, True]
    """
    both = (PurePosixPath(text), PureWindowsPath(text))
    has_long_name = any(len(part.encode(errors="surrogatepass")) > _LONGEST_NAME for part in both[0].parts)
    is_none = "\0" in text or has_long_name or len(text) > _LONGEST_PATH or not _is_encodable(text)
    return is_none or any(path.is_absolute() or path.anchor or ".." in path.parts for path in both)


def is_address(text: str) -> bool:
    """Whether Python can take a URL, or a path, apart.

    >>> is_address("https://host:80/a"), is_address("../a"), is_address("http://[::1"), is_address("s3://a:b/c")
    (True, True, False, False)
    """
    try:
        port = urlsplit(text).port
    except ValueError:
        return False
    return port is None or port > 0


def _is_encodable(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def folder_inside(root: Path, text: str, what: str, place: Location) -> Path:
    """A folder strictly below the root that is not reached through a link. Raises ProjectError otherwise."""
    if leads_out(text) or not PurePosixPath(text).parts:
        hint = "name a folder below the project's own, such as target"
        raise ProjectError(f"{what}: {text!r} is not a folder inside the project", location=place, hint=hint)
    path = root
    for part in PurePosixPath(text).parts:
        path = path / part
        if path.is_symlink():
            hint = "what is written and removed there would be elsewhere; name a folder that is none"
            raise ProjectError(f"{what}: {text!r} goes through a link ({path.name})", location=place, hint=hint)
    return path


def folders_below(base: Path, root: Path, folders: Iterable[str]) -> tuple[Path, ...]:
    """The folders, relative to the root, and those between them and `base`."""
    above = base.parts  # `is_relative_to` makes a path each time: a tenth of the time of a small project
    paths = (path for folder in folders for path in (root / folder, *(root / folder).parents))
    return tuple(path for path in paths if len(path.parts) > len(above) and path.parts[: len(above)] == above)


def refuse_ways_out(path: Path, root: Path) -> None:
    """Raise ProjectError where a file below the root is reached by a link that leaves it; see `refuse_links_out`.

    A package may be a link: what is below must not leave the package.
    """
    text, base, way = str(path), str(root), len(str(path))
    links: list[Path] = []
    while way > len(base) and text.startswith(base + os.sep):
        if os.path.islink(text[:way]):  # noqa: PTH114 (for each file)
            links.append(Path(text[:way]))
        way = text.rfind(os.sep, 0, way)
    within = root
    for link in reversed(links):
        if link.parent != root and (link / "dbt_project.yml").is_file():
            within = link
        else:
            refuse_links_out(within, (link,), root)


def output_path(folder: Path, name: str) -> Path:
    """The path of a file below a folder of outputs. Raises ProjectError where a folder between them is a link."""
    path = folder
    for part in PurePosixPath(name).parts:
        path = path / part
        if path.is_symlink():
            message = f"{path} is a link: what is written there would be elsewhere"
            raise ProjectError(message, hint="remove the link: commands make this folder themselves")
    return path


def refuse_links_out(base: Path, paths: tuple[Path, ...], root: Path) -> None:
    """Raise ProjectError at the first of these files and folders that is a link out of `base`, or to nothing."""
    for path in paths:
        if not os.path.islink(path):  # noqa: PTH114 (half the time)
            continue
        shown = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
        inside = [folder for folder in (base.resolve(), linked_project(root)) if folder is not None]
        if not any(path.resolve().is_relative_to(folder) for folder in inside):
            hint = "put the file or folder itself there: a project and a package read what is in them"
            raise ProjectError("this is a link that leaves the project", location=Location(shown), hint=hint)
        if not path.exists():
            message = f"this is a link to {path.readlink()}, which does not exist"
            raise ProjectError(message, location=Location(shown), hint="put the file itself there, or remove the link")


def linked_project(root: Path) -> Path | None:
    """The project that a folder of nothing but links stands for, as astronomer-cosmos makes one for each task.

    Whatever is not an output must be a link to the same name there, or the folder is a project with links of its own.
    """
    entries = [path for path in root.iterdir() if path.name not in _BESIDE_LINKS and not path.name.startswith(".")]
    homes = {path.resolve().parent if path.is_symlink() else root for path in entries}
    has_same_names = all(path.resolve().name == path.name for path in entries)
    home = homes.pop() if len(homes) == 1 else root
    return home if home != root and has_same_names else None


_BESIDE_LINKS = (*PACKAGE_FOLDERS, "target", "logs", "profiles.yml", "package-lock.yml", "warehouse")


def links_out(folder: Path, unseen: str | None = None) -> str | None:
    """The first link below a folder that leads out of it; None: there is none. `unseen`: name of folders to skip."""
    base = folder.resolve()
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != unseen]
        for name in (*folders, *names):
            link = Path(path) / name
            if link.is_symlink() and not link.resolve().is_relative_to(base):
                return link.relative_to(folder).as_posix()
    return None
