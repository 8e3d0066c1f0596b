"""How much waits in files to be ingested. Owns the estimate, without an engine; a batch reads what Spark lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import stat_result
from pathlib import Path

from sqlmesh_like.cdc.sources.source_check import files_glob
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.project.nodes import ParsedProject


def bytes_waiting(project: ParsedProject, place: SourcePaths) -> int | None:
    """Bytes of the files that are newer than the source's last batch; None where that is not known.

    It is known for files on this machine only. A file that is older than the last batch and yet was not read counts as
    read: the result is for choosing settings.
    """
    ingest = place.source.ingest
    if ingest is None or ingest.files is None:
        return None
    files, checkpoint = folder(files_glob(project, ingest.files)), folder(place.checkpoint)
    if not (files.is_local and checkpoint.is_local):
        return None
    last = max((state.st_mtime for state in _states(Path(checkpoint.path, "commits").glob("*"))), default=0.0)
    return sum(state.st_size for state in _states(files.fs.glob(files.path)) if state.st_mtime >= last)


def _states(paths: Iterable[str | Path]) -> Iterator[stat_result]:
    """Size and time of the files; those that vanish meanwhile are left out."""
    for path in map(Path, paths):
        try:
            state = path.stat()
        except FileNotFoundError:
            continue
        if path.is_file():
            yield state
