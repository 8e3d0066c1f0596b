"""A table put in the place of another one on an object store, which moves nothing: the store copies its files.

The table that was there is dropped first; between that and the properties of the new one, which come last, there is
none. The caller holds the locks of both.
"""

from __future__ import annotations

from sqlmesh_like.errors import RetryableError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.reading.recent_timelines import forget_timelines
from sqlmesh_like.hudi.recovery.store_drop import MARK, PROPERTIES, drop_on_store, finish_drop
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.commit_guard import require_locks
from sqlmesh_like.hudi.stores.conditional_file import ConditionalFile
from sqlmesh_like.hudi.stores.server_copies import copy_files, file_sizes, require_copies, require_copyable
from sqlmesh_like.hudi.stores.store_client import delete_files, put_content
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.secrets import scrub_text

AT_WORK = tuple(f".hoodie/{name}/" for name in (".temp", ".sml_writer", ".heartbeat", ".locks"))
"""Folders of writers at work, which no copy of a table has."""


class OccupiedError(RetryableError):
    """A folder is no table and has files."""


def take_place_on_store(uri: str, source: str | None) -> None:
    """Put a copy of a table in the place of the one at `uri`, if there is one. None: that is done, but for the mark.

    Raises OccupiedError where files of anybody are there, RetryableError where the locks no longer hold.
    """
    finish_drop(uri)
    if source is None:
        return
    listed = file_sizes(source)
    sizes = {path: size for path, size in listed.items() if not path.startswith(AT_WORK) and path != MARK}
    require_copyable(source, sizes)
    if Timeline(uri).exists:
        drop_on_store(uri)
    if left := [path for path in file_sizes(uri) if not path.startswith(".hoodie/")]:
        raise OccupiedError(f"{scrub_text(uri)} is not a table, and has files, e.g. {left[0]}")
    require_locks(uri)
    put_content(f"{uri}/{MARK}", b"")  # until there are properties, all of it is to be removed
    copied = {path: size for path, size in sizes.items() if path not in PROPERTIES}
    copy_files(source, uri, sorted(copied))
    require_copies(uri, copied)
    fault_point("promotion.copied")
    require_locks(uri)
    properties = PROPERTIES[-1]
    if ConditionalFile(f"{uri}/{properties}").replace(folder(source).read(properties), None) is None:
        raise RetryableError(f"another writer has made {scrub_text(uri)}")
    fault_point("promotion.moved")
    delete_files(uri, [MARK])
    forget_timelines([uri])
