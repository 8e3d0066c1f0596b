"""Any database that SQLAlchemy supports. Owns the order of statements that makes a publication atomic for readers.

Rows are loaded in batches, changed ones through a temporary table, in the transaction that also stores their commit:
every reader sees either the old rows or the new ones. No statement is specific to a dialect except the exchange of
two tables, which is needed where columns were removed or changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateColumn

from sqlmesh_like.errors import MachineError, NodeError, ProjectError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.project.publishing import Destination
from sqlmesh_like.publish.columns import converter, database_type
from sqlmesh_like.publish.store import DELETED_COLUMN, KEY_COLUMN, STATE, Published, columns_from, foreign, overtaken
from sqlmesh_like.remedies import remedy
from sqlmesh_like.run.ports import Export

_NEW, _OLD = "__sml_new", "__sml_old"
_IMPLICIT_COMMIT = ("mysql", "mariadb", "oracle")
"""Databases in which DDL commits the transaction."""
_INNODB: dict[str, Any] = {"mysql_engine": "InnoDB", "mariadb_engine": "InnoDB"}


class DatabaseStore:
    """One database, or one schema in it."""

    def __init__(self, destination: Destination) -> None:
        self._name = destination.name
        self._schema = destination.schema
        self._engine = _engine(destination)
        self._state = sa.Table(
            STATE, sa.MetaData(schema=self._schema),
            sa.Column("table_name", sa.String(255), primary_key=True), sa.Column("model", sa.String(500)),
            sa.Column("uri", sa.Text), sa.Column("frontier", sa.String(80)), sa.Column("columns", sa.Text),
            sa.Column("published_at", sa.DateTime), **_INNODB,
        )  # fmt: skip

        self._shared: sa.Connection | None = None
        self._changes = 0

    @contextmanager
    def together(self) -> Iterator[None]:
        with self._translate_errors(), self._engine.connect() as db:
            if db.dialect.name in _IMPLICIT_COMMIT:  # tables are created meanwhile, which a snapshot would not have
                db.execution_options(isolation_level="READ COMMITTED")
            with db.begin():
                self._shared = db
                try:
                    yield
                finally:
                    self._shared = None
                fault_point("publish.together")

    @contextmanager
    def _connect(self) -> Iterator[sa.Connection]:
        if self._shared is not None:
            yield self._shared
            return
        with self._engine.connect() as db:
            yield db

    @contextmanager
    def _ddl_connection(self, db: sa.Connection) -> Iterator[sa.Connection]:
        """A connection for DDL that must not commit what is written together."""
        if db is self._shared and db.dialect.name in _IMPLICIT_COMMIT:
            with self._engine.connect() as own:
                yield own
        else:
            yield db

    def _begin(self, db: sa.Connection) -> AbstractContextManager[object]:
        return nullcontext() if db is self._shared else db.begin()

    def close(self) -> None:
        self._engine.dispose()

    def read_published(self, table: str) -> Published | None:
        with self._translate_errors(), self._connect() as db:
            row = None
            if sa.inspect(db).has_table(STATE, schema=self._schema):
                row = db.execute(sa.select(self._state).where(self._state.c.table_name == table)).first()
            if row is None:
                if sa.inspect(db).has_table(table, schema=self._schema):
                    raise foreign(table, self._name)
                return None
            published = Published(row.model, row.uri, row.frontier, columns_from(row.columns))
            # If the table was dropped or its columns were changed, all of it is written again.
            return published if self._has(db, table, published.columns) else replace(published, frontier=None)

    def write(self, table: str, export: Export, old: Published | None, new: Published) -> None:
        with self._translate_errors(), self._connect() as db:
            target = self._table(table, export.schema)
            with self._ddl_connection(db) as own:
                self._claim(own, table, old, new)
                if export.whole and self._needs_exchange(own, target, old):
                    self._exchange(own, target, export, new)
                    return
            with self._begin(db):
                if not export.whole:
                    self._mark(db, table, old, new)
                    self._follow(db, target, export)
                    fault_point("publish.written")
                    return
                # Before DDL: SQLite's driver begins a transaction only with the first DML statement.
                self._mark(db, table, None, new)
                self._widen(db, target)
                db.execute(sa.delete(target))
                self._load(db, target, export)
                fault_point("publish.written")

    def _claim(self, db: sa.Connection, table: str, old: Published | None, new: Published) -> None:
        """Record a new table's name before the table is created: a crash must not leave a table of unknown origin."""
        with self._begin(db):
            if self._schema and not sa.inspect(db).has_schema(self._schema):
                db.execute(sa.schema.CreateSchema(self._schema))
            self._state.create(db, checkfirst=True)
            if old is None:
                values = {"table_name": table, "model": new.model, "uri": new.uri, "columns": "[]"}
                db.execute(sa.insert(self._state).values(**values))

    def _needs_exchange(self, db: sa.Connection, target: sa.Table, old: Published | None) -> bool:
        """Whether the table must be replaced: columns were removed or changed, or added where DDL commits.

        A table that does not exist is created.
        """
        with self._begin(db):
            if not sa.inspect(db).has_table(target.name, schema=self._schema):
                target.create(db)  # empty until its rows are loaded
                return False
            known, wanted = old.columns if old else (), _columns(target)
            is_widened = set(known) <= set(wanted) and db.dialect.name not in _IMPLICIT_COMMIT
            return not self._has(db, target.name, known) or not (known == wanted or is_widened)

    def _widen(self, db: sa.Connection, target: sa.Table) -> None:
        """Add the columns that the table lacks, which keeps grants and views."""
        known = {column["name"] for column in sa.inspect(db).get_columns(target.name, schema=self._schema)}
        for column in target.columns:
            if column.name not in known:
                spelt = CreateColumn(column).compile(dialect=db.dialect)
                db.exec_driver_sql(f"ALTER TABLE {self._quote_table(db, target)} ADD COLUMN {spelt}")

    def _exchange(self, db: sa.Connection, target: sa.Table, export: Export, new: Published) -> None:
        """Load a new table with the new columns and exchange it with the old one atomically."""
        beside, aside = self._table(target.name + _NEW, export.schema), self._table(target.name + _OLD, export.schema)
        with self._begin(db):
            beside.drop(db, checkfirst=True)
            aside.drop(db, checkfirst=True)
            beside.create(db)
        with self._begin(db):
            self._load(db, beside, export)
        if db.dialect.name in _IMPLICIT_COMMIT:
            # The exchange is not part of a transaction: until its end the frontier is unknown, so after a crash here
            # the whole table is published again.
            with self._begin(db):
                self._mark(db, target.name, None, replace(new, frontier=None))
            with self._begin(db):
                there, fresh, gone = (self._quote_table(db, each) for each in (target, beside, aside))
                db.exec_driver_sql(f"RENAME TABLE {there} TO {gone}, {fresh} TO {there}")
            with self._begin(db):
                self._mark(db, target.name, None, new)
            with self._begin(db):
                aside.drop(db)
            return
        with self._begin(db):
            self._mark(db, target.name, None, new)
            for each, name in ((target, aside.name), (beside, target.name)):
                spelt = db.dialect.identifier_preparer.quote(name)
                db.exec_driver_sql(f"ALTER TABLE {self._quote_table(db, each)} RENAME TO {spelt}")
            aside.drop(db)

    def _mark(self, db: sa.Connection, table: str, followed: Published | None, new: Published) -> None:
        """Store the new content of the table. Raises RetryableError where its frontier is not that of `followed`."""
        row = self._state.c.table_name == table
        if followed is not None:
            row = row & (self._state.c.frontier == followed.frontier)
        values = {"model": new.model, "uri": new.uri, "frontier": new.frontier, "columns": new.columns_json}
        changed = db.execute(
            sa.update(self._state).where(row).values(**values, published_at=datetime.now(UTC).replace(tzinfo=None))
        )
        if changed.rowcount != 1:
            raise overtaken(table)

    def _follow(self, db: sa.Connection, target: sa.Table, export: Export) -> None:
        """Apply a change through a temporary table, which is dropped with the connection."""
        gone: sa.Column[bool] = sa.Column(DELETED_COLUMN, sa.Boolean(create_constraint=False))
        columns = self._columns(export.schema)
        self._changes += 1  # several in one transaction, which a DROP could end
        staged = sa.Table(
            f"_sml_change_{self._changes}", sa.MetaData(), *columns, gone, prefixes=["TEMPORARY"], **_INNODB
        )
        staged.create(db)
        self._load(db, staged, export)
        db.execute(self._delete(target, staged))
        names = [column.name for column in target.columns]
        staying = sa.select(*[staged.c[name] for name in names]).where(staged.c[DELETED_COLUMN].is_(False))
        db.execute(sa.insert(target).from_select(names, staying))

    def _load(self, db: sa.Connection, table: sa.Table, export: Export) -> None:
        converters = {field.name: converter(field.type, db.dialect.name) for field in export.schema}
        changing = [(name, convert) for name, convert in converters.items() if convert is not None]
        names = [field.name for field in export.schema if field.name in table.c]
        for batch in export.batches():
            rows = batch.select(names).to_pylist()
            for row in rows:
                for name, convert in changing:
                    if row[name] is not None:
                        row[name] = convert(row[name])
            if rows:
                db.execute(sa.insert(table), rows)

    def _delete(self, target: sa.Table, staged: sa.Table) -> sa.Delete:
        if self._engine.dialect.name in ("mysql", "mariadb"):  # IN would examine every row of `target`
            return sa.delete(target).where(target.c[KEY_COLUMN] == staged.c[KEY_COLUMN])
        return sa.delete(target).where(target.c[KEY_COLUMN].in_(sa.select(staged.c[KEY_COLUMN])))

    def _has(self, db: sa.Connection, table: str, columns: tuple[tuple[str, str], ...]) -> bool:
        """Whether a table exists and has exactly `_sml_key` and columns of these names."""
        if not sa.inspect(db).has_table(table, schema=self._schema):
            return False
        there = {column["name"] for column in sa.inspect(db).get_columns(table, schema=self._schema)}
        return there == {KEY_COLUMN, *(name for name, _ in columns)}

    def _table(self, name: str, schema: Any) -> sa.Table:
        return sa.Table(name, sa.MetaData(schema=self._schema), *self._columns(schema), **_INNODB)

    def _columns(self, schema: Any) -> list[sa.Column[Any]]:
        return [
            sa.Column(field.name, database_type(field.name, field.type), primary_key=field.name == KEY_COLUMN,
                      nullable=field.name != KEY_COLUMN, info={"arrow": str(field.type)})
            for field in schema
            if field.name != DELETED_COLUMN
        ]  # fmt: skip

    def _quote_table(self, db: sa.Connection, table: sa.Table) -> str:
        return db.dialect.identifier_preparer.format_table(table)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise errors of the database as NodeError, without values and the URL, which may be secrets."""
        try:
            yield
        except exc.DBAPIError as error:
            said = str(error.orig).strip().partition("\n")[0][:500]
            raise NodeError(f"{self._name}: the database says: {said}", hint=remedy(said, "sml publish")) from None
        except (exc.SQLAlchemyError, ValueError, OverflowError) as error:
            raise NodeError(f"{self._name}: {str(error).strip().partition(chr(10))[0][:500]}") from None


def _columns(table: sa.Table) -> tuple[tuple[str, str], ...]:
    return tuple((column.name, str(column.info["arrow"])) for column in table.columns if column.name != KEY_COLUMN)


def _engine(destination: Destination) -> sa.Engine:
    what = f"publish destination {destination.name!r}"
    try:
        return sa.create_engine(destination.place, poolclass=NullPool, hide_parameters=True)
    except exc.NoSuchModuleError as error:
        hint = "e.g. postgresql+psycopg://…, mysql+pymysql://… or sqlite:///…"
        raise ProjectError(f"{what}: SQLAlchemy knows no such database: {error}", hint=hint) from None
    except exc.ArgumentError:
        hint = "dialect+driver://user:password@host:port/database; escape signs of a password by %"
        raise ProjectError(f"{what}: its url is none", hint=hint) from None
    except ImportError as error:
        raise MachineError(f"{what} needs a Python package: {error}", hint=f"pip install {error.name}") from None
