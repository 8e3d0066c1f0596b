"""`sml maintain`: table services. Owns which tables they are for; retention says what may go, the engine does it."""

from __future__ import annotations

from time import perf_counter

import click

from sqlmesh_like.app.lakes.lake import Lake, hudi_options, lake_lock, open_lake
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.source_discovery import discovered_tables, with_discovered_tables
from sqlmesh_like.cli.context import load, make_output
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.output import DisplayStatus, LogStep, Output
from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.change_log import remove_logs
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.run.retention import due


@click.command("maintain")
@click.option("--rebucket", is_flag=True, help="Rewrite tables whose files are too many or too large.")
@shared_options
def command(flags: Flags, rebucket: bool) -> int:
    """Compact merge-on-read tables and remove history that nothing needs.

    Kept is what a model of the project has not read yet (of the last 200 commits), and ten commits in any case. Tables
    that `sml` writes have a fixed number of files in each partition, so there is nothing to cluster. With `--rebucket`
    a table whose partitions would better be in another number of files is rewritten in one commit, every row as it is.
    """
    loaded = with_discovered_tables(load(flags))
    selected = {node.unique_id for node in loaded.selected("model", "seed", "source")} | discovered_tables(loaded)
    lake = open_lake(loaded)
    ours = [place for place in lake.catalog.places.values() if place.unique_id in selected & _written(loaded)]
    there = [place for place in ours if lake.catalog.state(place.unique_id).kind in ("cow", "mor")]
    output = make_output(flags)
    with lake_lock(loaded, "run"), lake_lock(loaded, "ingest"):
        try:
            statuses = [
                _maintain(lake, number, len(there), place, output, rebucket) for number, place in enumerate(there, 1)
            ]
        finally:
            lake.engine.stop()
    output.end(statuses)
    return 0 if "error" not in statuses else 1


def _written(loaded: Loaded) -> frozenset[str]:
    """Tables that only we write: others have services of their own."""
    return loaded.project.ingested | {node_id for node_id in loaded.graph.nodes if not node_id.startswith("source.")}


def _maintain(lake: Lake, number: int, total: int, place: TablePlace, output: Output, rebucket: bool) -> DisplayStatus:
    step, started = LogStep(number, total, "table", str(place.table)), perf_counter()
    output.start(step)
    try:
        done = _services(lake, place, rebucket)
    except NodeError as error:
        output.error(step, perf_counter() - started)
        output.line(f"  {error}", "error")
        return "error"
    seconds = perf_counter() - started
    if not done:
        output.no_op(step, seconds)
        return "no-op"
    output.success(step, ", ".join(done), seconds)
    return "success"


def _services(lake: Lake, place: TablePlace, rebucket: bool) -> list[str]:
    """What was done to one table, in words."""
    done = []
    if lake.catalog.state(place.unique_id).kind == "mor" and (groups := lake.engine.compact(place.uri)):
        done.append(f"{groups} file group{'s' if groups > 1 else ''} compacted")
    if rebucket and (changed := lake.engine.rebucket(place.uri, hudi_options(lake.loaded, place.unique_id))):
        done.append("{} → {} buckets, {:,} → {:,} files".format(*changed.buckets, *changed.files))
    for cleaning in due(lake.catalog, [place.unique_id], slack=0):
        lake.engine.clean(cleaning.uri, cleaning.retain)
        done.append(f"{cleaning.retain} commits kept")
    if removed := remove_logs(Timeline(place.uri)):
        done.append(f"{removed} change log{'s' if removed > 1 else ''} removed")
    return done
