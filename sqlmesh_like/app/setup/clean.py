"""Removes files that commands wrote. Owns which folders may be removed: only those of outputs, inside the project."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from sqlmesh_like.artifacts.files import REPORT
from sqlmesh_like.artifacts.run_history import HISTORY
from sqlmesh_like.docs.server import SITE, STATIC
from sqlmesh_like.errors import Location, MachineError, ProjectError
from sqlmesh_like.project.nodes import ParsedProject
from sqlmesh_like.project.paths import folder_inside
from sqlmesh_like.project.settings import DBT_FILE
from sqlmesh_like.remedies import remedy


def clean_targets(project: ParsedProject) -> tuple[str, ...]:
    """Remove the folders of clean-targets and return the names of those that existed.

    All are checked before the first is removed: where one raises ProjectError, nothing is removed. Raises MachineError
    where one cannot be removed.
    """
    folders = {name: _find_clean_target(project, name) for name in project.clean_targets}
    removed: list[str] = []
    for name, folder in folders.items():
        if folder.is_dir():
            try:
                shutil.rmtree(folder)
            except OSError as error:
                hint = remedy(error, "sml clean") or "check its permissions"
                raise MachineError(f"{folder} cannot be removed: {error.strerror}", hint=hint) from error
            removed.append(name)
    return tuple(removed)


def _find_clean_target(project: ParsedProject, name: str) -> Path:
    """Return the folder of one clean target. Raises ProjectError where it is not a folder of outputs."""
    place = Location(project.settings_file)
    folder = folder_inside(project.root, name, "clean-targets", place)
    if kept := _content_to_keep(folder, project.root) or _foreign(folder, project):
        message = f"clean-targets: {name!r} holds {kept}"
        raise ProjectError(message, location=place, hint="name folders that commands write, such as target")
    named = [(model.unique_id, model.path) for model in project.models]
    named += [(seed.unique_id, seed.path) for seed in project.seeds]
    named += [(test.unique_id, test.path) for test in project.tests]
    named += [(t.unique_id, t.declared_at.path) for source in project.sources for t in source.tables]
    sources = [path for unique_id, path in named if unique_id.package == project.name]
    sources += [macro.path for macro in project.macros if macro.package is None]
    holds = [path for path in sources if (project.root / path).is_relative_to(folder)]
    if holds:
        message = f"clean-targets: {name!r} holds source files of the project ({holds[0]} …)"
        raise ProjectError(message, location=place, hint="name folders that commands write, such as target")
    return folder


_VERSIONS = (".git", ".hg", ".svn", ".bzr", "_darcs", ".jj")


def _content_to_keep(folder: Path, root: Path) -> str | None:
    """Name the content for which a folder must not be removed: a repository or tables. None: there is none."""
    if any(part in _VERSIONS for part in folder.relative_to(root).parts):
        return "the history of a repository"
    for path, below, names in os.walk(folder):
        entries = {*below, *names}
        if entries.intersection(_VERSIONS):
            return "the history of a repository"
        if ".hoodie" in entries or ("_sml" in entries and Path(path) == folder):
            return "tables"
    return None


_OUTPUTS = ("target", "logs", "dbt_packages", "dbt_modules")
"""Names that this tool and dbt give to folders of outputs: whatever is in them may be removed."""
_ARTIFACTS = {
    "manifest.json", "run_results.json", "sources.json", "catalog.json", "semantic_manifest.json", "checked.json",
    HISTORY, REPORT, SITE, STATIC, "compiled", "logs",
}  # fmt: skip
"""What commands write into the target folder."""


def _foreign(folder: Path, project: ParsedProject) -> str | None:
    """Name content that no command wrote. None: there is none, or the folder has a name that only outputs have.

    The settings of a project may come from someone else: a clean target `.github`, `data` or `.venv` is not believed.
    """
    path = folder.relative_to(project.root)
    if (len(path.parts) == 1 and path.name in _OUTPUTS) or not folder.is_dir():
        return None
    is_packages = path == Path(project.packages_path)
    foreign = [
        entry.name
        for entry in folder.iterdir()
        if not ((entry / DBT_FILE).is_file() if is_packages else entry.name in _ARTIFACTS)
    ]
    return f"{min(foreign)}, which no command wrote" if foreign else None
