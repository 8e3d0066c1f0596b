"""What `ls --orphans` and `clean --orphans` share: the flags that they refuse, and how orphans are printed."""

from __future__ import annotations

from collections.abc import Iterable

from sqlmesh_like.app.lakes.orphans import Orphan, Orphans
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.cli.options import Flags
from sqlmesh_like.cli.printing.output import size
from sqlmesh_like.cli.printing.rows import as_table
from sqlmesh_like.errors import UsageError
from sqlmesh_like.names import Column
from sqlmesh_like.run.ports import Rows

_COLUMNS = (
    *(Column(name, "string") for name in ("table", "node", "status")),
    *(Column(name, "bigint") for name in ("rows", "size")),
    *(Column(name, "string") for name in ("last_commit", "path")),
)


def require_unselected(flags: Flags) -> None:
    """Raises UsageError where the call selects nodes: those of orphans are gone."""
    if flags.select or flags.exclude or flags.selector:
        hint = "leave --select, --exclude and --selector out"
        raise UsageError("--orphans takes no selection: it is about nodes that are gone", hint=hint)


def orphans_table(orphans: Iterable[Orphan]) -> str:
    """Return a line for each orphan, with headings."""
    rows = tuple(
        (
            *(str(orphan.table), str(orphan.unique_id), orphan.status, orphan.rows, size(orphan.bytes)),
            *(orphan.frontier.split("_")[0], orphan.uri),
        )
        for orphan in orphans
    )
    return as_table(Rows(_COLUMNS, rows))


def orphan_record(orphan: Orphan) -> dict[str, object]:
    """Return an orphan as a JSON object; `last_commit` is an instant of `sml history`."""
    return {
        "unique_id": orphan.unique_id, "resource_type": orphan.unique_id.kind, "name": orphan.table.identifier,
        "schema": orphan.table.schema, "status": orphan.status, "path": orphan.uri, "rows": orphan.rows,
        "bytes": orphan.bytes, "last_commit": orphan.frontier.split("_")[0],
    }  # fmt: skip


def report_left_alone(loaded: Loaded, orphans: Orphans) -> None:
    """Report each table that is not an orphan although no node of this target has it."""
    for text in orphans.left_alone:
        loaded.reporter.notify(f"left alone: {text}")
