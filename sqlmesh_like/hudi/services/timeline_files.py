"""Small files of a table written and removed by services. Owns how, on a disk and on an object store.

On a store a put is visible as a whole or not at all; on a disk a rename makes it so.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlmesh_like.errors import RetryableError
from sqlmesh_like.hudi.storage import Folder
from sqlmesh_like.hudi.writer.whole_files import replace_whole, unlink


def write_file(table: Folder, path: str, content: bytes) -> None:
    """Write a file in one step, also over a former one. `path`: relative to the table."""
    if table.is_local:
        place = Path(table.path, path)
        place.parent.mkdir(exist_ok=True)
        replace_whole(place, content)
        return
    from sqlmesh_like.hudi.stores.store_client import put_content  # needs obstore

    put_content(f"{table.uri}/{path}", content)


def create_file(table: Folder, path: str, content: bytes) -> None:
    """The same where there is none. Raises RetryableError on a store that has one: another call is at work there."""
    if table.is_local:
        write_file(table, path, content)
        return
    from sqlmesh_like.hudi.stores.conditional_file import ConditionalFile  # needs obstore

    if ConditionalFile(f"{table.uri}/{path}").replace(content, None) is None:
        raise RetryableError(f"another call has written {table.uri}/{path}")


def remove_files(table: Folder, paths: Sequence[str]) -> None:
    """Remove files, some of which may be gone. On a store many at once, in no order."""
    if table.is_local:
        for path in paths:
            unlink(Path(table.path, path))
        return
    from sqlmesh_like.hudi.stores.store_client import delete_files  # needs obstore

    delete_files(table.uri, paths)
