"""The commits that a clone has beyond the table it was made of, given to that table. Owns their order.

Data files come first, which no reader sees; then each commit's instants, its completion last: at any step readers see
the table at one of these commits. Each file is linked once, never over another. The caller holds the locks of both.
"""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from sqlmesh_like.errors import MachineError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.change_log import NotLoggedError, log_of
from sqlmesh_like.hudi.cloning.clone import link_files
from sqlmesh_like.hudi.cloning.newer_commits import CannotPromoteError, newer_commits
from sqlmesh_like.hudi.commits import Commit, Instant
from sqlmesh_like.hudi.recovery.commit_files import files_by_writer
from sqlmesh_like.hudi.recovery.table_swap import take_place
from sqlmesh_like.hudi.services.timeline_files import remove_files
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.commit_guard import require_locks
from sqlmesh_like.hudi.timeline import TIMELINE, Timeline
from sqlmesh_like.names import is_store


def fast_forward(uri: str, clone: Timeline) -> None:
    """Give a table, as it is now, the newer commits of its clone; what an interrupted call has done stays.

    Raises CannotPromoteError where another writer was there, MachineError where files cannot be linked; on a store as
    `fast_forward_on_store`.
    """
    if is_store(uri):
        from sqlmesh_like.hudi.cloning.store_promotion import fast_forward_on_store  # needs obstore

        fast_forward_on_store(uri, clone)
        return
    table = Timeline(uri)
    newer = newer_commits(table, clone)
    if newer is None or not set(table.unfinished) <= {instant.requested for instant in newer}:
        raise CannotPromoteError(f"{uri} is no longer as it was cloned: another writer was there")
    root, source = Path(table.folder.path), Path(clone.folder.path)
    commits = tuple(reversed(tuple(islice(clone.newest_first(), len(newer)))))
    try:
        for commit in commits:
            link_files(source, root, (write.path for write in commit.writes))
            _link_logs(source, root, commit)
            fault_point("promotion.linked")
        for instant in newer:
            _link_instant(clone, instant, source, root)
    except OSError as error:
        raise MachineError(f"{uri}: files of its clone cannot be linked: {error.strerror}") from error


def put_in_place(uri: str, clone_uri: str, commit: str) -> None:
    """Put a clone in the place of its table, unless that is at the frontier `commit`: then it has been done.

    Raises CannotPromoteError on a store where a folder has files and is not a table.
    """
    table = Timeline(uri)
    is_done = table.exists and table.frontier == commit
    if is_store(uri):
        from sqlmesh_like.hudi.recovery.store_move import OccupiedError, take_place_on_store  # needs obstore

        try:
            take_place_on_store(uri, None if is_done else clone_uri)
        except OccupiedError as error:
            raise CannotPromoteError(error.message) from error
    elif is_done or folder(clone_uri).exists():
        take_place(clone_uri, uri)


def withdraw(uri: str, clone_uri: str, newest: str) -> None:
    """Remove what an interrupted call has given a table of commits that it does not have, and is not to get.

    Raises RetryableError where the locks of the call no longer hold.
    `newest`: the table's newest commit when it was cloned. A data file that no commit has written would count as one of
    an archived commit once the timeline begins after it.
    """
    require_locks(uri)
    table, clone = Timeline(uri), Timeline(clone_uri)
    known = {instant.requested for instant in table.completed}
    start = max(newest.partition("_")[0], table.archived_until)
    left = [each.requested for each in clone.commit_instants if each.requested > start and each.requested not in known]
    files, own = files_by_writer(table), files_by_writer(clone)
    for instant in left:  # the request is removed last, as that of any commit
        names = [name for name in table.names if name.startswith(f"{instant}.")]
        remove_files(table.folder, sorted({*files.get(instant, ())} & {*own.get(instant, ())}))
        for name in sorted(names, key=lambda name: name.endswith(".requested")):
            remove_files(table.folder, [f"{TIMELINE}/{name}"])


def _link_logs(source: Path, root: Path, commit: Commit) -> None:
    try:
        paths = [file.path for file in log_of(commit).files]
    except NotLoggedError:
        return
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        _link(source / path, root / path)


def _link_instant(clone: Timeline, instant: Instant, source: Path, root: Path) -> None:
    begun = [name for name in clone.names if name.startswith(f"{instant.requested}.")]
    for name in sorted(begun, key=lambda name: not name.endswith(".requested")):
        _link(source / ".hoodie/timeline" / name, root / ".hoodie/timeline" / name)
    fault_point("promotion.requested")
    name = f"{instant.requested}_{instant.completed}.{instant.action}"
    _link(source / ".hoodie/timeline" / name, root / ".hoodie/timeline" / name)
    fault_point("promotion.committed")


def _link(source: Path, target: Path) -> None:
    """Link a file, unless that has been done. Raises CannotPromoteError where there is another one of its name."""
    try:
        os.link(source, target)
    except FileExistsError:
        if not source.samefile(target):
            raise CannotPromoteError(f"another writer has made {target}") from None
