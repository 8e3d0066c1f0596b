"""The data files that a table consists of once the commits after one of its own are gone. Reads no rows; no JVM.

Since table version 8 the name of each data file, base or log, tells the instant that wrote it, and no writer appends to
a log file of another instant. Source: Hudi's technical specification, "File layout".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sqlmesh_like.errors import UnreadableTableError
from sqlmesh_like.hudi.missing_files import archived_logs, data_file, earliest_kept, missing_at, slice_files
from sqlmesh_like.hudi.timeline import Timeline


def files_of_commit(timeline: Timeline, instant: str) -> frozenset[str]:
    """Paths of the files that readers merge as of a commit, by its requested time.

    Of archived commits, all log files are included: when they completed is not on the timeline.
    """
    bases = frozenset(each.path for each in timeline.slices_at(instant).values())
    if timeline.is_cow:
        return bases
    logs = (path for files in slice_files(timeline, instant).values() for path in files.own_logs())
    archived = (file.path for file in archived_logs(timeline, instant)) if timeline.is_archived else ()
    return bases.union(logs, archived)


def missing_of_commit(timeline: Timeline, instant: str) -> Sequence[str]:
    """Those of `files_of_commit` that are gone, each as a path or a description; not what merged them since.

    Where a later commit cannot be read, cleaned slices that only it refers to are not noticed.
    """
    if not timeline.is_cow and instant not in timeline.savepointed and (kept := earliest_kept(timeline)) > instant:
        return [f"all before {kept}"]
    try:
        return tuple(timeline.missing_at(instant).values()) if timeline.is_cow else missing_at(timeline, instant)
    except UnreadableTableError:
        return sorted(files_of_commit(timeline, instant).difference(timeline.folder.files()))


def files_by_writer(timeline: Timeline) -> Mapping[str, Sequence[str]]:
    """Paths of all data files by the requested time of the instant that wrote them, whether it completed or not."""
    result: dict[str, list[str]] = defaultdict(list)
    for path in timeline.folder.files():
        file = None if path.startswith(".hoodie/") else data_file(path)
        if file is not None:
            result[file.instant].append(path)
    return result
