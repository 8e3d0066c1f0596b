"""`sml clean`: remove files that earlier commands wrote, or tables of nodes that are gone. Owns the command."""

from __future__ import annotations

import click

from sqlmesh_like.app.lakes.orphans import Orphan, drop_orphans, find_orphans, require_droppable
from sqlmesh_like.app.loading.loaded import load_parsed
from sqlmesh_like.app.setup.clean import clean_targets
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.orphans import orphans_table, report_left_alone, require_unselected
from sqlmesh_like.cli.printing.question import confirm
from sqlmesh_like.cli.printing.writer import echo
from sqlmesh_like.errors import UsageError


@click.command("clean")
@click.option("--orphans", is_flag=True, help="Drop tables of nodes that are gone, after asking; keep the folders.")
@click.option("--yes", is_flag=True, help="Do not ask before dropping tables.")
@shared_options
def command(flags: Flags, orphans: bool, yes: bool) -> int:
    """Remove the folders of clean-targets (default: the target folder), or with `--orphans` tables of the warehouse.

    `--orphans` drops what `sml ls --orphans` lists, and only that. A dropped snapshot cannot be built again.
    """
    if orphans:
        return _clean_orphans(flags, yes=yes)
    if yes:
        raise UsageError("--yes answers the question of --orphans", hint="add --orphans, or leave --yes out")
    output = make_output(flags)
    for name in clean_targets(load_parsed(flags)):
        output.line(f"Removed {name}")
    output.line("Finished cleaning")
    return 0


def _clean_orphans(flags: Flags, *, yes: bool) -> int:
    require_unselected(flags)
    loaded, output = open_project(flags), make_output(flags)
    require_droppable(loaded)
    orphans = find_orphans(loaded)
    report_left_alone(loaded, orphans)
    if orphans.tables:
        if flags.log_format == "json":
            for orphan in orphans.tables:
                output.line(f"{orphan.table} of {orphan.unique_id}, {orphan.status}: {orphan.uri}")
        else:
            echo(orphans_table(orphans.tables))
        if not yes and not _is_confirmed(orphans.tables):
            output.line("Nothing was changed")
            return 0
    dropped: list[Orphan] = []

    def on_dropped(orphan: Orphan) -> None:
        dropped.append(orphan)
        output.line(f"Dropped {orphan.table}")
        catalog = loaded.target.catalog
        if catalog != "none":  # only Hudi's sync tool writes it
            sql = f"DROP TABLE {orphan.table.sql()}"
            output.line(f"warning: its entry in the {catalog} catalog stays: run {sql} there", "warn")

    drop_orphans(loaded, orphans.tables, on_dropped)
    for orphan in orphans.tables:
        if orphan not in dropped:
            output.line(f"warning: {orphan.table} has changed since it was listed: it is kept", "warn")
    output.line(f"Finished cleaning: {len(dropped)} table{'s' * (len(dropped) != 1)} dropped")
    return 0


def _is_confirmed(orphans: tuple[Orphan, ...]) -> bool:
    """Ask whether to drop these. Raises UsageError where there is no terminal to ask on."""
    snapshots = sum(orphan.unique_id.kind == "snapshot" for orphan in orphans)
    warning = f"Old versions of rows in {snapshots} snapshot{'s' * (snapshots != 1)} are stored nowhere else. "
    question = f"{warning * bool(snapshots)}Drop {len(orphans)} table{'s' * (len(orphans) != 1)}?"
    hint = "add --yes to drop these tables; `sml ls --orphans` only lists them"
    return confirm(question, "there is no terminal to ask on, and nothing was dropped", hint)
