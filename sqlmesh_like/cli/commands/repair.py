"""`sml repair`: repair a broken table. Owns the command and its lines."""

from __future__ import annotations

from dataclasses import replace

import click

from sqlmesh_like.app.operations.ingestion import IngestRequest, ingest
from sqlmesh_like.app.operations.recovery.repair import command_for, find_damage, restore_ingested_table
from sqlmesh_like.cli.completion import complete_names
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.ingest_log import IngestLog, report_end
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.run_service import run_selected


@click.command("repair")
@click.argument("table", shell_complete=complete_names)
@shared_options
def command(flags: Flags, table: str) -> int:
    """Repair a table whose metadata or files are broken, or whose rows `sml verify` found to be wrong.

    A model or seed is rebuilt beside the old table and swapped in, even if the old history cannot be read. A source's
    table goes back to its last complete commit, and its source is ingested, which reads the rest again.
    """
    loaded, output = open_project(flags, broken=True), make_output(flags)
    damage = find_damage(loaded, table)
    output.line(f"{damage.place.table}: {damage.health.problem or 'its metadata and files are whole'}")
    if damage.source is None:
        built = damage.place.unique_id
        return run_selected(replace(flags, full_refresh=True), command_for(built), only=[built])
    if not damage.health.is_whole:
        restore_ingested_table(loaded, damage, output.line)
    return report_end(output, ingest(loaded, IngestRequest(source=damage.source), IngestLog(output)))
