"""The newest commit at which a table can be read completely. Owns finding it, from the newest commit back; no JVM."""

from __future__ import annotations

from dataclasses import dataclass

from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.recovery.commit_files import files_of_commit
from sqlmesh_like.hudi.timeline import Timeline, forget_commits


@dataclass(frozen=True)
class TableHealth:
    """`good`: the newest frontier that is whole, if any. `problem`: of the newest commit; None where that is whole."""

    good: str | None
    problem: str | None

    @property
    def is_whole(self) -> bool:
        return self.problem is None


def table_health(uri: str) -> TableHealth:
    """Check commits from the newest back until all metadata and data files of one can be read."""
    forget_commits(uri)
    newest, known, problem = Timeline(uri), dict[str, str | None](), None
    for instant in reversed(newest.commit_instants):
        timeline = Timeline(uri, until=instant.requested)
        broken = _problem(timeline, known)
        if broken is None and timeline.frontier is not None:
            return TableHealth(timeline.frontier, problem)
        problem = problem or broken or f"commit {instant.frontier} cannot be read yet"
    return TableHealth(None, problem or f"{uri} has no commit")


def _problem(timeline: Timeline, known: dict[str, str | None]) -> str | None:
    """The problem of a table as of its newest commit, if any. `known`: problems by path, as commits share files."""
    try:
        if (frontier := timeline.frontier) is None:
            return None
        paths = {each.path for each in timeline.slices(frontier).values()}
        if not timeline.is_cow:
            paths |= files_of_commit(timeline, frontier.split("_")[0])
    except NodeError as error:
        return error.message
    for path in sorted(paths):
        if path not in known:
            known[path] = _file_problem(timeline, path)
        if known[path] is not None:
            return known[path]
    return None


def _file_problem(timeline: Timeline, path: str) -> str | None:
    """The problem of a data file, if any: it is gone, or its Parquet footer cannot be read. Log files are not read."""
    from pyarrow import ArrowInvalid  # takes longer to import than a call that does not come here should last

    if not path.endswith(".parquet"):
        return None if timeline.folder.exists(path) else f"{timeline.uri}/{path} is gone"
    try:
        timeline.count(path)
    except FileNotFoundError:
        return f"{timeline.uri}/{path} is gone"
    except (ArrowInvalid, OSError) as error:
        return f"{timeline.uri}/{path} cannot be read: {str(error).partition(chr(10))[0][:200]}"
    return None
