"""A gap in the active timeline: commits that were archived although an earlier, savepointed one is still there.

Hudi's archiver makes it with `hoodie.archive.beyond.savepoint`. Hudi's readers (1.2.0) then take files of the archived
commits for uncommitted, and return fewer rows, without an error. Owns recognizing what is read wrongly; no JVM. Source
of the history's layout: Hudi's technical specification, "LSM timeline".
"""

from __future__ import annotations

from sqlmesh_like.errors import NodeError, UnreadableTableError
from sqlmesh_like.hudi.commits import Instant, parse_commit
from sqlmesh_like.hudi.missing_files import data_file
from sqlmesh_like.hudi.timeline import Timeline

_REPLACEMENTS = ("replacecommit", "clustering")


def require_no_gap(timeline: Timeline, frontier: str) -> None:
    """Raises NodeError where a read of the table as of a frontier would depend on what is in a gap."""
    if why := gap_problem(timeline, frontier):
        hint = "delete the savepoint, then archive and clean the table without hoodie.archive.beyond.savepoint"
        raise NodeError(f"{timeline.uri}: {why}", hint=hint)


def gap_problem(timeline: Timeline, frontier: str) -> str | None:
    """Why a table cannot be read as of a frontier because of a gap; None where it can be."""
    if not timeline.before_gap:
        return None
    saved = min(timeline.before_gap).requested
    after = f"archived after the savepointed commit {saved}"
    if not timeline.is_cow:
        return f"commits were {after}, and Hudi's readers do not see their files"
    if replacement := _archived_replacement(timeline, saved):
        return f"{replacement} was {after}, and which files it replaced is not on the timeline"
    visible = {instant.requested for instant in (*timeline.before_gap, *timeline.commit_instants)}
    for each in timeline.slices(frontier).values():
        if each.instant > saved and each.instant not in visible:
            return f"the commit of {each.path} was {after}, and Hudi's readers do not see the file"
    return None


def _archived_replacement(timeline: Timeline, first: str) -> str | None:
    """A commit after `first` that replaced file groups whose files are there, and was archived; None where none was.

    A savepoint keeps files of the groups that it replaced, and only its metadata says that they are no longer live. A
    clean has removed them otherwise: an archiver that is under way, or was cut short, makes none.
    """
    import pyarrow.parquet as pq  # takes longer to import than a run with nothing to do should last
    from pyarrow import ArrowInvalid

    on_timeline = {instant.requested for instant in timeline.before_gap}
    files = {file.group for file in map(data_file, timeline.data_files) if file}
    for name in sorted(name for name in timeline.history_names if name.endswith(".parquet")):
        path = f".hoodie/timeline/history/{name}"
        try:
            with timeline.folder.fs.open(f"{timeline.folder.path}/{path}", "rb") as file:
                instants = pq.read_table(file, columns=["instantTime", "action", "metadata"]).to_pylist()
        except (ArrowInvalid, OSError) as error:
            raise UnreadableTableError(f"{timeline.uri}/{path} cannot be read: {error}") from error
        for each in instants:
            requested, action = each["instantTime"], each["action"]
            if requested <= first or requested in on_timeline or action not in _REPLACEMENTS:
                continue
            commit = parse_commit(Instant(requested, None, action), each["metadata"] or b"", f"{timeline.uri}/{path}")
            if commit.replaced_groups & files:
                return f"{action} {requested}"
    return None
