"""Commits of a table on an object store removed with their files. Owns the order that survives a crash.

A void claim (`store_claim`) exists from before the first deletion until after the last: whoever comes next goes on from
it. It is an instruction only while the commit is not completed: one that is being taken off counts until its completed
instant is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlmesh_like.errors import RetryableError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.commit_guard import require_locks
from sqlmesh_like.hudi.stores.store_client import delete_files, put_content
from sqlmesh_like.hudi.timeline import TIMELINE
from sqlmesh_like.hudi.writer.store_claim import ClaimFile, claim_path
from sqlmesh_like.plan.side_by_side import side_by_side

_UNDONE = ".hoodie/.sml_undone"


def timeline_names(uri: str) -> list[str]:
    """Names on the timeline as it is now."""
    return folder(f"{uri}/{TIMELINE}").names()


def remove_commit(uri: str, instant: str, paths: Iterable[str] = ()) -> None:
    """Remove a void commit: the files that its markers name and `paths`, then what it has on the timeline.

    The claim is removed last. A completed commit is kept, and only its markers go.
    """
    names, markers = [name for name in timeline_names(uri) if name.startswith(instant)], marker_paths(uri, instant)
    if any(name.startswith(f"{instant}_") for name in names):
        delete_files(uri, [*markers, claim_path(instant)])
        return
    fault_point("hudi.removal.begin")
    prefix = f"{marker_folder(instant)}/"
    written = {marker.removeprefix(prefix).rpartition(".marker.")[0] for marker in markers}
    delete_files(uri, sorted({*written, *paths}))
    fault_point("hudi.removal.files")
    # The request is removed last: while it exists, another writer knows that there is something to remove.
    delete_files(uri, [f"{TIMELINE}/{name}" for name in names if name.endswith("inflight")])
    fault_point("hudi.removal.inflight")
    delete_files(uri, markers)
    delete_files(uri, [f"{TIMELINE}/{name}" for name in names if name.endswith("requested")])
    fault_point("hudi.removal.request")
    delete_files(uri, [claim_path(instant)])


def take_off(uri: str, instant: str, completed: Sequence[str], paths: Sequence[str]) -> None:
    """Remove a completed commit and its files `paths`; `completed`: names on the timeline that mark it as completed.

    The caller holds the table's lock. Raises RetryableError where it has been lost.
    """
    require_locks(uri)
    claim = ClaimFile(uri, instant)
    if not (claim.take(()) and claim.make_void()):
        raise RetryableError(f"another call is writing {instant} of {uri}")
    markers = [f"{uri}/{marker_folder(instant)}/{path}.marker.CREATE" for path in paths]
    side_by_side(lambda marker: put_content(marker, b""), markers)
    fault_point("rollback.marked")
    delete_files(uri, [f"{TIMELINE}/{name}" for name in completed])
    fault_point("rollback.in_flight")
    remove_commit(uri, instant)
    fault_point("rollback.undone")


def note_undone_on_store(uri: str, instant: str) -> None:
    """Note, before it is done, that an instant is taken off a table."""
    put_content(f"{uri}/{_UNDONE}", max(instant, newest_undone(uri)).encode())


def newest_undone(uri: str) -> str:
    """The newest instant that was taken off the table, which no commit gets again."""
    try:
        return folder(uri).read(_UNDONE).decode()
    except FileNotFoundError:
        return ""


def marker_folder(instant: str) -> str:
    """The folder of a commit's markers, relative to the table."""
    return f".hoodie/.temp/{instant}"


def marker_paths(uri: str, instant: str) -> list[str]:
    """The markers of a commit, relative to the table."""
    names = folder(f"{uri}/{marker_folder(instant)}").files()
    return [f"{marker_folder(instant)}/{name}" for name in names if ".marker." in name]
