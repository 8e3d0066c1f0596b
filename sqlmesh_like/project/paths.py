"""Paths below a project's root. Owns the check that what is read, written and removed stays there."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath, PureWindowsPath

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


def leads_out(text: str) -> bool:
    r"""Whether a path, as it is written, may leave the folder that it starts from.

    >>> [leads_out(path) for path in ("models/x", "../x", "/etc", "a/../../b", "C:\\x", "a\\..\\b")]
    [False, True, True, True, True, True]
    """
    both = (PurePosixPath(text), PureWindowsPath(text))
    return any(path.is_absolute() or path.anchor or ".." in path.parts for path in both) or "\0" in text


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


def refuse_links_out(base: Path, paths: tuple[Path, ...], root: Path) -> None:
    """Raise ProjectError at the first of these files that is a link to something outside of `base`."""
    for path in paths:
        if os.path.islink(path) and not path.resolve().is_relative_to(base.resolve()):  # noqa: PTH114 (half the time)
            shown = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
            hint = "put the file itself there: a project and a package read what is in them"
            raise ProjectError("this is a link that leaves the project", location=Location(shown), hint=hint)


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
