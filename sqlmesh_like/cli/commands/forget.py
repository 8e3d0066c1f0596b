"""`sml forget`: erase rows of a source's table from the lake. Owns the command, its question and its lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from sqlmesh_like.app.operations.erasure.erase import Erased, erase
from sqlmesh_like.app.operations.erasure.plan import Erasure, ErasureRequest, plan_erasure
from sqlmesh_like.cli.completion import complete_names
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.question import confirm
from sqlmesh_like.cli.run_log import RunLog
from sqlmesh_like.errors import UsageError


@click.command("forget")
@click.argument("table", metavar="SOURCE.TABLE", shell_complete=complete_names)
@click.argument("keys", metavar="[KEY]…", nargs=-1)
@click.option(
    "--keys-file", help="A file with a key in each line.", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--text", "texts", multiple=True, help="A text, such as a name, that no file may contain afterwards.")
@click.option("--yes", is_flag=True, help="Erase without asking.")
@shared_options
def command(
    flags: Flags, table: str, keys: tuple[str, ...], keys_file: Path | None, texts: tuple[str, ...], yes: bool
) -> int:
    """Erase rows from a source's table and from everything that was built from them, and prove it.

    A KEY is a value of the primary key; of a key of several columns, the values with | between. The rows leave the
    table, its remembered deletes, dead letters, snapshots and stored test failures; models follow by a run, with what
    they publish. Then earlier versions of all these tables are removed, with change logs: they cannot be rolled back or
    read as of an earlier time any more. Finally all files are searched: exit code 1 if one still has a key or a text.
    After a crash or a failed model, the same command continues.
    """
    loaded, output = open_project(flags, broken=True), make_output(flags)
    given = (*keys, *(_keys_of(keys_file) if keys_file else ()))
    if not given:
        raise UsageError("no key is given", hint="e.g. sml forget shop.customer 4711, or --keys-file FILE")
    erasure = plan_erasure(loaded, ErasureRequest(table, given, texts))
    if not yes:
        for line in _plan_lines(erasure):
            output.line(line)
        if not confirm(
            "Erase them?", "forgetting cannot be undone, and there is no terminal to ask", "add --yes to do it"
        ):
            output.line("Nothing was changed")
            return 1
    erased = erase(erasure, RunLog(output, loaded.project.root), output.line)
    for line in _lines(erased):
        output.line(line)
    return 1 if erased.proof.findings else 0


def _keys_of(path: Path) -> Iterator[str]:
    """The keys of a file, without blank lines. Raises UsageError where it is not text."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text: {error.reason}", hint="write a key in each line") from None
    return (line for line in lines if line.strip())


def _plan_lines(erasure: Erasure) -> Iterator[str]:
    count = len(erasure.keys)
    yield f"{count} key{'s' * (count != 1)} of {erasure.place.table}, with all earlier versions of these tables:"
    yield f"  {erasure.place.table}, its remembered deletes, and dead letters of the source {erasure.source.name}"
    for place in (*erasure.snapshots, *erasure.models):
        yield f"  {place.table}"
    for place in erasure.failures:
        yield f"  {place.table} (stored test failures: the whole table)"
    for destination in erasure.destinations:
        yield f"  what is published to {destination.name}"


def _lines(erased: Erased) -> Iterator[str]:
    proof = erased.proof
    yield f"{erased.files} old file{'s' * (erased.files != 1)} removed"
    if proof.findings:
        yield f"Found in {len({each.path for each in proof.findings})} of {proof.files} files:"
        for each in proof.findings:
            yield f"  {each.path}: {each.text}"
        yield "Rows of another table are forgotten by a call for its source's table; other files have to be removed"
    else:
        yield f"Found in none of {proof.files} files"
    if proof.by_text:
        yield "Searched for texts only, because no column is a copy of the key:"
        for line in proof.by_text:
            yield f"  {line}"
    yield "Not searched, because it is out of reach:"
    for line in proof.beyond:
        yield f"  {line}"
