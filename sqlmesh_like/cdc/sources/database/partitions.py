"""Partitioned tables of PostgreSQL. Owns what the catalog says of partitions that the log does not.

A partitioned table is read as one table: its changes are published as its own, not as those of its partitions
(`publish_via_partition_root`). What no event says: rows come with a partition that is attached, and go with one that is
detached, dropped or truncated.
https://www.postgresql.org/docs/current/sql-createpublication.html
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlmesh_like.cdc.sources.database.connector_settings import database_of, declared_table, publication_of
from sqlmesh_like.cdc.sources.database.read_tables import ReadTables
from sqlmesh_like.cdc.sources.database.server import Table
from sqlmesh_like.cdc.sources.database.spool import Spool
from sqlmesh_like.errors import MachineError, ProjectError
from sqlmesh_like.project.nodes import Source
from sqlmesh_like.sql_text import standard_identifier

if TYPE_CHECKING:
    import sqlalchemy as sa

# An attached partition has its row of `pg_inherits` from a transaction of its own; a truncated or rewritten one other
# files. Both stay on a standby that takes over.
_PARTITIONS = """
select n.nspname || '.' || r.relname, (
    select coalesce(string_agg(c.oid || ':' || i.xmin || ':' || c.relfilenode, ' ' order by c.oid), '')
    from pg_partition_tree(r.oid) t join pg_class c on c.oid = t.relid join pg_inherits i on i.inhrelid = c.oid
    where t.level > 0
)
from pg_class r join pg_namespace n on n.oid = r.relnamespace where r.relkind = 'p'
"""
_LEAVES = """
select c.oid, n.nspname, c.relname,
    has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select')
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'r' and c.oid::text = any(:oids) order by c.oid
"""


def require_one_of_each(source: Source, tables: Sequence[Table], wanted: Collection[Table]) -> None:
    """Raises ProjectError where a declared table is a partition of a `wanted` one, whose changes it shares."""
    whole = {str(table): table for table in wanted}
    for table in tables:
        for root in table.partition_of & whole.keys():
            declared = declared_table(source, table)
            if declared is None or declared.meta.get("discovered"):
                continue
            if declared is not declared_table(source, whole[root]):
                raise ProjectError(
                    f"{declared.table} reads {table}, a partition of {root}, which the source reads, too",
                    location=declared.declared_at,
                    hint=f"declare one of them: PostgreSQL publishes each change once, as one of {root}",
                )


def publish_whole(db: sa.Connection, source: Source, spool: Spool) -> None:
    """Let changes of partitions be published as those of their table from now on.

    Raises MachineError where the publication is not the source's own.
    """
    import sqlalchemy as sa

    publication = publication_of(source, spool)
    query = sa.text("select pubviaroot from pg_publication where pubname = :name")
    if db.execute(query, {"name": publication}).scalar_one_or_none() is not False:  # there is none yet: the engine's
        return
    statement = f"alter publication {standard_identifier(publication)} set (publish_via_partition_root = true)"
    settings = database_of(source)
    if "publication.name" in settings.options:
        text = f"{settings.address}: the publication {publication} names partitions instead of their tables"
        raise MachineError(text, location=settings.declared_at, hint=f"{statement};")
    db.exec_driver_sql(statement.replace("%", "%%"))
    db.commit()


def partitions_of(db: sa.Connection, tables: Iterable[Table]) -> dict[str, str]:
    """The partitions of each partitioned table, by its name in lower case, as `read_tables` records them.

    Each partition is `oid:attached:files`: where one of these differs, its rows may be others than before.
    """
    import sqlalchemy as sa

    names = set(map(str, tables))
    return {name.lower(): states for name, states in db.execute(sa.text(_PARTITIONS)) if name in names}


@dataclass(frozen=True)
class UnreadPartitions:
    """What a record lacks of the partitioned tables that are complete in it; others are read as a whole anyway.

    `whole`: tables that must be read again; `rows`: queries for rows of new partitions, by table; `up_to_date`: those
    of which nothing is to be read.
    """

    whole: frozenset[str]
    rows: Mapping[Table, str]
    up_to_date: frozenset[str]


def unread_partitions(
    db: sa.Connection, source: Source, tables: Iterable[Table], record: ReadTables, partitions: Mapping[str, str]
) -> UnreadPartitions:
    """Compare the `partitions` of tables with those that they had when their rows were read.

    With `deletes: retention` rows of partitions that are gone stay.
    """
    whole, rows, up_to_date = set[str](), dict[Table, str](), set[str]()
    for table in tables:
        name = str(table).lower()
        if name not in partitions or str(table) not in record.complete:
            continue
        before, now = record.made.get(name), partitions[name]
        if before is None or (has_lost_rows(before, now) and not keeps_rows(source, table)):
            whole.add(str(table))
        elif not (added := new_partitions(before, now)) or (query := rows_query(db, table, added)) is None:
            up_to_date.add(str(table))
        elif re.fullmatch(r"\w+", f"{table.schema}{table.name}", re.ASCII):
            rows[table] = query
        else:  # Debezium's settings take no query for a table with other signs in its name
            whole.add(str(table))
    return UnreadPartitions(frozenset(whole), rows, frozenset(up_to_date))


def has_lost_rows(before: str, now: str) -> bool:
    """Whether a partition is gone, or was truncated, rewritten or attached again.

    >>> has_lost_rows("1:7:20", "1:7:20 2:9:30"), has_lost_rows("1:7:20", "1:7:21")
    (False, True)
    """
    return not set(before.split()) <= set(now.split())


def new_partitions(before: str, now: str) -> frozenset[str]:
    """The ids of partitions that were not there in this form.

    >>> new_partitions("1:7:20", "1:7:20 2:9:30")
    frozenset({'2'})
    """
    return frozenset(state.partition(":")[0] for state in set(now.split()) - set(before.split()))


def keeps_rows(source: Source, table: Table) -> bool:
    """Whether rows that go with a partition stay in the lake (`deletes: retention`)."""
    declared = declared_table(source, table)
    return bool(declared and declared.ingest and declared.ingest.deletes == "retention")


def rows_query(db: sa.Connection, table: Table, partitions: Collection[str]) -> str | None:
    """A query for the rows of some partitions, with the columns of their table; None where they have no rows."""
    import sqlalchemy as sa

    columns = ", ".join(
        standard_identifier(str(each["name"])) for each in sa.inspect(db).get_columns(table.name, table.schema)
    )
    whole = f"{standard_identifier(table.schema or '')}.{standard_identifier(table.name)}"
    relations = [
        # The right to read the table is sufficient, but then the server reads all of it.
        f"{standard_identifier(schema)}.{standard_identifier(name)}" if may_read else f"{whole} where tableoid = {oid}"
        for oid, schema, name, may_read in db.execute(sa.text(_LEAVES), {"oids": sorted(partitions)})
    ]
    filled = [each for each in relations if _has_rows(db, each)]
    return " union all ".join(f"select {columns} from {each}" for each in filled) or None


def _has_rows(db: sa.Connection, relation: str) -> bool:
    query = f"select exists (select from {relation})".replace("%", "%%")
    return bool(db.exec_driver_sql(query).scalar_one())


def unlogged_parts(db: sa.Connection) -> Iterator[tuple[str, str, str]]:
    """Tables (`schema.table`) with rows that PostgreSQL does not log as theirs: why, and a statement that helps."""
    import sqlalchemy as sa

    query = (
        "select pn.nspname, p.relname, n.nspname, c.relname, p.relkind::text, c.relkind::text,"
        " c.relpersistence::text"
        " from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_namespace n on n.oid = c.relnamespace"
        " cross join lateral (select relid from pg_partition_ancestors(c.oid) union select i.inhparent) t"
        " join pg_class p on p.oid = t.relid and p.oid <> c.oid join pg_namespace pn on pn.oid = p.relnamespace"
        " where c.relkind = 'f' or c.relpersistence <> 'p' or not c.relispartition order by 1, 2, 3, 4"
    )
    for parent_schema, parent, schema, name, above, kind, persistence in db.execute(sa.text(query)):
        own, table = f"{standard_identifier(schema)}.{standard_identifier(name)}", f"{parent_schema}.{parent}"
        quoted = f"{standard_identifier(parent_schema)}.{standard_identifier(parent)}"
        if above != "p":
            why = f"{schema}.{name} inherits from {table}: its rows count as rows of that, their changes do not"
            yield table, why, f"ALTER TABLE {own} NO INHERIT {quoted};"
        elif kind == "f":
            why = f"the partition {schema}.{name} of {table} is a foreign table: its changes are not logged"
            yield table, why, f"ALTER TABLE {quoted} DETACH PARTITION {own};"
        elif persistence != "p":
            why = f"the partition {schema}.{name} of {table} is unlogged"
            yield table, why, f"ALTER TABLE {own} SET LOGGED;"
