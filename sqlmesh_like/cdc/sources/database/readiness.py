"""Whether a database can be read: settings of the server, privileges, tables, each with the statement that helps.

Owns what is asked by SQL and what each answer means; `server` connects.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sqlmesh_like.cdc.sources.database.connector_settings import database_of, declared_table
from sqlmesh_like.cdc.sources.database.logged_rows import Problem, binlog_problems
from sqlmesh_like.cdc.sources.database.partitions import unlogged_parts
from sqlmesh_like.cdc.sources.database.server import Table, partitioned_above, versioned_tables
from sqlmesh_like.errors import MachineError, ProjectError, nearest
from sqlmesh_like.names import storable_name
from sqlmesh_like.project.nodes import DatabaseSettings, Source, SourceTable
from sqlmesh_like.sql_text import spark_identifier, standard_identifier, standard_literal

if TYPE_CHECKING:
    import sqlalchemy as sa


def problems(db: sa.Connection, settings: DatabaseSettings, tables: Sequence[Table]) -> tuple[Problem, ...]:
    """What keeps these tables from being read."""
    listed = _of_postgres(db, settings, tables) if settings.kind == "postgresql" else _of_mysql(db, settings, tables)
    return tuple(listed)


def require_ready(db: sa.Connection, settings: DatabaseSettings, tables: Sequence[Table]) -> None:
    """Raises MachineError that names all that is missing."""
    if not tables:
        raise ProjectError(
            f"{settings.address} has none of the tables that this source reads",
            location=settings.declared_at,
            hint="change `tables:` of the database, or `table:` of the declared ones; or let its user read them:"
            f" {_grant_all(db, settings)}",
        )
    if listed := "".join(f"\n  {problem}" for problem in problems(db, settings, tables)):
        raise MachineError(f"{settings.address} cannot be read:{listed}", location=settings.declared_at)


def require_declared(db: sa.Connection, source: Source, tables: Sequence[Table]) -> None:
    """Raises ProjectError for a declared table, not a pattern, that is not among the `tables` that its user sees.

    To be asked before the first snapshot: its rows would never come.
    """
    settings = database_of(source)
    met = {id(declared_table(source, each)) for each in tables}
    missing = [each for each in source.tables if id(each) not in met and _is_one_table(settings, each)]
    if missing:
        first = missing[0]
        assert first.ingest is not None
        near = nearest(first.ingest.table, [name for each in tables for name in {each.name, str(each)}])
        raise ProjectError(
            f"{settings.address} has no table {first.ingest.table} for {first.table}, or hides it from its user",
            location=first.declared_at,
            hint=near or f"change `table:`, or let the user read it: {_grant_all(db, settings)}",
        )
    require_keys(db, source, tables)


def require_keys(db: sa.Connection, source: Source, tables: Sequence[Table]) -> None:
    """Raises ProjectError where a declared key has a column that its table lacks: all rows would be refused."""
    for table in tables:
        declared = declared_table(source, table)
        if declared is not None:
            _require_key(db, declared, table)


def _require_key(db: sa.Connection, declared: SourceTable, table: Table) -> None:
    import sqlalchemy as sa

    assert declared.ingest is not None
    wanted = [name for name in declared.ingest.primary_key if name != declared.ingest.origin]
    own = {storable_name(name).lower() for name in table.key}
    if not {name.lower() for name in wanted} - own:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sa.exc.SAWarning)  # of a type that it does not know
        every = [str(each["name"]) for each in sa.inspect(db).get_columns(table.name, table.schema)]
    columns = [name for name in every if name not in table.generated]
    known = {
        spelling.lower() for each in columns for spelling in (storable_name(each), storable_name(each, ascii_only=True))
    }
    for name in wanted:
        if name.lower() not in known:
            raise ProjectError(
                f"primary_key of {declared.table} names {name!r}, which {table} does not have, or does not log",
                location=declared.declared_at,
                hint=nearest(name, columns) or f"its primary key is [{', '.join(table.key)}]",
            )


def _is_one_table(settings: DatabaseSettings, table: SourceTable) -> bool:
    wanted = table.ingest
    if wanted is None or not _ONE_TABLE.fullmatch(wanted.table) or settings.tables is not None:
        return False
    return wanted.database in (None, settings.database)


_ONE_TABLE = re.compile(r"\w+(\.\w+)?")


def notes(settings: DatabaseSettings, tables: Sequence[Table]) -> tuple[Problem, ...]:
    """What is worth knowing of tables that can be read."""
    if settings.kind == "postgresql":
        return generated_notes(tables)
    text = "has no primary key: unless the source declares one, updates and deletes of it are dead letters"
    name = "ALTER TABLE {} ADD PRIMARY KEY (…);"
    return tuple(Problem(f"{each} {text}", name.format(_mysql_name(each.name))) for each in tables if not each.key)


def generated_notes(tables: Sequence[Table]) -> tuple[Problem, ...]:
    """Columns of PostgreSQL that are left out, because its log lacks them."""
    text = "is generated: PostgreSQL does not log it, so that it is left out"
    return tuple(
        Problem(f"{table}.{name} {text}", "compute it in a model; what a lake has of it from before is not kept up")
        for table in tables
        for name in table.generated
    )


def _mysql_name(*parts: str) -> str:
    return ".".join(map(spark_identifier, parts))  # MySQL's quotes are the same


def _mysql_account(db: sa.Connection) -> str:
    """The account that the server took its user for, as a statement names it."""
    import sqlalchemy as sa

    user, _, host = str(db.execute(sa.text("select current_user()")).scalar_one()).rpartition("@")
    return f"{standard_literal(user)}@{standard_literal(host)}"


def _grant_all(db: sa.Connection, settings: DatabaseSettings) -> str:
    if settings.kind == "postgresql":
        return f"GRANT SELECT ON ALL TABLES IN SCHEMA … TO {standard_identifier(settings.user)};"
    return f"GRANT SELECT ON {_mysql_name(settings.database)}.* TO {_mysql_account(db)};"


def _of_mysql(db: sa.Connection, settings: DatabaseSettings, tables: Sequence[Table]) -> Iterator[Problem]:
    import sqlalchemy as sa

    yield from binlog_problems(db)
    account = _mysql_account(db)
    for table in tables:
        relation = _mysql_name(settings.database, table.name)
        if not _is_readable(db, relation):
            yield Problem(f"its user {account} may not read {table}", f"GRANT SELECT ON {relation} TO {account};")
    for name in sorted(versioned_tables(db, settings).intersection(table.name for table in tables)):
        yield Problem(
            f"{name} is system-versioned: its log has deletes as updates, and rows of its history",
            "take it out of the source (`tables:` of the database, or its declaration)",
        )
    grants = " ".join(str(row[0]).upper() for row in db.execute(sa.text("show grants")).all())
    if "ALL PRIVILEGES ON *.*" in grants:
        return
    for names_of_one in _PRIVILEGES:
        if not any(re.search(rf"\b{name}\b", grants) for name in names_of_one):
            yield Problem(
                f"its user {account} lacks {names_of_one[0]}", f"GRANT {names_of_one[0]} ON *.* TO {account};"
            )


def _is_readable(db: sa.Connection, relation: str) -> bool:
    """Whether all columns of a table may be read: privileges of roles, databases, tables and columns come together."""
    from sqlalchemy import exc

    try:
        db.exec_driver_sql(f"select * from {relation} limit 0")
    except (exc.OperationalError, exc.ProgrammingError) as error:
        if not re.search(r"\b114[23]\b", str(error.orig)):  # https://mariadb.com/kb/en/mariadb-error-code-reference/
            raise
        return False
    return True


_PRIVILEGES = (
    ("RELOAD",),
    ("REPLICATION SLAVE", "REPLICATION REPLICA"),
    ("REPLICATION CLIENT", "BINLOG MONITOR"),
)
"""What Debezium needs beside SELECT, each under all names that servers write.

Source: https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-creating-user
"""


def _of_postgres(db: sa.Connection, settings: DatabaseSettings, tables: Sequence[Table]) -> Iterator[Problem]:
    import sqlalchemy as sa

    def one(statement: str, **values: object) -> object:
        return db.execute(sa.text(statement), values).scalar_one()

    user, role = settings.user, standard_identifier(settings.user)
    if one("show wal_level") != "logical":
        yield Problem("wal_level is not logical", "ALTER SYSTEM SET wal_level = 'logical'; then restart it")
    if not one("select rolreplication or rolsuper from pg_roles where rolname = current_user"):
        yield Problem(f"its user {user} may not replicate", f"ALTER ROLE {role} REPLICATION;")
    may_publish = "has_database_privilege(current_database(), 'create')"
    if not one(f"select {may_publish} or exists (select from pg_publication where starts_with(pubname, 'sml_'))"):
        grant = f"GRANT CREATE ON DATABASE {standard_identifier(settings.database)} TO {role};"
        yield Problem(f"its user {user} may not create a publication", grant)
    # A table in a publication without any identity refuses updates and deletes at the source.
    statement = (
        "select n.nspname, c.relname, c.relreplident, has_table_privilege(c.oid, 'select'),"
        " pg_has_role(c.relowner, 'usage'), pg_get_userbyid(c.relowner), has_schema_privilege(n.oid, 'usage'),"
        " exists (select from pg_index x where x.indrelid = c.oid and x.indisprimary)"
        " from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'p')"
    )
    actual = {(schema, name): rest for schema, name, *rest in db.execute(sa.text(statement)).all()}
    hidden = dict.fromkeys(table.schema or "" for table in tables if not actual[table.schema, table.name][4])
    for schema in hidden:
        yield Problem(
            f"its user {user} may not use the schema {schema}",
            f"GRANT USAGE ON SCHEMA {standard_identifier(schema)} TO {role};",
        )
    for table in tables:
        identity, may_read, is_owner, owner, *_ = actual[table.schema, table.name]
        name = ".".join(map(standard_identifier, filter(None, (table.schema, table.name))))
        if not may_read:
            yield Problem(f"its user {user} may not read {table}", f"GRANT SELECT ON {name} TO {role};")
        if not is_owner:
            text = f"its user {user} cannot publish {table}, which another role owns"
            yield Problem(text, f"GRANT {standard_identifier(owner)} TO {role};")
        if not table.key and identity in ("d", "n", b"d", b"n"):
            yield Problem(f"{table} has no primary key", f"ALTER TABLE {name} REPLICA IDENTITY FULL;")
    names, keyless = set(map(str, tables)), {str(table) for table in tables if not table.key}
    for partition, above in partitioned_above(db).items():
        identity, *_, has_key = actual[partition]
        if not keyless.isdisjoint(above) and not has_key and identity in ("d", "n", b"d", b"n"):
            name = ".".join(map(standard_identifier, partition))
            text = f"the partition {'.'.join(partition)} has no primary key"
            yield Problem(text, f"ALTER TABLE {name} REPLICA IDENTITY FULL;")
    yield from (Problem(why, statement) for table, why, statement in unlogged_parts(db) if table in names)
