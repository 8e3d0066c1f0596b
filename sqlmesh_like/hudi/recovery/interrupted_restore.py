"""A restore to a savepoint, by Hudi, that did not complete. Owns recognizing it and the way out; no JVM.

It takes commits off one by one, so readers see one of the commits in between. Hudi accepts no other write before the
restore has completed. With a metadata table, which Hudi's procedure makes, only Hudi takes commits off.
"""

from __future__ import annotations

from sqlmesh_like.errors import NodeError, UnreadableTableError
from sqlmesh_like.hudi.commits import mapping_member, read_metadata
from sqlmesh_like.hudi.timeline import Timeline


def interrupted_restore(timeline: Timeline) -> str | None:
    """The requested time of a restore that did not complete, if there is one."""
    names = timeline.names
    return next(
        (at for at in timeline.unfinished if {f"{at}.restore.requested", f"{at}.restore.inflight"} & names), None
    )


def require_no_restore(uri: str) -> None:
    """Raises NodeError, with the command that completes it, where a restore of the table did not complete."""
    timeline = Timeline(uri)
    if instant := interrupted_restore(timeline):
        savepoint = _savepoint(timeline, instant)
        written = [*(commit.requested for commit in timeline.commit_instants), *timeline.pending]
        # Hudi 1.2.0 fails to repeat a restore that has nothing left to undo.
        is_undone = savepoint is not None and max(written, default="") <= savepoint
        if is_undone or not timeline.has_metadata_table:
            hint = f"`sml rollback TABLE --to {savepoint or 'COMMIT'} --yes` completes it"
        else:
            hint = f"call Hudi's rollback_to_savepoint again, to {savepoint or 'the same savepoint'}"
        raise NodeError(f"the restore {instant} of {uri} did not complete: Hudi refuses to write the table", hint=hint)


def _savepoint(timeline: Timeline, instant: str) -> str | None:
    """The savepoint that the plan of a restore names; None where the plan is not there or cannot be read."""
    path = f".hoodie/timeline/{instant}.restore.requested"
    try:
        plan = read_metadata(timeline.folder.read(path), path, mapping_member)
    except (FileNotFoundError, UnreadableTableError):
        return None
    return plan.get("savepointToRestoreTimestamp")
