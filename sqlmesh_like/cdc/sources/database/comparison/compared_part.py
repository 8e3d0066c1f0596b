"""One table of the database beside its rows in the lake. Owns only what belongs to such a pair."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlmesh_like.cdc.sources.database.column_types import spark_type
from sqlmesh_like.cdc.sources.database.comparison.columns import ComparedColumns, compared_columns
from sqlmesh_like.cdc.sources.database.comparison.dialects import DATABASES
from sqlmesh_like.cdc.sources.database.comparison.lake_rows import LakeRows, lake_rows
from sqlmesh_like.cdc.sources.database.comparison.side import Fetch, Key, Side
from sqlmesh_like.cdc.sources.database.comparison.unread_log import read_segments
from sqlmesh_like.cdc.sources.database.connector_settings import database_of
from sqlmesh_like.cdc.sources.database.server import Table
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.names import Column, storable_name
from sqlmesh_like.project.nodes import SourceTable
from sqlmesh_like.sql_text import standard_literal


@dataclass(frozen=True)
class ComparedPart:
    """A table of the database with its rows in the lake, and the columns of both.

    `read`: the segments of the spool that the lake's table had read before.
    """

    origin: Table
    lake: LakeRows
    columns: ComparedColumns
    database: Side
    read: frozenset[int]

    def database_asked_by(self, fetch: Fetch) -> Side:
        """The database's side on another connection."""
        return replace(self.database, fetch=fetch)


@dataclass(frozen=True)
class DifferentKeys:
    """The keys of a part whose rows differ, for which the log has no change that the table has not read."""

    part: ComparedPart
    keys: tuple[Key, ...]


def compared_part(
    place: SourcePaths, table: SourceTable, origin: Table, fetch: Fetch, *, perhaps_new: bool = False
) -> ComparedPart:
    """A table of the database beside its rows in the lake. Raises SmlError where it has no key that both sides have.

    `perhaps_new`: a table that has not been ingested has the types that its events will have; else it is an error.
    """
    settings, ingest = database_of(place.source), table.ingest
    assert ingest is not None
    dialect, schema = DATABASES[settings.kind], origin.schema or settings.database
    read = read_segments(place, table)  # before the table: what it has read since is only counted as unread
    shard = f"{schema}.{origin.name}" if origin.schema is None else f"{settings.database}.{schema}.{origin.name}"
    lake = lake_rows(table, place.table_uri(table), shard if ingest.origin else None, perhaps_new=perhaps_new)
    names = {"schema": standard_literal(schema), "table": standard_literal(origin.name)}
    declared = [(str(name), str(type_)) for name, type_ in fetch(dialect.columns.format(**names))]
    new = tuple(Column(storable_name(name), spark_type(type_)) for name, type_ in declared)
    stored = lake.schema if lake.exists else new
    columns = compared_columns(settings.kind, table, declared, stored, origin.generated)
    relation = f"{dialect.name(schema)}.{dialect.name(origin.name)}"
    return ComparedPart(origin, lake, columns, Side(dialect, relation, columns.database, columns.key, fetch), read)
