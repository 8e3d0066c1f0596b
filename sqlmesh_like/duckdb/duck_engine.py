"""The `Engine` port on DuckDB, in this process and without a JVM. Owns tables in memory, each built once in full.

A form that DuckDB is not known to compute as Spark does is an error that names it, so Spark agrees with a run that
passes. A target may request DuckDB's rows all the same (`on_unproven: warn`); such results carry a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from threading import Lock

import duckdb
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlmesh_like.analyze.expressions.clock import frozen
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.delta.snapshot import SOURCE, key_expression, snapshot_program
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.duckdb.allow_list import first_unproven
from sqlmesh_like.duckdb.dialect import duck_text
from sqlmesh_like.duckdb.duck_connection import reader, sandbox, time_limit
from sqlmesh_like.duckdb.duck_history import DuckHistory
from sqlmesh_like.duckdb.duck_types import cast_item, duck_quoted, duck_type, spark_name, without_zone
from sqlmesh_like.duckdb.exact_sql import SETUP, Unproven, exact
from sqlmesh_like.duckdb.guards import add_guards, add_type_checks, guard_in
from sqlmesh_like.errors import Location, NodeError, first_line
from sqlmesh_like.names import KEY, Column, Schema, TableName
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.plan.checks.contracts import refuse_unlike
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.render.rendered import RenderedModel
from sqlmesh_like.run.ports import NamedColumns, Rows, WriteResult
from sqlmesh_like.run.seeds import SeedTable
from sqlmesh_like.run.source_fixtures import MODELS, FixtureTable

StandIn = Callable[[RenderedModel, Schema | None], FixtureTable | None]
"""The fixture that replaces a model, given the model's columns if they are known."""
Warn = Callable[[str], None]


class DuckEngine:
    """Tables of one process. Calls may come from several threads.

    With `warn`, a form that DuckDB is not known to compute as Spark does is computed and reported to it; with None it
    is an error.
    """

    def __init__(
        self,
        history: DuckHistory,
        stand_in: StandIn,
        now: datetime,
        files: Sequence[str] | None = None,
        warn: Warn | None = None,
    ) -> None:
        self._history = history
        self._warn = warn
        self._stand_in = stand_in
        self._now = now.astimezone(UTC).replace(tzinfo=None) if now.tzinfo else now
        self._reader = reader(files) if files is not None else None
        self._db = self._reader.connection if self._reader is not None else sandbox()
        for statement in SETUP:
            self._db.execute(statement)
        self._schemas: dict[tuple[str, str], Schema] = {}  # with types that are proven, else None
        self._lock = Lock()

    def _time_limit(self, cursor: duckdb.DuckDBPyConnection) -> AbstractContextManager[None]:
        """A time limit for untrusted queries; queries over a lake have none."""
        return time_limit(cursor) if self._reader is None else nullcontext()

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        return self._db.cursor() if self._reader is None else self._reader.cursor()

    def put(self, name: TableName, uri: str, schema: Schema, rows: Sequence[Sequence[object]]) -> None:
        """Create or replace a table with these rows and record its state."""
        columns = ", ".join(f"{duck_quoted(c.name)} {duck_type(c.type or 'string')}" for c in schema)
        cursor = self._place(name)
        self._schemas[name.schema.lower(), name.identifier.lower()] = schema
        cursor.execute(f"CREATE OR REPLACE TABLE {_table_sql(name)} ({columns})")
        if rows:
            one = "(" + ", ".join("?" * len(schema)) + ")"
            flat = [value for row in rows for value in row]
            cursor.execute(f"INSERT INTO {_table_sql(name)} VALUES {', '.join([one] * len(rows))}", flat)
        self._history.add(uri, schema)

    def apply(self, planned: PlannedModel, shared: NamedColumns | None = None) -> WriteResult:  # noqa: ARG002
        model, facts = planned.compiled.model, planned.compiled.facts
        try:
            return WriteResult("full_refresh", self._build(planned, self._text), 0, committed=True)
        except NotCheckable as error:
            given = self._stand_in(model, facts.schema)
            if given is not None:
                self.put(model.table, planned.target.uri, given.schema, given.rows)
                warning = f"{error}; its rows are those of {given.path}"
                return WriteResult("full_refresh", len(given.rows), 0, True, warning=warning)
            if self._warn is not None:
                count = self._build(planned, self._to_duck_sql)
                return WriteResult("full_refresh", count, 0, True, warning=_doubt(error))
            hint = f"rows in fixtures/{MODELS}/{model.name}.csv can stand for it; {_CHECK_THERE}"
            raise NodeError(str(error), location=Location(model.path), hint=hint) from None

    def write_snapshot(self, planned: PlannedModel) -> WriteResult:
        """Write the first versions of a snapshot: there are no others, as nothing outlives the process."""
        model = planned.compiled.model
        assert model.config.snapshot is not None
        source = replace(model, table=TableName("_sml", SOURCE))
        facts, doubt = replace(planned.compiled.facts, model=source), ""
        whole = replace(planned, compiled=CompiledModel.of(facts))
        keys = model.config.snapshot.unique_key
        try:
            if why := next(filter(None, map(first_unproven, filter(None, map(key_expression, keys)))), None):
                raise NotCheckable(f"not checkable here: {why}")
            self._build(whole, self._text)
        except NotCheckable as error:
            if self._warn is None:
                raise NodeError(str(error), location=Location(model.path), hint=_CHECK_THERE) from None
            doubt = _doubt(error)
            self._build(whole, self._to_duck_sql)
        shown = self._schema_of(source.table)
        program = snapshot_program(model.config.snapshot, shown, None, self._now.isoformat(" "))
        tree = sqlglot.parse_one(program.first, dialect=SPARK)
        for table in tree.find_all(exp.Table):
            table.set("db", exp.to_identifier("_sml"))
        cursor = self._place(model.table)
        text = duck_text(tree.transform(without_zone, copy=False))
        cursor.execute(f"CREATE OR REPLACE TABLE {_table_sql(model.table)} AS SELECT * EXCLUDE ({KEY}) FROM ({text})")
        self._history.add(planned.target.uri, self._schema_of(model.table))
        count = _count(cursor, f"SELECT count(*) FROM {_table_sql(model.table)}")
        return WriteResult("full_refresh", count, 0, True, warning=doubt)

    def _schema_of(self, name: TableName) -> Schema:
        rows = self._cursor().execute(f"DESCRIBE {_table_sql(name)}").fetchall()
        return tuple(Column(row[0], spark_name(row[1])) for row in rows)

    def release(self) -> None:
        """Do nothing: models share nothing."""

    def load(self, table: SeedTable, state: TableState, now: datetime) -> None:  # noqa: ARG002
        self.put(table.seed.table, state.uri, table.schema, table.naive_rows())

    def query(
        self,
        tree: exp.Expr,
        tables: Mapping[TableName, TableState],
        limit: int,
        shown: Schema | None = None,  # noqa: ARG002
    ) -> Rows:
        known = {column.name.lower(): column.type for state in tables.values() for column in state.schema or ()}
        try:
            text, doubt = self._text_or_doubt(tree)
            cursor = self._cursor()
            with self._time_limit(cursor):
                cursor.execute(text if limit < 0 else f"SELECT * FROM ({text}) LIMIT {limit}")
                rows = tuple(cursor.fetchall())
                names = [(row[0], row[1]) for row in cursor.execute(f"DESCRIBE {text}").fetchall()]
        except duckdb.Error as error:
            raise NodeError(f"the query failed: {first_line(error)}") from None
        except NotCheckable as error:
            raise NodeError(str(error), hint=_CHECK_THERE) from None
        is_plain = isinstance(tree, exp.Select) and tree.is_star
        columns = tuple(Column(n, (is_plain and known.get(n.lower())) or spark_name(t)) for n, t in names)
        return Rows(columns, rows, warning=doubt)

    def execute(self, statement: str, tables: Mapping[TableName, TableState]) -> None:  # noqa: ARG002
        """Run a hook's statement that inserts, updates or deletes rows. Raises NodeError for any other statement."""
        try:
            tree = sqlglot.parse_one(statement, dialect=SPARK)
            if not isinstance(tree, exp.Insert | exp.Update | exp.Delete | exp.Merge):
                raise NodeError("DuckDB runs no statements but those that change rows")
            cursor = self._cursor()
            with self._time_limit(cursor):
                why = next(filter(None, map(first_unproven, _statement_queries(tree))), None)
                if why is None and (why := self._change_if_proven(cursor, tree)) is None:
                    return
                if self._warn is None:
                    raise NodeError(f"not checkable here: {why}", hint=_CHECK_THERE)
                self._warn(_doubt(NotCheckable(f"not checkable here: {why}")))
                cursor.execute(self._to_duck_sql(tree))
        except (duckdb.Error, SqlglotError) as error:
            raise NodeError(f"DuckDB: {first_line(error)}", hint=_ASK_SPARK) from None

    def _change_if_proven(self, cursor: duckdb.DuckDBPyConnection, tree: exp.Expr) -> str | None:
        """Run a statement that checks its values as it computes them; return why it changed nothing, if it did not."""
        try:
            cursor.execute(f"EXPLAIN {self._to_duck_sql(add_type_checks(tree))}")
            cursor.execute(self._to_duck_sql(add_guards(tree)))
        except duckdb.Error as error:
            if reason := guard_in(str(error)):
                return reason
            raise
        return None

    def store_failures(
        self,
        tree: exp.Expr,  # noqa: ARG002
        tables: Mapping[TableName, TableState],  # noqa: ARG002
        place: TablePlace,  # noqa: ARG002
        now: datetime,  # noqa: ARG002
    ) -> bool:
        """Store nothing and return False: nothing outlives the process."""
        return False

    def stop(self) -> None:
        (self._db if self._reader is None else self._reader).close()

    def _build(self, planned: PlannedModel, translate: Callable[[exp.Expr], str]) -> int:
        """Build the table by the translated query; return its row count. Raises NodeError, and as `translate` does."""
        model = planned.compiled.model
        types = {column.name: column.type for column in planned.compiled.facts.schema or ()}
        if model.python is not None:
            raise NotCheckable("not checkable here: a Python model runs on Spark alone")
        try:
            text = translate(planned.compiled.facts.tree)
            cursor = self._place(model.table)
            with self._time_limit(cursor):
                shown = [(row[0], row[1]) for row in cursor.execute(f"DESCRIBE {text}").fetchall()]
                computed = tuple(Column(name, spark_name(type_)) for name, type_ in shown)
                refuse_unlike(model, planned.compiled.facts.schema, computed)
                items = ", ".join(cast_item(name, types.get(name)) for name, _ in shown)
                cursor.execute(f"CREATE OR REPLACE TABLE {_table_sql(model.table)} AS SELECT {items} FROM ({text})")
        except duckdb.Error as error:
            raise NodeError(f"DuckDB: {first_line(error)}", location=Location(model.path), hint=_ASK_SPARK) from None
        proven = tuple(Column(name, types.get(name)) for name, _ in shown)
        self._schemas[model.table.schema.lower(), model.table.identifier.lower()] = proven
        self._check_key(model, cursor)
        self._history.add(planned.target.uri, tuple(Column(c.name, types.get(c.name) or c.type) for c in computed))
        return _count(cursor, f"SELECT count(*) FROM {_table_sql(model.table)}")

    def _text_or_doubt(self, tree: exp.Expr) -> tuple[str, str]:
        """The query in DuckDB's dialect, and why its rows may not be Spark's. Raises NotCheckable without `warn`."""
        try:
            return self._text(tree), ""
        except NotCheckable as error:
            if self._warn is None:
                raise
            self._warn(_doubt(error))
            return self._to_duck_sql(tree), _doubt(error)

    def _to_duck_sql(self, tree: exp.Expr) -> str:
        return duck_text(frozen(tree, self._now).transform(without_zone, copy=False))

    def _text(self, tree: exp.Expr) -> str:
        """The query in DuckDB's dialect. Raises NotCheckable if its rows may differ from Spark's."""
        if why := first_unproven(tree):
            raise NotCheckable(f"not checkable here: {why}")
        text = self._to_duck_sql(tree)
        try:
            cursor = self._cursor()
            with self._time_limit(cursor):
                cursor.execute(f"DESCRIBE {self._to_duck_sql(add_type_checks(tree))}")
                cursor.execute(self._to_duck_sql(add_guards(tree))).fetchall()
        except duckdb.Error as error:
            if reason := guard_in(str(error)):
                return self._proven(tree, reason)
            raise
        return text

    def _proven(self, tree: exp.Expr, reason: str) -> str:
        """The query as `exact_sql` proves it, which knows types. Raises NotCheckable for `reason` where it does not."""
        cursor, query = self._cursor(), frozen(tree, self._now)
        try:
            if not isinstance(query, exp.Query):
                raise Unproven("other than a query")
            text = exact(query, self._columns_of).sql
            with self._time_limit(cursor):
                cursor.execute(text).fetchall()
        except (Unproven, duckdb.Error):
            raise NotCheckable(f"not checkable here: {reason}") from None
        return text

    def _columns_of(self, table: exp.Table) -> Schema:
        schema = self._schemas.get((table.db.lower(), table.name.lower()))
        if schema is None:
            raise Unproven(f"the table {table.name}")
        return schema

    def _place(self, name: TableName) -> duckdb.DuckDBPyConnection:
        with self._lock:
            self._db.execute(f"CREATE SCHEMA IF NOT EXISTS {duck_quoted(name.schema)}")
        return self._cursor()

    def _check_key(self, model: RenderedModel, cursor: duckdb.DuckDBPyConnection) -> None:
        if not model.config.unique_key:
            return
        is_snapshot = model.config.snapshot is not None
        computed = {part: key_expression(part) if is_snapshot else None for part in model.config.unique_key}
        parts = [duck_quoted(part) if tree is None else f"({duck_text(tree)})" for part, tree in computed.items()]
        key, table, names = ", ".join(parts), _table_sql(model.table), ", ".join(model.config.unique_key)
        is_null = " OR ".join(f"{part} IS NULL" for part in parts)
        if nulls := _count(cursor, f"SELECT count(*) FROM {table} WHERE {is_null}"):
            raise NodeError(f"{nulls} rows of {model.table} have NULL in unique_key ({names})")
        repeated = f"SELECT count(*) AS n FROM {table} GROUP BY {key} HAVING count(*) > 1"
        if copies := _count(cursor, f"SELECT coalesce(max(n), 0) FROM ({repeated})"):
            raise NodeError(f"unique_key ({names}) of {model.table} repeats: up to {copies} rows share one")


class NotCheckable(Exception):
    """DuckDB's rows of a query may differ from Spark's."""


_CHECK_THERE = "a target of type spark computes it"
_ASK_SPARK = "DuckDB refuses it; a target of type spark computes it, or refuses it as well"


def _statement_queries(statement: exp.Expr) -> Iterator[exp.Expr]:
    """The queries and expressions of a statement that changes rows."""
    rows = statement.args.get("expression")
    if isinstance(rows, exp.Values):
        yield from (value for row in rows.expressions for value in row.expressions)
    elif rows is not None:
        yield rows
    yield from statement.expressions if isinstance(statement, exp.Update) else ()
    if where := statement.args.get("where"):
        yield where.this
    if isinstance(statement, exp.Merge):
        yield statement


def _doubt(error: NotCheckable) -> str:
    return f"{error}; computed by DuckDB (on_unproven: warn), its rows may not be Spark's"


def _table_sql(name: TableName) -> str:
    return f"{duck_quoted(name.schema)}.{duck_quoted(name.identifier)}"


def _count(cursor: duckdb.DuckDBPyConnection, query: str) -> int:
    row = cursor.execute(query).fetchone()
    return int(row[0]) if row else 0
