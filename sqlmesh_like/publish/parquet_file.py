"""A folder of Parquet files, one for each table. Owns replacing a file atomically; `file_sets` several at once.

The published commit is in the file's own metadata, so rows and commit cannot diverge. A change rewrites the whole
file: DuckDB merges it, with bounded memory. For small changes in large tables a database is more suitable.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
from pyarrow import parquet

from sqlmesh_like.duckdb.duck_connection import file_worker
from sqlmesh_like.errors import NodeError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.project.publishing import Destination
from sqlmesh_like.publish.file_sets import (
    CURRENT,
    POINTER,
    FileSet,
    LocalFileSet,
    StoredFileSet,
    file_of,
    read_pointer,
)
from sqlmesh_like.publish.store import DELETED_COLUMN, KEY_COLUMN, Published, foreign
from sqlmesh_like.remedies import remedy
from sqlmesh_like.run.ports import Export
from sqlmesh_like.sql_text import standard_identifier, standard_literal

_MARK = "sml.published"


class ParquetStore:
    """One folder, on any file system.

    Several tables at once are shown by one pointer (`file_sets`), and by nothing else from then on.
    """

    def __init__(self, destination: Destination) -> None:
        self._name = destination.name
        below = f"/{destination.schema}" if destination.schema else ""
        self._folder = folder(destination.place.rstrip("/") + below)
        self._set: FileSet | None = None
        self._is_together = False

    @contextmanager
    def together(self) -> Iterator[None]:
        self._is_together = True
        try:
            yield
            fault_point("publish.together")
            if self._set is not None:
                with self._translate_errors():
                    self._set.show()
        except BaseException:
            if self._set is not None:
                self._set.discard()
            raise
        finally:
            self._set, self._is_together = None, False

    def close(self) -> None:
        """Do nothing: no file is left open."""

    def read_published(self, table: str) -> Published | None:
        with self._translate_errors():
            path = self._current_file(table)
            published = None if path is None else self._read_mark(path)
        if path is not None and published is None:
            raise foreign(f"{table}.parquet", self._name)
        return published

    def write(self, table: str, export: Export, old: Published | None, new: Published) -> None:
        if not self._is_together and self._has_pointer():
            with self.together():
                return self.write(table, export, old, new)
        if self._is_together and self._set is None:
            with self._translate_errors():
                self._set = self._begin_set()
        with self._translate_errors(), tempfile.TemporaryDirectory(prefix="sml_publish_") as scratch:
            self._folder.fs.makedirs(self._folder.path, exist_ok=True)
            # A rename is atomic only within one file system; an object store shows a file only when it is complete.
            place = Path(self._folder.path if self._folder.is_local else scratch)
            made = place / f".{table}.parquet.new"
            try:
                self._merge(table, export, new, made, Path(scratch))
                fault_point("publish.written")
                if self._set is not None:
                    self._set.put(table, made)
                elif self._folder.is_local:
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
                before = standard_literal(str(self._before(table, scratch)))
                rows = (
                    f"SELECT * FROM read_parquet({before}) ANTI JOIN change USING ({KEY_COLUMN})"
                    f" UNION ALL BY NAME SELECT * EXCLUDE ({DELETED_COLUMN}) FROM change WHERE NOT {DELETED_COLUMN}"
                )
            said = json.dumps({**vars(new)})
            marks = f"KV_METADATA {{{standard_identifier(_MARK)}: {standard_literal(said)}}}"
            db.execute(f"COPY ({rows}) TO {standard_literal(str(made))} (FORMAT parquet, COMPRESSION zstd, {marks})")

    def _before(self, table: str, scratch: Path) -> Path:
        """Return a local path of the file that a change follows; a remote one is copied first."""
        path = self._current_file(table)
        assert path is not None, "a change follows what is published"
        if self._folder.is_local:
            return Path(path)
        copy = scratch / "before.parquet"
        with self._folder.fs.open(path, "rb") as source, copy.open("wb") as target:
            while part := source.read(1 << 20):
                target.write(part)
        return copy

    def _current_file(self, table: str) -> str | None:
        """The file of a table in the set that is being made, else the one that readers see; None if there is none."""
        plain = Path(self._path(table))
        if self._folder.is_local and plain.exists() and not plain.is_symlink():
            return str(plain)  # of a publication without releases, or somebody else's
        if self._set is not None and (path := self._set.path(table)) is not None:
            return path
        if self._folder.is_local:
            places = (plain, plain.parent / CURRENT / plain.name) if self._set is None else (plain,)
            return next((str(path) for path in places if path.exists()), None)
        names = self._folder.names()
        if self._set is None and POINTER in names and (relative := read_pointer(self._folder).get(table)):
            return f"{self._folder.path}/{relative}"
        return self._path(table) if file_of(table) in names else None

    def _has_pointer(self) -> bool:
        if self._folder.is_local:
            return Path(self._folder.path, CURRENT).is_symlink()
        return self._folder.exists(POINTER)

    def _begin_set(self) -> FileSet:
        self._folder.fs.makedirs(self._folder.path, exist_ok=True)
        if self._folder.is_local:
            return LocalFileSet(Path(self._folder.path), lambda path: self._read_mark(str(path)) is not None)
        return StoredFileSet(self._folder, lambda path: self._read_mark(path) is not None, self._upload)

    def _read_mark(self, path: str) -> Published | None:
        """What a file says of itself, None for one that no publication made."""
        with self._folder.fs.open(path, "rb") as file:
            metadata = parquet.read_schema(file).metadata or {}
        if _MARK.encode() not in metadata:
            return None
        said = json.loads(metadata[_MARK.encode()])
        columns = tuple((name, type_) for name, type_ in said["columns"])
        return Published(said["model"], said["uri"], said["frontier"], columns)

    def _upload(self, made: Path, path: str) -> None:
        with made.open("rb") as source, self._folder.fs.open(path, "wb") as target:
            while part := source.read(1 << 20):
                target.write(part)

    def _path(self, table: str) -> str:
        return f"{self._folder.path}/{file_of(table)}"

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            message = f"{self._name}: {str(error).partition(chr(10))[0][:500]}"
            raise NodeError(message, hint=remedy(error, "sml publish")) from None
