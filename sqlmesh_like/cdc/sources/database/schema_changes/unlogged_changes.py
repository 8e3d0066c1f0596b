"""Tables whose rows or values have changed without an event, by the record of statements or by the catalog.

Owns which tables of a source have to be read again for that; `capture` has them read at the right time.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlmesh_like.cdc.sources.database.connector_settings import database_of, declared_table
from sqlmesh_like.cdc.sources.database.partitions import keeps_rows
from sqlmesh_like.cdc.sources.database.read_tables import ReadTables
from sqlmesh_like.cdc.sources.database.schema_changes.table_layouts import TableLayout, why_values_changed
from sqlmesh_like.cdc.sources.database.schema_history import made_tables
from sqlmesh_like.cdc.sources.database.server import Table
from sqlmesh_like.cdc.sources.database.spool import Spool
from sqlmesh_like.errors import IngestError
from sqlmesh_like.names import storable_name
from sqlmesh_like.project.nodes import Source

_log = logging.getLogger("sqlmesh_like.cdc")


@dataclass(frozen=True)
class StatementsOfTables:
    """Statements of a binary log after which tables are to be read again, by the tables' names in lower case.

    `places`: where in the log the newest ones are; `clauses`: by which of them values may have changed.
    """

    places: Mapping[str, str]
    clauses: Mapping[str, str]

    def warn(self, names: Collection[str], record: ReadTables) -> None:
        """Say why these tables, which were complete in a record, are read again."""
        for name in sorted(names):
            clause, place = self.clauses.get(name.lower()), self.places[name.lower()].rpartition(" ")[2]
            if clause is not None and place not in record.made.get(name.lower(), ""):
                warn_of_changed_values(name, clause)


def warn_of_changed_values(name: str, why: str) -> None:
    """Say why a table is read again."""
    _log.warning("values of %s may have changed without a word in the log: it is read again (%s)", name, why[:200])


def statements_of_tables(
    spool: Spool, source: Source, tables: Sequence[Table], size: int | None = None
) -> StatementsOfTables:
    """The statements about these tables. With `deletes: retention` rows of partitions stay.

    `size`: so much of the record of statements is looked at, as `ReadTables.statements` says.

    Raises IngestError where the engine reads changes of one of the tables with columns of a former one.
    """
    settings = database_of(source)
    made = made_tables(spool, settings.database, columns_without_defaults(source, tables), size)
    if replaced := [table.name for table in tables if table.name.lower() in made.replaced]:
        raise IngestError(
            f"{settings.address} has changed the columns of {', '.join(replaced)} by CREATE OR REPLACE TABLE, or within"
            " a comment (/*! … */): Debezium does not follow that",
            location=source.declared_at,
            hint=f"sml ingest -s source:{source.name} --from earliest reads all of its tables again",
        )
    keep = {table.name.lower() for table in tables if keeps_rows(source, table)}
    emptied = {name: at for name, at in made.emptied.items() if name not in keep}
    # Lakes of earlier versions have recorded places without the last part.
    places = {
        name: f"{made.anew.get(name)} {emptied.get(name)}"
        + (f" {made.rewritten[name]}" if name in made.rewritten else "")
        for name in made.anew.keys() | emptied.keys() | made.rewritten.keys()
    }
    return StatementsOfTables(places, made.clauses)


def columns_without_defaults(source: Source, tables: Sequence[Table]) -> dict[str, frozenset[str]]:
    """The tables whose rows in the lake get the default that events state for a new column, by name in lower case.

    With the columns that get none, because the lake has them already. Tables that share one of the lake are not among
    them: the default of one of them would become that of all rows.
    """
    assert source.ingest is not None
    routed = [(table, declared_table(source, table)) for table in tables]
    result = {}
    for table, declared in routed:
        if declared is None or declared.ingest is None or source.ingest.on_schema_change != "evolve":
            continue
        if sum(other is declared for _, other in routed) == 1:
            partition = declared.ingest.partition_by.field if declared.ingest.partition_by else None
            names = (*(each.name for each in declared.columns), *declared.renamed, partition, declared.ingest.origin)
            result[str(table).lower()] = frozenset(name.lower() for name in names if name)
    return result


def changed_layouts(
    source: Source, tables: Sequence[Table], record: ReadTables, layouts: Mapping[str, TableLayout]
) -> dict[str, str]:
    """Tables of PostgreSQL that have other `layouts` than those recorded when they were read, and why that matters."""
    declared, changed = columns_without_defaults(source, tables), {}
    for table in tables:
        name = str(table).lower()
        before, now = record.layouts.get(name), layouts.get(name)
        if before is None or now is None or (before.table != now.table and str(table) not in record.complete):
            continue  # another table of the same name is read as a new one
        if why := why_values_changed(before, now, declared.get(name), needs_full=_needs_full(source, table)):
            changed[str(table)] = why
    return changed


def _needs_full(source: Source, table: Table) -> bool:
    """Whether the declared key has columns that the table's primary key has not.

    Of a table without one, PostgreSQL refuses to delete rows that it would log without a key.
    """
    declared = declared_table(source, table)
    if declared is None or declared.ingest is None or not table.key:
        return False
    known = {storable_name(name).lower() for name in table.key}
    own = {name.lower() for name in declared.ingest.primary_key if name != declared.ingest.origin}
    return not own <= known
