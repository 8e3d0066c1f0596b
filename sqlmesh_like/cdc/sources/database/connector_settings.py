"""The settings of Debezium's connectors and of its engine. Owns their names and values; `engine` hands them over.

https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-connector-properties and the same of
the other connectors.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterable, Mapping
from uuid import uuid4

from sqlmesh_like.cdc.sources.database.server import LogEnd, Table, password_of
from sqlmesh_like.cdc.sources.database.spool import Spool
from sqlmesh_like.cdc.sources.route import route
from sqlmesh_like.project.nodes import DatabaseSettings, Source, SourceTable
from sqlmesh_like.project.reading.patterns import matches_whole

MARKER = "sml"
_EXCLUDED, _INCLUDED = "column.exclude.list", "column.include.list"
_SHARED = {
    "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
    "offset.flush.interval.ms": "0",
    "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
    "include.schema.changes": "false",
    "tombstones.on.delete": "false",
    "skipped.operations": "none",  # Debezium leaves out truncates of its own accord
    "poll.interval.ms": "100",
    "max.batch.size": "8192",
    "max.queue.size": "32768",
    "max.queue.size.in.bytes": str(64 * 1024 * 1024),
    "converter.schemas.enable": "false",  # the spool has them once
    "converter.replace.null.with.default": "false",  # else a NULL in a column with a default reads as the default
    "record.processing.threads": "2",
}


def connector_settings(
    source: Source, spool: Spool, tables: Collection[Table], end: LogEnd | None, *, mariadb: bool, follows: bool
) -> dict[str, str]:
    """All settings of a source's connector, which reads these tables.

    `end`: where reading stops; `follows`: it does not stop.
    """
    settings = database_of(source)
    own = {
        "name": source.name,
        "topic.prefix": re.sub(r"\W", "_", source.name),
        "sml.folder": str(spool.folder),
        "sml.schemas": str(spool.schemas),
        "offset.storage.file.filename": str(spool.folder / "engine.offsets"),
        "schema.history.internal.file.filename": str(spool.folder / "schema_history"),
        "database.hostname": settings.host,
        "database.port": str(settings.port),
        "database.user": settings.user,
        "database.password": password_of(settings),
        "table.include.list": ",".join(_pattern(settings, table) for table in tables),
        "heartbeat.interval.ms": "1000",
        # Tried again in the same process, it would begin where the database may clean its log, and read events twice.
        "errors.max.retries": "0",
    }
    if settings.kind == "postgresql":
        own |= _of_postgres(source, settings, spool, follows=follows)
    else:
        own |= _of_mysql(spool, settings, end, mariadb=mariadb, follows=follows)
    return {**_SHARED, **own, **settings.options, **_without_generated(settings, tables)}


def _of_mysql(
    spool: Spool, settings: DatabaseSettings, end: LogEnd | None, *, mariadb: bool, follows: bool
) -> dict[str, str]:
    kind = "mariadb.MariaDb" if mariadb else "mysql.MySql"
    own = {
        "connector.class": f"io.debezium.connector.{kind}Connector",
        "database.include.list": re.escape(settings.database),
        # Two readers of one server must differ.
        "database.server.id": str(10_000 + zlib.crc32(str(spool.folder).encode()) % 2_000_000_000),
        "database.ssl.mode": "disable" if mariadb else "preferred",
        "bigint.unsigned.handling.mode": "precise",
        # `EventSpool.StatementLog` ends the engine where the statement may be one of these tables.
        "schema.history.internal.skip.unparseable.ddl": "true",
        "sml.database": settings.database,
        # How often the server says that there is nothing new; the client's own reconnecting would hide that it is away.
        "connect.keep.alive": "false",
        "connect.keep.alive.interval.ms": "1000",
    }
    if not follows and end is not None:
        own |= {"sml.end.file": end.file, "sml.end.position": str(end.position)}
        if end.gtids:
            own["sml.end.gtids"] = end.gtids
    return own


def _of_postgres(source: Source, settings: DatabaseSettings, spool: Spool, *, follows: bool) -> dict[str, str]:
    slot = slot_of(source, spool)
    marker = f"{MARKER}-{uuid4().hex}"  # of this process alone: the log may hold those of earlier ones
    own = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.dbname": settings.database,
        "plugin.name": "pgoutput",
        "slot.name": slot,
        "publication.name": slot,
        "publication.autocreate.mode": "filtered",
        "publish.via.partition.root": "true",  # a partitioned table is read as one
        "slot.max.retries": "6",
        "slot.retry.delay.ms": "2000",
        # Also lets the server clean its log while only other tables change.
        "heartbeat.action.query": f"select pg_logical_emit_message(true, '{marker}', '')",
    }
    return own if follows else {**own, "sml.marker": marker}


def _without_generated(settings: DatabaseSettings, tables: Iterable[Table]) -> dict[str, str]:
    """Leaves out columns that the log lacks, in snapshots too, of those that the source takes or leaves out."""
    excluded = [f"{_pattern(settings, table)}\\.{_quote_name(name)}" for table in tables for name in table.generated]
    if not excluded:
        return {}
    if (included := settings.options.get(_INCLUDED)) is not None:  # Debezium takes one of both lists alone
        others = f"(?!(?:{'|'.join(excluded)})$)"
        return {_INCLUDED: ",".join(f"{others}(?:{each.strip()})" for each in re.split(r"(?<!\\),", included))}
    return {_EXCLUDED: ",".join([*excluded, *filter(None, [settings.options.get(_EXCLUDED)])])}


def slot_of(source: Source, spool: Spool) -> str:
    """The name of a source's replication slot and publication, of this warehouse."""
    name = re.sub(r"[^a-z0-9_]", "_", source.name.lower())[:40]
    return f"sml_{name}_{zlib.crc32(str(spool.folder).encode()):08x}"


def publication_of(source: Source, spool: Spool) -> str:
    """The name of the publication that a source's connector reads."""
    return database_of(source).options.get("publication.name", slot_of(source, spool))


def database_of(source: Source) -> DatabaseSettings:
    """The database of a source that has one."""
    assert source.ingest is not None
    assert source.ingest.database is not None
    return source.ingest.database


def declared_table(source: Source, table: Table) -> SourceTable | None:
    """The declared table that takes the events of a table of the database. Raises ProjectError, as `route` does."""
    return route(source, database_of(source).database, table.schema, table.name)


def wanted_tables(source: Source, tables: Iterable[Table]) -> tuple[Table, ...]:
    """Those of the database's tables that the source reads; partitions with their table, where it is among them."""
    settings = database_of(source)
    patterns = settings.tables
    if patterns is None:
        assert source.ingest is not None
        if source.ingest.discover:
            return whole_tables(tables)
        patterns = tuple(table.ingest.table for table in source.tables if table.ingest)
    return whole_tables(table for table in tables if any(_matches(pattern, table) for pattern in patterns))


def whole_tables(tables: Iterable[Table]) -> tuple[Table, ...]:
    """These tables without those that are partitions of others of them."""
    listed = tuple(tables)
    names = frozenset(map(str, listed))
    return tuple(table for table in listed if names.isdisjoint(table.partition_of))


def _matches(pattern: str, table: Table) -> bool:
    return any(pattern == name or matches_whole(pattern, name) for name in (table.name, str(table)))


def _pattern(settings: DatabaseSettings, table: Table) -> str:
    """A table as Debezium's list of regular expressions names it; commas separate them.

    >>> _pattern(DatabaseSettings("mysql", "h", 1, "u", "shop"), Table(None, "a,b-c"))
    'shop\\\\.a\\\\x2cb\\\\-c'
    """
    return _quote_name(f"{table.schema or settings.database}.{table.name}")


def _quote_name(name: str) -> str:
    return re.sub(r"\W", lambda sign: r"\x2c" if sign[0] == "," else "\\" + sign[0], name)


def printable(settings: Mapping[str, str]) -> list[str]:
    """The settings as lines for the engine's standard input."""
    return [f"{name}\t{value}" for name, value in settings.items() if "\n" not in value]
