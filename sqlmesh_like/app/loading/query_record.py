"""The record of known queries in the user's cache, beside the project that was parsed. Owns the file alone.

`plan.queries.known_queries` says when what it holds may be used. Like the parsed project it is only read from a file
that nobody else can have written: whoever could write it could make a run believe that a table needs nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sqlmesh_like.app.loading.check_cache import program_version
from sqlmesh_like.app.loading.project_cache import write_beside
from sqlmesh_like.own_files import read_own
from sqlmesh_like.plan.queries.known_queries import KnownQueries
from sqlmesh_like.render.rendered import RenderedProject


def read_queries(entry: Path | None) -> KnownQueries | None:
    """Return what earlier calls know, None where they keep nothing. `entry`: the file of the parsed project."""
    if entry is None:
        return None
    program = f"{sys.version}\n{program_version()}"
    return KnownQueries.from_json(program, read_own(_path(entry)) or b"")


def store_queries(entry: Path | None, queries: KnownQueries | None, project: RenderedProject) -> None:
    """Store what a call has learned of a project's models since it stored it; where that fails, it only costs time.

    `project`: as the call has read it. What files say by now does not matter, as a key says what a query was made of.
    """
    if entry is not None and queries is not None and queries.is_changed:
        write_beside(_path(entry), queries.to_json([model.unique_id for model in project.models]))
        queries.is_changed = False


def _path(entry: Path) -> Path:
    return entry.with_suffix(".queries")
