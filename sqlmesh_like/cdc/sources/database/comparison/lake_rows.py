"""The lake's side of a comparison: a table's files at one commit. Owns what of them are rows of the source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlmesh_like.cdc.schema.ods_layout import SOFT_DELETED
from sqlmesh_like.cdc.sources.database.comparison.columns import ComparedColumns
from sqlmesh_like.cdc.sources.database.comparison.dialects import LAKE
from sqlmesh_like.cdc.sources.database.comparison.side import Side
from sqlmesh_like.duckdb.duck_connection import failing_reads, file_worker
from sqlmesh_like.duckdb.exact_sql import Unproven
from sqlmesh_like.duckdb.merge_on_read_files import local_table
from sqlmesh_like.duckdb.merged_slices import MergedSlices
from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.names import Schema, visible
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.project.nodes import SourceTable
from sqlmesh_like.sql_text import standard_identifier, standard_literal

_MEMORY_SHARE = "25%"
_HASHED = "hashes.hashed"


@dataclass(frozen=True)
class LakeRows:
    """A table at its newest commit. `origin`: the value of its `origin` column for the rows of one source table."""

    table: SourceTable
    state: TableState
    origin: str | None = None

    @property
    def exists(self) -> bool:
        """Whether the table has been ingested."""
        return self.state.exists and self.state.schema is not None

    @property
    def schema(self) -> Schema:
        return visible(self.state.schema or ())

    @contextmanager
    def side(self, columns: ComparedColumns) -> Iterator[Side]:
        """The side of these rows. Raises NodeError where only Spark reads the table, or files are gone."""
        merged = MergedSlices()
        try:
            with (
                TemporaryDirectory(prefix="sml-") as scratch,
                closing(file_worker(_MEMORY_SHARE, scratch, keeps_order=False)) as db,
                failing_reads(str(self.table.table)),
            ):
                db.execute(f"ATTACH {standard_literal(str(Path(scratch) / 'hashes.duckdb'))} AS hashes")
                relation = f"({self._select(merged)}) AS rows_of_table"
                yield Side(LAKE, relation, columns.lake, columns.key, lambda query: db.execute(query).fetchall())
        except Unproven as error:
            raise NodeError(
                f"only Spark reads {self.table.table}, by which it is not compared: {error}",
                location=self.table.declared_at,
                hint="sml maintain compacts a merge-on-read table",
            ) from error
        finally:
            merged.forget()

    def _select(self, merged: MergedSlices) -> str:
        local = local_table(self.state, merged, hidden=True)
        if local is None or self.state.frontier is None:
            raise Unproven(f"the table {self.state.uri}")
        rows = replace(local, keeps_negative_zero=True).rows(self.state.frontier)
        conditions = []
        if any(column.name == SOFT_DELETED for column in self.state.stored or ()):
            conditions.append(f"{SOFT_DELETED} IS NOT TRUE")
        if self.origin is not None and self.table.ingest is not None and self.table.ingest.origin is not None:
            name = standard_identifier(self.table.ingest.origin)
            conditions.append(f"{name} = {standard_literal(self.origin)}")
        return f"SELECT * FROM ({rows}) WHERE {' AND '.join(conditions)}" if conditions else rows


def lake_rows(table: SourceTable, uri: str, origin: str | None = None, *, perhaps_new: bool = False) -> LakeRows:
    """The rows of a table. Raises NodeError where it has not been ingested, and must have been."""
    rows = LakeRows(table, LakeHistory().state(uri), origin)
    if not rows.exists and not perhaps_new:
        raise NodeError(
            f"{table.table} has not been ingested yet",
            location=table.declared_at,
            hint=f"ingest it first: sml ingest -s source:{table.source_name}",
        )
    return rows


def with_hashes(side: Side) -> Side:
    """The side with the hashes of its rows kept, in the order of the key: they are computed once."""
    side.fetch(f"CREATE TABLE {_HASHED} AS {side.hashed_rows()} ORDER BY first_of_key")
    return replace(side, hashed=_HASHED)
