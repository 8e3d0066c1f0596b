"""The common part of the commands `run`, `seed`, `test`, `snapshot` and `build`: flags in, lines and exit code out."""

from __future__ import annotations

from collections.abc import Collection
from time import perf_counter

from sqlmesh_like.app.invocation import ALL_TYPES, ResourceTypes
from sqlmesh_like.app.lakes.lake import clock
from sqlmesh_like.app.operations.run_nodes import RunRequest, run_nodes
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags
from sqlmesh_like.cli.run_log import RunLog


def run_selected(
    flags: Flags,
    command: str,
    now: str | None = None,
    only: Collection[str] | None = None,
    *,
    store_failures: bool = False,
    units_on: str = "duckdb",
    types: ResourceTypes = ALL_TYPES,
    slices: int | None = None,
    backfill: str | None = None,
) -> int:
    """Run the nodes that a command selects, or `only` these, and return the exit code, 0 or 1."""
    started, request = perf_counter(), RunRequest(
        command, now, only, store_failures, units_on, types, slices=slices, backfill=backfill
    )  # fmt: skip
    loaded, output = open_project(flags, now=clock(now), broken=True), make_output(flags, bar=True)
    try:
        result = run_nodes(loaded, request, RunLog(output, loaded.project.root), started)
    finally:
        output.close()
    return 0 if result.ok else 1
