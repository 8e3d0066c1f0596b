"""A folder of links to a project, in which astronomer-cosmos runs a task. Owns the warning of tables made there.

Whoever made the folder removes it after the call, and with it all that was written below it.
"""

from __future__ import annotations

from pathlib import Path

from sqlmesh_like.project.nodes import Target
from sqlmesh_like.project.settings import DBT_FILE

_SETTINGS = (DBT_FILE, "pyproject.toml")


def linked_warehouse_warning(root: Path, target: Target) -> str | None:
    """The warning of a warehouse that would be made in a folder of links; None where it is elsewhere or there already.

    A warehouse that exists is itself one of the links.
    """
    warehouse = Path(target.warehouse)
    if target.type != "spark" or not warehouse.is_relative_to(root) or warehouse.exists():
        return None
    projects = [(root / name).resolve().parent for name in _SETTINGS if (root / name).is_symlink()]
    if not projects or projects[0] == root.resolve():
        return None
    return (
        f"the warehouse {warehouse} is in a folder of links to {projects[0]}, and is lost with it:"
        " give `warehouse` in profiles.yml as an absolute path"
    )
