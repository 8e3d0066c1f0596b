"""File slices with log files, merged into Parquet files that DuckDB reads. Owns when these are what Hudi would read.

hudi-rs merges base and log files in this process. It is used only if the last commit of a key wins: it supports only
some other orders, and no custom payloads.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from sqlmesh_like.duckdb.exact_sql import Unproven
from sqlmesh_like.hudi.commits import FileGroup, Slice
from sqlmesh_like.hudi.missing_files import SliceFiles, slice_files
from sqlmesh_like.hudi.reading.rows_plan import SliceMerge
from sqlmesh_like.hudi.timeline import Timeline

if TYPE_CHECKING:
    from hudi import HudiFileGroupReader

_OTHER_MERGES = (
    "hoodie.table.partial.update.mode",
    "hoodie.record.merge.strategy.id",
    "hoodie.compaction.payload.class",
)


def is_last_commit_wins(properties: Mapping[str, str]) -> bool:
    """Whether the row of a key is the whole row of its last commit."""
    return properties.get("hoodie.record.merge.mode") == "COMMIT_TIME_ORDERING" and not any(
        properties.get(name) for name in _OTHER_MERGES
    )


class MergedSlices:
    """Merged slices of one run, in a folder of its own; each is merged once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._folder: Path | None = None
        self._readers: dict[str, HudiFileGroupReader] = {}
        self._paths: dict[tuple[str, str, tuple[str, ...]], Path] = {}

    def slices(self, timeline: Timeline, merge: SliceMerge) -> tuple[Slice, ...]:
        """The slices of a merge as base files. Raises Unproven."""
        if not is_last_commit_wins(timeline.properties):
            raise Unproven("a merge-on-read table that merges by an order")
        if not timeline.folder.is_local:
            raise Unproven("slices of a merge-on-read table elsewhere")
        if timeline.is_archived:
            raise Unproven("slices of a merge-on-read table whose commits are archived")
        return tuple(
            self._slice(timeline, group, files)
            for group, files in slice_files(timeline, merge.instant).items()
            if merge.groups is None or group in merge.groups
        )

    def _slice(self, timeline: Timeline, group: FileGroup, files: SliceFiles) -> Slice:
        logs = tuple(files.own_logs())
        if files.base is None:
            raise Unproven("a file slice of log files alone")
        if not logs:
            return Slice(*group, files.base, files.since)
        written = {timeline.schema_json(f"{instant}_") for instant in (files.since, *files.log_instants())}
        if len(written) > 1:
            raise Unproven("a file slice of several schemas")
        return Slice(*group, self.path(timeline, files.base, logs), files.since)

    def path(self, timeline: Timeline, base: str, logs: tuple[str, ...]) -> str:
        """The file with the merged rows of a base file and log files (oldest first). Raises Unproven."""
        key = (timeline.uri, base, logs)
        with self._lock:
            if key not in self._paths:
                self._paths[key] = self._merge(timeline, base, logs)
            return str(self._paths[key])

    def forget(self) -> None:
        """Remove the files."""
        with self._lock:
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
            self._readers.clear()
            self._paths.clear()

    def _merge(self, timeline: Timeline, base: str, logs: tuple[str, ...]) -> Path:
        import pyarrow as pa
        from pyarrow import parquet

        self._folder = self._folder or Path(tempfile.mkdtemp(prefix="sml-"))
        path = self._folder / f"{len(self._paths)}.parquet"
        try:
            batch = self._reader(timeline).read_file_slice_from_paths(base, list(logs))
        except Exception as error:  # hudi-rs exports no class of its errors
            raise Unproven(f"a file slice that hudi-rs does not read: {error}") from error
        parquet.write_table(pa.Table.from_batches([batch]), path, compression="none")
        return path

    def _reader(self, timeline: Timeline) -> HudiFileGroupReader:
        if timeline.uri not in self._readers:
            from hudi import HudiFileGroupReader, HudiTableBuilder

            table = HudiTableBuilder.from_base_uri(timeline.uri).build()
            self._readers[timeline.uri] = HudiFileGroupReader(timeline.uri, table.hudi_options())
        return self._readers[timeline.uri]
