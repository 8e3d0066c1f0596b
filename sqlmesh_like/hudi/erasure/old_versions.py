"""Earlier versions of a table's rows, removed from disk. Owns which files no reader of the newest commit needs.

Hudi's cleaner always keeps the version before the newest one, so the files are removed here. The commits that wrote
them stay on the timeline: a consumer that has not read them sees that their files are gone, and is rebuilt.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath

from sqlmesh_like.errors import NodeError, RetryableError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.change_log import FOLDER
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.commit_guard import require_locks
from sqlmesh_like.hudi.stores.store_client import delete_files
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.commit_encoding import PARTITION_FILE
from sqlmesh_like.hudi.writer.open_commit import settled_timeline
from sqlmesh_like.hudi.writer.whole_files import unlink
from sqlmesh_like.names import is_store

_LOG_FILE = re.compile(r"\.(?P<file_id>.+)_(?P<instant>\d{14,17})\.log\.\d+_[^.]+")
_AT_ONCE = 1000
"""Files that a store deletes in one request."""
_PARTITION_FILES = {".hoodie_partition_metadata", "..hoodie_partition_metadata.crc"}


def unremovable_reason(timeline: Timeline) -> str | None:
    """Why earlier versions of a table's rows cannot be removed; None where they can."""
    if not timeline.folder.is_in_reach:
        return "its files are out of this process's reach"
    if is_store(timeline.uri) and timeline.exists and not timeline.is_cow:
        return "it is merge-on-read, on a store: its log files cannot be merged and removed there"
    if timeline.savepointed:
        return f"it has a savepoint, which keeps old rows: `sml savepoint delete TABLE {timeline.savepointed[-1]}`"
    if timeline.has_metadata_table:
        return "it has a metadata table of Hudi's, which keeps keys: write it with hoodie.metadata.enable=false"
    return None


def remove_old_versions(uri: str) -> int:
    """Remove all data files but those of the newest commit, change logs, and partitions without files.

    Returns the number of removed files. The caller holds the lake's locks. Raises RetryableError while a write is
    incomplete, NodeError where rows are in log files or `unremovable_reason` has a reason.
    """
    timeline = settled_timeline(uri)
    if reason := unremovable_reason(timeline):
        raise NodeError(f"earlier versions of {uri} cannot be removed: {reason}", hint="then run this again")
    if not timeline.commit_instants:
        return 0
    if timeline.pending:
        hint = "run `sml ingest` or `sml run`, which complete or remove it, then this again"
        raise RetryableError(f"the write {timeline.pending[0]} of {uri} has not completed", hint=hint)
    slices = timeline.slices(timeline.commit_instants[-1].frontier)
    if is_store(uri):
        return _remove_on_store(uri, {each.path for each in slices.values()})
    root, live = Path(timeline.folder.path), {each.path for each in slices.values()}
    replaced = {file_id for commit in timeline.commits for _, file_id in commit.replaced_groups}
    gone = _remove_logs(root, {file_id: each.instant for (_, file_id), each in slices.items()}, replaced)
    for path in sorted(timeline.data_files - live):
        unlink(root / path)
        gone.append(path)
        fault_point("erasure.old_file")
    changes = root / FOLDER
    gone += [str(path) for path in changes.rglob("*.parquet")]
    shutil.rmtree(changes, ignore_errors=True)
    _remove_empty_partitions(root)
    return len(gone)


def _remove_on_store(uri: str, live: Collection[str]) -> int:
    """The same on a store, where a partition is there as long as it has a file."""
    files = folder(uri).files()
    paths = [path for path in files if not path.startswith(".hoodie/")]
    if logs := [path for path in paths if _LOG_FILE.fullmatch(PurePosixPath(path).name)]:
        raise NodeError(f"{uri} has rows in log files, e.g. {logs[0]}, which keep deleted ones")
    kept = {str(PurePosixPath(path).parent) for path in live}
    old = [path for path in paths if path.endswith(".parquet") and path not in live]
    old += [path for path in files if path.startswith(f"{FOLDER}/")]
    partitions = [PurePosixPath(path) for path in paths if path.endswith(PARTITION_FILE)]
    gone = [*old, *(str(path) for path in partitions if path.name == PARTITION_FILE and str(path.parent) not in kept)]
    for start in range(0, len(gone), _AT_ONCE):
        require_locks(uri)
        delete_files(uri, gone[start : start + _AT_ONCE])
        fault_point("erasure.old_file")
    return len(old)


def _remove_logs(root: Path, merged: Mapping[str, str], replaced: Collection[str]) -> list[str]:
    """Remove the log files of a merge-on-read table that its base files have merged, and of replaced file groups.

    `merged`: the instants of base files, by file id; `replaced`: file ids. Raises NodeError for any other log file.
    """
    places = (path for path in root.rglob(".*.log.*") if ".hoodie" not in path.relative_to(root).parts)
    logs = [(match, path) for path in places if (match := _LOG_FILE.fullmatch(path.name))]
    if kept := [path for match, path in logs if not _is_merged(match["file_id"], match["instant"], merged, replaced)]:
        raise NodeError(f"{root} has rows in log files, e.g. {kept[0].name}, which keep deleted ones")
    for _, path in logs:
        unlink(path)
    return [str(path) for _, path in logs]


def _is_merged(file_id: str, instant: str, merged: Mapping[str, str], replaced: Collection[str]) -> bool:
    return instant <= merged[file_id] if file_id in merged else file_id in replaced


def _remove_empty_partitions(root: Path) -> None:
    """Remove folders of partitions that have no file: their names are values of rows."""
    for place in sorted(root.rglob("*/"), key=lambda each: -len(each.parts)):
        if not place.is_dir() or ".hoodie" in place.relative_to(root).parts:
            continue
        if {entry.name for entry in place.iterdir()} <= _PARTITION_FILES:
            shutil.rmtree(place)
