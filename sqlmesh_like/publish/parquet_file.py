"""A folder of Parquet files, one for each table. Owns replacing a file atomically.

The published commit is in the file's own metadata, so rows and commit cannot diverge. A change rewrites the whole
file: DuckDB merges it, with bounded memory. For small changes in large tables a database is more suitable.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import duckdb
import pyarrow as pa
from pyarrow import parquet

from sqlmesh_like.duckdb.duck_connection import file_worker
from sqlmesh_like.errors import NodeError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.project.publishing import Destination
from sqlmesh_like.publish.store import DELETED_COLUMN, KEY_COLUMN, Published, foreign
from sqlmesh_like.remedies import remedy
from sqlmesh_like.run.ports import Export
from sqlmesh_like.sql_text import standard_identifier, standard_literal

_MARK = "sml.published"


class ParquetStore:
    """One folder, on any file system."""

    def __init__(self, destination: Destination) -> None:
        self._name = destination.name
        below = f"/{destination.schema}" if destination.schema else ""
        self._folder = folder(destination.place.rstrip("/") + below)

    def together(self) -> AbstractContextManager[None]:
        """Nothing is held back: each file is replaced when it is written."""
        return nullcontext()

    def close(self) -> None:
        """Do nothing: no file is left open."""

    def published(self, table: str) -> Published | None:
        if not self._folder.exists(f"{table}.parquet"):
            return None
        with self._failing(), self._folder.fs.open(self._path(table), "rb") as file:
            metadata = parquet.read_schema(file).metadata or {}
        if _MARK.encode() not in metadata:
            raise foreign(f"{table}.parquet", self._name)
        said = json.loads(metadata[_MARK.encode()])
        columns = tuple((name, type_) for name, type_ in said["columns"])
        return Published(said["model"], said["uri"], said["frontier"], columns)

    def write(self, table: str, export: Export, old: Published | None, new: Published) -> None:  # noqa: ARG002
        with self._failing(), tempfile.TemporaryDirectory(prefix="sml_publish_") as scratch:
            self._folder.fs.makedirs(self._folder.path, exist_ok=True)
            # A rename is atomic only within one file system; an object store shows a file only when it is complete.
            place = Path(self._folder.path if self._folder.is_local else scratch)
            made = place / f".{table}.parquet.new"
            try:
                self._merge(table, export, new, made, Path(scratch))
                fault_point("publish.written")
                if self._folder.is_local:
                    os.replace(made, self._path(table))
                else:
                    self._upload(made, self._path(table))
            finally:
                made.unlink(missing_ok=True)

    def _merge(self, table: str, export: Export, new: Published, made: Path, scratch: Path) -> None:
        with file_worker(scratch=str(scratch)) as db:
            db.register("_sml_rows", pa.RecordBatchReader.from_batches(export.schema, export.batches()))
            rows = f"SELECT * EXCLUDE ({DELETED_COLUMN}) FROM _sml_rows"
            if not export.whole:
                db.execute("CREATE TABLE change AS FROM _sml_rows")
                before = standard_literal(str(self._local(table, scratch)))
                rows = (
                    f"SELECT * FROM read_parquet({before}) ANTI JOIN change USING ({KEY_COLUMN})"
                    f" UNION ALL BY NAME SELECT * EXCLUDE ({DELETED_COLUMN}) FROM change WHERE NOT {DELETED_COLUMN}"
                )
            said = json.dumps({**vars(new)})
            marks = f"KV_METADATA {{{standard_identifier(_MARK)}: {standard_literal(said)}}}"
            db.execute(f"COPY ({rows}) TO {standard_literal(str(made))} (FORMAT parquet, COMPRESSION zstd, {marks})")

    def _local(self, table: str, scratch: Path) -> Path:
        """Return a local path of the current file; a remote one is copied first."""
        if self._folder.is_local:
            return Path(self._path(table))
        copy = scratch / "before.parquet"
        with self._folder.fs.open(self._path(table), "rb") as source, copy.open("wb") as target:
            while part := source.read(1 << 20):
                target.write(part)
        return copy

    def _upload(self, made: Path, path: str) -> None:
        with made.open("rb") as source, self._folder.fs.open(path, "wb") as target:
            while part := source.read(1 << 20):
                target.write(part)

    def _path(self, table: str) -> str:
        return f"{self._folder.path}/{table}.parquet"

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            message = f"{self._name}: {str(error).partition(chr(10))[0][:500]}"
            raise NodeError(message, hint=remedy(error, "sml publish")) from None
