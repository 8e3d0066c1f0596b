"""`sml rollback`: roll a table back to one of its commits. Owns the command and its lines."""

from __future__ import annotations

from collections.abc import Iterator

import click

from sqlmesh_like.app.operations.recovery.rollback import Effect, Rollback, plan_rollback, roll_back
from sqlmesh_like.cli.completion import complete_names
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, shared_options

_EFFECTS: dict[Effect, str] = {
    "full refresh": "has read what is taken off: the next run runs its whole query (HIS003)",
    "goes on": "has read nothing of what is taken off: it goes on from there",
    "follows": "follows the models that it reads",
}


@click.command("rollback")
@click.argument("table", shell_complete=complete_names)
@click.option("--to", "when", required=True, metavar="WHEN", help="A commit of `sml history`, or an ISO 8601 time.")
@click.option("--yes", is_flag=True, help="Restore the table; otherwise this is only a preview.")
@shared_options
def command(flags: Flags, table: str, when: str, yes: bool) -> int:
    """Show what restoring a table to an earlier commit affects downstream, and restore it with `--yes`.

    Commits after WHEN are removed with their files. A model's next run follows its inputs from there. A source's table
    is ingested again from its log; it is refused if the log no longer holds all of these events.
    """
    loaded, output = open_project(flags), make_output(flags)
    rollback = roll_back(loaded, table, when) if yes else plan_rollback(loaded, table, when)
    for line in _lines(rollback, done=yes):
        output.line(line)
    return 0


def _lines(rollback: Rollback, *, done: bool) -> Iterator[str]:
    table, count = rollback.place.table, len(rollback.undone)
    if not count and not rollback.interrupted:
        yield f"{table} stands at {rollback.end} already"
        return
    if count:
        word = ("was" if count == 1 else "were") if done else ("is" if count == 1 else "are")
        yield f"{table} {'went' if done else 'goes'} back from {rollback.start} to {rollback.end}"
        yield f"  {count} commit{'s' * (count != 1)} {word} taken off: {', '.join(reversed(rollback.undone))}"
    else:
        yield f"{table} stays at {rollback.end}"
    for service in rollback.interrupted:
        yield f"  {service}, which did not complete, {'was' if done else 'is'} taken off"
    if count:
        if rollback.replayed is not None:
            batches = f"{rollback.replayed} batch{'es' * (rollback.replayed != 1)}"
            yield f"  the next `sml ingest` reads {batches} of its source again"
        elif rollback.is_snapshot:
            yield "  versions of rows that only these commits had are nowhere else"
        elif rollback.place.unique_id.kind == "seed":
            yield "  the next `sml seed` loads its file again"
        else:
            yield "  the next `sml run` brings it up to its inputs again"
        if rollback.is_published:
            yield "  where it is published it is sent whole"
        for unique_id, effect in rollback.effects.items():
            yield f"  {unique_id} {_EFFECTS[effect]}"
    if not done:
        yield "Nothing was changed; add --yes to do it"
