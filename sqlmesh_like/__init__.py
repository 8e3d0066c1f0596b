"""sqlmesh_like: write a SELECT; its Hudi table stays exactly equal to it, at a cost proportional to the change."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlmesh_like.app.api import Project

__version__ = "0.1.0"
__all__ = ["Project", "__version__"]


def __getattr__(name: str) -> object:
    """Import `Project` at its first use, so that the command line and `__version__` need not wait for it."""
    if name == "Project":
        from sqlmesh_like.app.api import Project

        return Project
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
