"""`sml release create`, `list`, `show`, `diff`, `rollback`, `hold` and `unhold`. Owns the commands and their output."""

from __future__ import annotations

from collections.abc import Sequence

import click

from sqlmesh_like.app.operations.releases.release_list import (
    compare_releases,
    create_release,
    hold_release,
    list_releases,
    return_to_release,
    show_release,
)
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.rows import as_table
from sqlmesh_like.cli.printing.writer import echo, echo_json
from sqlmesh_like.names import Column
from sqlmesh_like.releases.release import ReleasedTable, release_entry
from sqlmesh_like.run.ports import Rows

_LISTED = (
    Column("id", "bigint"), Column("created_at", "string"), Column("command", "string"), Column("tables", "bigint"),
    Column("state", "string"),
)  # fmt: skip
_form = click.option("--output", type=click.Choice(["table", "json"]), default="table", help="Form of the output.")


@click.group("release")
def command() -> None:
    """See, keep and return to the commits that belong together."""


@command.command("create")
@shared_options
def create(flags: Flags) -> int:
    """Release what the last run left whole, whether or not its data tests ran. Starts no JVM."""
    loaded, output = open_project(flags), make_output(flags)
    release = create_release(loaded)
    output.line(f"readers see release {release.id} now")
    return 0


@command.command("list")
@_form
@shared_options
def list_(flags: Flags, output: str) -> int:
    """List the releases, oldest first; readers see the current one. Starts no JVM."""
    releases = list_releases(open_project(flags))
    if output == "json":
        entries = [release_entry(each) | {"current": each.id == releases.current} for each in releases.listed]
        echo_json(entries, indent=2)
        return 0
    rows = [
        (
            each.id, each.created_at, each.command, len(each.tables),
            ", ".join(["current"] * (each.id == releases.current) + ["held"] * each.is_held),
        )
        for each in releases.listed
    ]  # fmt: skip
    _print(_LISTED, rows, "There are no releases")
    return 0


@command.command("show")
@click.argument("number", metavar="[ID]", required=False)
@_form
@shared_options
def show(flags: Flags, number: str | None, output: str) -> int:
    """Show the commit of each table of a release, by default of the current one. Starts no JVM."""
    release = show_release(open_project(flags), number)
    if output == "json":
        echo_json(release_entry(release), indent=2)
        return 0
    rows = [(each.table, each.commit) for each in sorted(release.tables.values(), key=lambda each: each.table)]
    _print((Column("table", "string"), Column("commit", "string")), rows, "The release has no tables")
    return 0


@command.command("diff")
@click.argument("old", metavar="A")
@click.argument("new", metavar="B")
@_form
@shared_options
def diff(flags: Flags, old: str, new: str, output: str) -> int:
    """Show which tables have another commit in release B than in A. Starts no JVM."""
    moved = compare_releases(open_project(flags), old, new)
    commits = [(each, _commit(each.old), _commit(each.new)) for each in moved]
    if output == "json":
        entries = [
            {"unique_id": each.unique_id, "change": each.change, "old": before, "new": after}
            for each, before, after in commits
        ]
        echo_json(entries, indent=2)
        return 0
    rows = [
        ((each.new or each.old or ReleasedTable("", "")).table, each.change, before or "", after or "")
        for each, before, after in commits
    ]
    columns = tuple(Column(name, "string") for name in ("table", "change", "old", "new"))
    _print(columns, rows, f"Releases {old} and {new} name the same commits")
    return 0


@command.command("rollback")
@click.argument("number", metavar="ID")
@shared_options
def rollback(flags: Flags, number: str) -> int:
    """Let readers see an earlier release. Starts no JVM.

    Only the pointer moves: tables stay as they are, and the next release, of their newest commits, replaces it. Refused
    where files of the release are gone.
    """
    loaded, output = open_project(flags), make_output(flags)
    release = return_to_release(loaded, number)
    output.line(f"readers see release {release.id}, of {release.created_at}, until the next one is made")
    return 0


@command.command("hold")
@click.argument("number", metavar="ID")
@shared_options
def hold(flags: Flags, number: str) -> int:
    """Keep the files of a release, and all later ones, until `sml release unhold`. Starts no JVM."""
    loaded, output = open_project(flags), make_output(flags)
    output.line(f"release {hold_release(loaded, number, is_held=True).id} is held: its files are kept")
    return 0


@command.command("unhold")
@click.argument("number", metavar="ID")
@shared_options
def unhold(flags: Flags, number: str) -> int:
    """Let go of a release: the next cleaning may remove its files. Starts no JVM."""
    loaded, output = open_project(flags), make_output(flags)
    output.line(f"release {hold_release(loaded, number, is_held=False).id} is no longer held")
    return 0


def _print(columns: tuple[Column, ...], rows: Sequence[tuple[object, ...]], nothing: str) -> None:
    echo(as_table(Rows(columns, tuple(rows))) if rows else nothing)


def _commit(table: ReleasedTable | None) -> str | None:
    return None if table is None else table.commit
