"""A folder of links to a project, in which astronomer-cosmos runs a task. Owns the warning of tables made there.

Whoever made the folder removes it after the call, and with it all that was written below it.
"""

from __future__ import annotations

from pathlib import Path

from sqlmesh_like.project.nodes import Target
from sqlmesh_like.project.paths import linked_project


def linked_warehouse_warning(root: Path, target: Target) -> str | None:
    """The warning of a warehouse that would be made in a folder of links; None where it is elsewhere or there already.

    A warehouse that exists is itself one of the links.
    """
    warehouse = Path(target.warehouse)
    if target.type != "spark" or not warehouse.is_relative_to(root) or warehouse.exists():
        return None
    project = linked_project(root)
    if project is None:
        return None
    return (
        f"the warehouse {warehouse} is in a folder of links to {project}, and is lost with it:"
        " give `warehouse` in profiles.yml as an absolute path"
    )
