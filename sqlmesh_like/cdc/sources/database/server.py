"""Questions to a database by SQL: is it ready to be read, which tables has it, where does its log end.

Owns the statements and what each answer means. SQLAlchemy and the drivers are the extra `database`.
"""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlmesh_like.errors import MachineError, SmlError
from sqlmesh_like.project.nodes import DatabaseSettings
from sqlmesh_like.sql_text import standard_identifier

if TYPE_CHECKING:
    import sqlalchemy as sa


class DatabaseAwayError(MachineError):
    """A database that does not answer, perhaps not for long."""


PASSWORD_VARIABLE = "SML_DATABASE_PASSWORD"
_DRIVERS = {"mysql": "mysql+pymysql", "postgresql": "postgresql+psycopg"}
_PACKAGES = "pip install 'sqlmesh_like[database]'"
_SECONDS = 10
_REFUSED = re.compile(r"1045|access denied|password authentication failed|no password supplied|28P01|28000", re.I)


@dataclass(frozen=True)
class Table:
    """A table of the database. `schema`: PostgreSQL's, else None. `key`: the columns of its primary key.

    `partition_of`: the partitioned tables of PostgreSQL (`schema.table`) whose rows its rows are, too. `generated`:
    columns that PostgreSQL computes, of which its log has nothing, so that they are not read.
    """

    schema: str | None
    name: str
    key: tuple[str, ...] = ()
    comment: str = ""
    columns: tuple[TableColumn, ...] = field(default=(), repr=False)
    partition_of: frozenset[str] = frozenset()
    generated: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


@dataclass(frozen=True)
class TableColumn:
    """A column as the database describes it."""

    name: str
    type: str
    comment: str = ""


@dataclass(frozen=True)
class LogEnd:
    """The end of a binary log. `gtids`: the transactions up to there; empty where they have no global identifiers."""

    file: str
    position: int
    gtids: str = ""


def password_of(settings: DatabaseSettings) -> str:
    """The declared password, or that of the environment."""
    return settings.password if settings.password is not None else os.environ.get(PASSWORD_VARIABLE, "")


@contextmanager
def connect(settings: DatabaseSettings) -> Iterator[sa.Connection]:
    """A connection. Raises MachineError, without the password, where there is none."""
    try:
        import sqlalchemy as sa
        from sqlalchemy import exc
        from sqlalchemy.pool import NullPool

        address = sa.URL.create(
            _DRIVERS[settings.kind],
            settings.user,
            password_of(settings) or None,
            settings.host,
            settings.port,
            settings.database,
        )
        limits = {"connect_timeout": _SECONDS}
        if settings.kind == "mysql":
            limits["read_timeout"] = _SECONDS  # the other limit ends when the connection is open
        engine = sa.create_engine(address, poolclass=NullPool, hide_parameters=True, connect_args=limits)
    except ImportError as error:
        raise MachineError(f"reading a database needs a Python package: {error}", hint=_PACKAGES) from None
    try:
        with engine.connect() as connection:
            if settings.kind == "mysql":  # it has answered: a query may take longer
                connection.connection.driver_connection._read_timeout = None  # type: ignore[union-attr]
            yield connection
    except exc.DBAPIError as error:
        raise database_error(settings, str(error.orig)) from None


def database_error(settings: DatabaseSettings, said: str) -> SmlError:
    """What the database or its driver says, as an error with advice."""
    text = " ".join(said.split())[:400]
    where = {"location": settings.declared_at}
    user = re.search(r"\b1044\b.*?for user ('[^']*'@'[^']*')", text)
    if user:
        grant = f"GRANT SELECT ON `{settings.database}`.* TO {user[1]};"
        text = f"{settings.address}: its user may not read the database, or there is none of this name: {text}"
        return MachineError(text, hint=grant, **where)
    if re.search("permission denied for database", text, re.I):
        grant = f'GRANT CONNECT ON DATABASE "{settings.database}" TO "{settings.user}";'
        return MachineError(f"{settings.address}: {text}", hint=grant, **where)
    if _REFUSED.search(text):
        hint = f"set {PASSWORD_VARIABLE}, or `password:` to an environment variable"
        return MachineError(f"{settings.address} refuses this user or password: {text}", hint=hint, **where)
    if re.search(r"1049|unknown database|does not exist", text, re.I):
        return MachineError(f"{settings.address}: {text}", hint="change the database in `url:`", **where)
    if re.search(r"1227|1142|permission denied|must be superuser", text, re.I):
        return MachineError(f"{settings.address}: {text}", hint="`sml debug` says which privilege is missing", **where)
    return DatabaseAwayError(
        f"{settings.address} does not answer: {text}", hint="start it, or change host and port in `url:`", **where
    )


def log_end(db: sa.Connection) -> LogEnd | None:
    """The end of the binary log; None in PostgreSQL, which is told by a message in its log."""
    import sqlalchemy as sa
    from sqlalchemy import exc

    if db.dialect.name == "postgresql":
        return None
    for statement in ("show master status", "show binary log status"):
        try:
            row = db.execute(sa.text(statement)).first()
        except exc.ProgrammingError:  # MySQL 8.4 knows only the second one
            continue
        if row is None:
            return None
        file, position, gtids = str(row[0]), int(row[1]), str(row[4]) if len(row) > 4 else ""
        if is_mariadb(db):
            known = sa.text("select binlog_gtid_pos(:file, :position)")
            gtids = db.execute(known, {"file": file, "position": position}).scalar_one() or ""
        return LogEnd(file, position, "".join(gtids.split()))
    return None


def drop_slot(db: sa.Connection, settings: DatabaseSettings, slot: str) -> None:
    """Drop a replication slot that no position goes with, if it is there.

    Debezium takes a snapshot that fits to the log exactly only with a slot that it creates. Raises MachineError where
    another process uses it.
    """
    import sqlalchemy as sa

    where = "from pg_replication_slots where slot_name = :slot"
    for _ in range(_SECONDS * 2):
        active = db.execute(sa.text(f"select active {where}"), {"slot": slot}).scalar_one_or_none()
        if not active:  # an engine that was killed may still be connected for a moment
            db.execute(sa.text(f"select pg_drop_replication_slot(slot_name) {where}"), {"slot": slot})
            db.commit()
            return
        db.rollback()
        time.sleep(0.5)
    raise MachineError(f"{settings.address}: another process reads the replication slot {slot}")


def published_tables(db: sa.Connection, publication: str) -> frozenset[str] | None:
    """The tables (`schema.table`) whose changes PostgreSQL publishes by name; None: all of them, or none yet."""
    import sqlalchemy as sa

    every = db.execute(
        sa.text("select puballtables from pg_publication where pubname = :name"), {"name": publication}
    ).scalar_one_or_none()
    if every is None or every:
        return None
    named = (
        "select n.nspname || '.' || c.relname from pg_publication p join pg_publication_rel r on r.prpubid = p.oid"
        " join pg_class c on c.oid = r.prrelid join pg_namespace n on n.oid = c.relnamespace where p.pubname = :name"
    )
    return frozenset(db.execute(sa.text(named), {"name": publication}).scalars())


def publish_tables(db: sa.Connection, publication: str, tables: Iterable[Table]) -> None:
    """Let PostgreSQL publish the changes of further tables from now on."""
    names = ", ".join(
        f"{standard_identifier(table.schema or '')}.{standard_identifier(table.name)}" for table in tables
    )
    statement = f"alter publication {standard_identifier(publication)} add table {names}"
    db.exec_driver_sql(statement.replace("%", "%%"))
    db.commit()


def is_mariadb(db: sa.Connection) -> bool:
    """Whether the server is MariaDB, which has a connector of its own."""
    return bool(getattr(db.dialect, "is_mariadb", False))


def tables_of(db: sa.Connection, settings: DatabaseSettings, *, with_columns: bool = False) -> tuple[Table, ...]:
    """All tables of the database, in order of their names."""
    import sqlalchemy as sa

    inspector = sa.inspect(db)
    hidden = ("information_schema", "pg_catalog", "pg_toast")
    is_postgres = settings.kind == "postgresql"
    schemas = [name for name in inspector.get_schema_names() if name not in hidden] if is_postgres else [None]
    above = partitioned_above(db) if is_postgres else {}
    generated = generated_columns(db) if is_postgres else {}
    tables = []
    for schema in schemas:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sa.exc.SAWarning)  # of a type that it does not know: its events state it
            keys = inspector.get_multi_pk_constraint(schema=schema)
            comments = inspector.get_multi_table_comment(schema=schema)
            columns = inspector.get_multi_columns(schema=schema) if with_columns else {}
        for place, key in keys.items():
            described = tuple(
                TableColumn(str(each["name"]), _type_text(each["type"], db.dialect), each.get("comment") or "")
                for each in columns.get(place, ())
            )
            comment = (comments.get(place) or {"text": None})["text"] or ""
            names, at = tuple(key.get("constrained_columns") or ()), (schema or "", place[1])
            unlogged = tuple(name for name in generated.get(at, ()) if name not in names)
            described = tuple(column for column in described if column.name not in unlogged)
            tables.append(
                Table(schema, place[1], names, comment, described, above.get(at, frozenset()), generated=unlogged)
            )
    return tuple(sorted(tables, key=lambda table: (table.schema or "", table.name)))


def versioned_tables(db: sa.Connection, settings: DatabaseSettings) -> frozenset[str]:
    """The tables of which MariaDB keeps former rows (`SYSTEM VERSIONING`): its log has their deletes as updates."""
    import sqlalchemy as sa

    if settings.kind != "mysql":
        return frozenset()
    query = "select table_name from information_schema.tables where table_schema = :database and table_type = :kind"
    names = db.execute(sa.text(query), {"database": settings.database, "kind": "SYSTEM VERSIONED"}).scalars()
    return frozenset(map(str, names))


def generated_columns(db: sa.Connection) -> dict[tuple[str, str], list[str]]:
    """The columns that PostgreSQL computes, of each table that has such, by its schema and name."""
    import sqlalchemy as sa

    query = (
        "select n.nspname, c.relname, array_agg(a.attname::text order by a.attnum) from pg_attribute a"
        " join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace"
        " where c.relkind in ('r', 'p') and a.attgenerated <> '' and not a.attisdropped group by 1, 2"
    )
    return {(schema, name): columns for schema, name, columns in db.execute(sa.text(query))}


def partitioned_above(db: sa.Connection) -> dict[tuple[str, str], frozenset[str]]:
    """The partitioned tables that each partition belongs to, by its schema and name."""
    import sqlalchemy as sa

    query = (
        "select n.nspname, c.relname, array(select an.nspname || '.' || a.relname from pg_partition_ancestors(c.oid) t"
        " join pg_class a on a.oid = t.relid join pg_namespace an on an.oid = a.relnamespace where a.oid <> c.oid)"
        " from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " where c.relispartition and c.relkind in ('r', 'p')"
    )
    return {(schema, name): frozenset(above) for schema, name, above in db.execute(sa.text(query))}


def unreadable_columns(db: sa.Connection, settings: DatabaseSettings) -> dict[str, str]:
    """Tables of a MariaDB that Debezium cannot read, each with the column whose type its grammar does not know."""
    import sqlalchemy as sa

    if settings.kind != "mysql":
        return {}
    query = (
        "select table_name, concat(column_name, ' ', data_type) from information_schema.columns"
        " where table_schema = :database and data_type in ('inet4', 'inet6') order by ordinal_position desc"
    )
    return {row[0]: row[1] for row in db.execute(sa.text(query), {"database": settings.database})}


def _type_text(type_: sa.types.TypeEngine[Any], dialect: sa.Dialect) -> str:
    """The type as the database declares it. In PostgreSQL a type of the user's may have the name of another one.

    >>> from sqlalchemy.dialects import mysql
    >>> _type_text(mysql.BIGINT(unsigned=True), mysql.dialect())
    'BIGINT UNSIGNED'
    """
    from sqlalchemy.exc import CompileError

    try:
        return str(type_) if dialect.name == "postgresql" else type_.compile(dialect=dialect)
    except CompileError:  # unknown to SQLAlchemy
        return ""
