"""A lake of one model in DuckDB's memory, for unit and property tests. Owns binding relations to rows that are given.

The machine runs the model's plan here as on files and on Spark; partitions that a prune excludes are hidden. DuckDB's
types are never reported as the model's: they only have to be consistent with each other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import datetime

from sqlglot import exp

from sqlmesh_like.analyze.expressions.clock import frozen, has_moved
from sqlmesh_like.classify.clock import time_value_calls
from sqlmesh_like.classify.rules import TIED
from sqlmesh_like.classify.strategy import Strategy
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.delta.clock_boundary import at_clocks
from sqlmesh_like.delta.frozen import FrozenPartitions
from sqlmesh_like.delta.machine import Machine, MaintainedTable, PreparedQueries
from sqlmesh_like.delta.program import Moves, TablePlan, relation, split_relation
from sqlmesh_like.duckdb.dialect import duck_text
from sqlmesh_like.duckdb.duck_connection import time_limit, workspace
from sqlmesh_like.duckdb.duck_types import cast_item, duck_quoted, duck_type, without_zone
from sqlmesh_like.duckdb.exact_sql import SETUP, ExactQuery, Unproven, exact
from sqlmesh_like.duckdb.programs.memory_steps import (
    STORED,
    MemorySteps,
    MemoryWriter,
    RowActions,
    bind_text,
    describe_columns,
)
from sqlmesh_like.errors import NodeError
from sqlmesh_like.names import KEY, WEIGHT, Column, Schema, is_hidden

Value = object
SimulatedRows = Mapping[str, Sequence[Value]]
"""Rows of an input by row key; values in the order of the input's columns."""
LakeSnapshot = Mapping[str, SimulatedRows]
"""Rows of every input by unique id."""

_NOON = datetime(2024, 1, 31, 12)
_DIGITS = 9
"""Doubles whose last digits may depend on the order of addition are compared to this many significant digits."""


@dataclass(frozen=True)
class StateMismatch:
    """Rows that the maintained table has in excess, and rows that it lacks (multisets)."""

    surplus: tuple[tuple[Value, ...], ...]
    missing: tuple[tuple[Value, ...], ...]

    def __bool__(self) -> bool:
        return bool(self.surplus or self.missing)


class MemoryLake:
    """Inputs with declared columns, and the table of one model at a time. `small` inputs (by id) are read whole."""

    def __init__(
        self, schemas: Mapping[str, Schema], now: datetime = _NOON, threads: int = 1, small: Collection[str] = ()
    ) -> None:
        self._schemas = schemas
        self._small = frozenset(small)
        self._then = self._now = now
        self._opened = ExitStack()
        self._db = self._opened.enter_context(workspace(threads))
        for role in ("changes", "current", "target"):
            self._db.execute(f"CREATE SCHEMA {role}")
        for input_id, schema in schemas.items():
            self._create_input("current", input_id, schema)
            self._create_input("changes", input_id, (*schema, Column(WEIGHT, "bigint")))
        self._model: CompiledModel | None = None  # the model of the cached texts
        self._prepared = PreparedQueries()
        self._steps = MemorySteps(self._db)
        self._written: dict[datetime, str] = {}
        self._texts: dict[tuple[int, datetime, datetime], tuple[exp.Query, str]] = {}
        self._has_macros = False
        self._empty = frozenset[str]()  # relations that are known to have no rows

    def close(self) -> None:
        self._opened.close()

    def time_limit(self) -> AbstractContextManager[None]:
        """A context that raises NodeError if the work within takes too long."""
        return time_limit(self._db)

    def build(self, compiled: CompiledModel, snapshot: LakeSnapshot) -> None:
        """Create the target from scratch. Raises NodeError if a key repeats or is NULL."""
        self._load("current", snapshot)
        types = {column.name: column.type for column in compiled.facts.schema or ()}
        types |= {column.name: column.type for column in compiled.table.state}
        query = compiled.table.build
        source = self._whole(query) if query is not None else _add_content_key(self._as_written(compiled))
        names = [row[0] for row in self._db.execute(f"DESCRIBE {source}").fetchall()]
        items = ", ".join(cast_item(name, types.get(name)) for name in names)
        self._db.execute(f"CREATE OR REPLACE TABLE {STORED} AS SELECT {items} FROM ({source})")
        repeated = self._db.execute(f"SELECT {KEY} FROM {STORED} GROUP BY 1 HAVING count(*) > 1 OR {KEY} IS NULL")
        if rows := repeated.fetchall():
            raise NodeError(f"the key {rows[0][0]!r} of {compiled.model.table} repeats or is NULL")

    def apply(
        self,
        compiled: CompiledModel,
        before: LakeSnapshot,
        after: LakeSnapshot,
        now: datetime | None = None,
        strategy: Strategy | None = None,
        frozen: FrozenPartitions | None = None,
    ) -> RowActions:
        """Bring the target from one state of the inputs to the next by the plan's program, or rebuild it.

        `now` advances the lake's clock; without it the clock stays. `strategy` overrides the plan's.
        `frozen`: rows of the target that stay as they are.
        """
        self._remember_only(compiled)
        self._then, self._now = self._now, now or self._now
        self._load_changes(before, after)
        self._load("current", after)
        relation = compiled.facts.relation
        chosen = strategy or compiled.classification.strategy
        if relation is not None and has_moved(time_value_calls(relation), self._then, self._now):
            chosen = "full_refresh" if frozen is None else "recompute_merge"
        moved = frozenset(input_id for input_id in self._schemas if f"changes.{input_id}" not in self._empty)
        self._steps.begin(self._empty)
        writer = MemoryWriter(self._steps, lambda: self.build(compiled, after))
        table = MaintainedTable(str(compiled.model.table))
        machine = Machine(compiled.table, self._steps, writer, table, self._now, self._then, self._prepared, frozen)
        return machine.run(chosen, Moves(moved, self._small - moved))

    def derive(self, rows: exp.Query) -> None:
        """Replace the target by the rows of a query over it and the inputs as they are."""
        self._db.execute(f"CREATE OR REPLACE TEMP TABLE _sml_derived AS {bind_text(rows.copy())}")
        self._db.execute(f"CREATE OR REPLACE TABLE {STORED} AS SELECT * FROM _sml_derived")

    def apply_edit(self, compiled: CompiledModel, plan: TablePlan, strategy: Strategy, snapshot: LakeSnapshot) -> None:
        """Bring the target from the query before to this one by the program of a plan, while the inputs stay."""
        self._remember_only(compiled)
        self._load_changes(snapshot, snapshot)
        self._load("current", snapshot)
        self._steps.begin(self._empty)
        writer = MemoryWriter(self._steps, lambda: self.build(compiled, snapshot))
        table = MaintainedTable(str(compiled.model.table))
        Machine(plan, self._steps, writer, table, self._now, self._now).run(strategy, Moves(frozenset()))

    def columns(self) -> list[str]:
        """Visible columns of the target."""
        return [name for name, _ in self._columns() if not is_hidden(name)]

    def rows(self) -> list[tuple[Value, ...]]:
        """Visible rows of the target, in no particular order."""
        shown = ", ".join(duck_quoted(name) for name in self.columns())
        return self._db.execute(f"SELECT {shown} FROM {STORED}").fetchall()

    def stored_rows(self) -> list[tuple[Value, ...]]:
        """All columns of the target's rows, including keys and hidden state, in no particular order."""
        return self._db.execute(f"SELECT * FROM {STORED}").fetchall()

    def verify(self, compiled: CompiledModel) -> StateMismatch:
        """Compare the target's visible rows with the model's own query over the current inputs."""
        shown = [(name, type_) for name, type_ in self._columns() if not is_hidden(name)]
        return self._difference(shown, self._expected_query(compiled))

    def _expected_query(self, compiled: CompiledModel) -> str:
        build = compiled.table.build
        is_tied = any(reason.rule in TIED for reason in compiled.classification.reasons)
        return self._whole(build) if is_tied and build is not None else self._as_written(compiled)

    def recomputed_rows(self, compiled: CompiledModel) -> list[tuple[Value, ...]]:
        """The rows that `verify` expects."""
        shown = [(name, type_) for name, type_ in self._columns() if not is_hidden(name)]
        cast = ", ".join(f"CAST({duck_quoted(name)} AS {type_})" for name, type_ in shown)
        return self._db.execute(f"SELECT {cast} FROM ({self._expected_query(compiled)})").fetchall()

    def bind(self, compiled: CompiledModel, tree: exp.Expr) -> None:
        """Bind a variant of the model's own query, for its errors."""
        self._db.execute(f"DESCRIBE {self._over_current(compiled, tree)}")

    def check(self, compiled: CompiledModel, tree: exp.Expr) -> None:
        """Run a variant of the model's own query over the current inputs, for its errors."""
        self._db.execute(self._over_current(compiled, tree)).fetchall()

    def agrees_exactly(self, compiled: CompiledModel) -> bool:
        """Whether the target's rows are those of the proven query. Raises Unproven."""
        shown = [(name, type_) for name, type_ in self._columns() if not is_hidden(name)]
        return not self._difference(shown, self._proven(compiled).sql)

    def exact_rows(self, compiled: CompiledModel) -> tuple[Schema, list[tuple[Value, ...]]]:
        """Columns and rows of the model's own query as `exact_sql` proves it. Raises Unproven."""
        query = self._proven(compiled)
        items = ", ".join(cast_item(column.name, column.type) for column in query.columns)
        return query.columns, self._db.execute(f"SELECT {items} FROM ({query.sql})").fetchall()

    def _proven(self, compiled: CompiledModel) -> ExactQuery:
        if not self._has_macros:
            for statement in SETUP:
                self._db.execute(statement)
            self._has_macros = True

        def columns_of(table: exp.Table) -> Schema:
            outside = split_relation(table)
            if outside is None:
                raise Unproven(f"the table {table.name}")
            return self._schemas[outside[1]]

        query = self._bind_to_current(compiled, compiled.facts.tree)
        assert isinstance(query, exp.Query)
        return exact(query, columns_of)

    def types(self) -> list[str]:
        """DuckDB's types of the visible columns of the target."""
        return [type_ for name, type_ in self._columns() if not is_hidden(name)]

    def verify_state(self, compiled: CompiledModel) -> StateMismatch:
        """Compare the whole target, including keys and hidden state, with a build from the current inputs."""
        build = compiled.table.build
        source = self._whole(build) if build is not None else _add_content_key(self._as_written(compiled))
        return self._difference(self._columns(), source)

    def _difference(self, columns: Sequence[tuple[str, str]], source: str) -> StateMismatch:
        cast = ", ".join(f"CAST({duck_quoted(name)} AS {type_}) AS {duck_quoted(name)}" for name, type_ in columns)
        plain = ", ".join(duck_quoted(name) for name, _ in columns)
        expected = _count_rows(self._db.execute(f"SELECT {cast} FROM ({source})").fetchall())
        stored = _count_rows(self._db.execute(f"SELECT {plain} FROM {STORED}").fetchall())
        return StateMismatch(tuple((stored - expected).elements()), tuple((expected - stored).elements()))

    def _remember_only(self, compiled: CompiledModel) -> None:
        """Clear the caches for another model: the ids of its queries are not unique across models."""
        if compiled is not self._model:
            self._model = compiled
            self._prepared = PreparedQueries()
            self._steps = MemorySteps(self._db)
            self._written.clear()
            self._texts.clear()

    def _whole(self, build: exp.Query) -> str:
        """The plan's own query over the current inputs, as text that is generated once a clock."""
        known = (id(build), self._now, self._then)
        if known not in self._texts:
            self._texts[known] = (build, bind_text(at_clocks(build, self._now, self._then)))  # valid while it lives
        return self._texts[known][1]

    def _as_written(self, compiled: CompiledModel) -> str:
        """The model's own query over the visible columns of the current inputs."""
        self._remember_only(compiled)
        if self._now not in self._written:
            self._written[self._now] = self._over_current(compiled, compiled.facts.tree)
        return self._written[self._now]

    def _over_current(self, compiled: CompiledModel, tree: exp.Expr) -> str:
        """A variant of the model's query over the current inputs, in DuckDB's dialect."""
        return duck_text(self._bind_to_current(compiled, tree))

    def _bind_to_current(self, compiled: CompiledModel, tree: exp.Expr) -> exp.Expr:
        """A variant of the model's query over the visible columns of the current inputs."""
        by_table = {(ref.table.schema.lower(), ref.table.identifier.lower()): ref for ref in compiled.facts.inputs}

        def bind(node: exp.Expr) -> exp.Expr:
            ref = by_table.get((node.db.lower(), node.name.lower())) if isinstance(node, exp.Table) else None
            if ref is None:
                return without_zone(node)
            shown = [exp.column(column.name, quoted=True) for column in self._schemas[ref.unique_id]]
            query = exp.select(*shown).from_(relation("current", ref.unique_id))
            alias, name = node.args.get("alias"), exp.to_identifier(node.alias or node.name, quoted=True)
            columns = [each.copy() for each in alias.columns] if isinstance(alias, exp.TableAlias) else []
            bound = exp.Subquery(this=query, alias=exp.TableAlias(this=name, columns=columns))
            bound.set("joins", [join.transform(bind) for join in node.args.get("joins") or []])
            return bound

        return frozen(tree, self._now).transform(bind, copy=False)

    def _columns(self) -> list[tuple[str, str]]:
        return describe_columns(self._db, STORED)

    def _create_input(self, role: str, input_id: str, schema: Schema) -> None:
        columns = ", ".join(f"{duck_quoted(c.name)} {duck_type(c.type or 'string')}" for c in schema)
        self._db.execute(f"CREATE TABLE {role}.{duck_quoted(input_id)} ({columns}, {KEY} VARCHAR)")

    def _load(self, role: str, snapshot: LakeSnapshot) -> None:
        for input_id, schema in self._schemas.items():
            table = f"{role}.{duck_quoted(input_id)}"
            self._db.execute(f"DELETE FROM {table}")
            rows = [(*values, key) for key, values in snapshot.get(input_id, {}).items()]
            self._insert(table, rows, len(schema) + 1)

    def _load_changes(self, before: LakeSnapshot, after: LakeSnapshot) -> None:
        moved = set[str]()
        for input_id, schema in self._schemas.items():
            table = f"changes.{duck_quoted(input_id)}"
            self._db.execute(f"DELETE FROM {table}")
            changed = _changes(before.get(input_id, {}), after.get(input_id, {}))
            self._insert(table, changed, len(schema) + 2)
            moved |= {input_id} if changed else set()
        self._empty = frozenset(f"changes.{input_id}" for input_id in self._schemas if input_id not in moved)

    def _insert(self, table: str, rows: Iterable[Sequence[Value]], width: int) -> None:
        values = list(rows)
        if values:
            one = "(" + ", ".join("?" * width) + ")"
            flat = [value for row in values for value in row]
            self._db.execute(f"INSERT INTO {table} VALUES {', '.join([one] * len(values))}", flat)


def _changes(before: SimulatedRows, after: SimulatedRows) -> list[tuple[Value, ...]]:
    """Signed rows by row key; a row rewritten with the same content has both signs, as in the change feed."""
    leaving = [(*before[key], -1, key) for key in before if key not in after or after[key] is not before[key]]
    entering = [(*after[key], 1, key) for key in after if key not in before or after[key] is not before[key]]
    return leaving + entering


def _add_content_key(query: str) -> str:
    hashed = f"SELECT *, md5(CAST(_sml_q AS VARCHAR)) AS _sml_hash FROM ({query}) AS _sml_q"
    number = "row_number() OVER (PARTITION BY _sml_hash ORDER BY _sml_hash)"
    return f"SELECT * EXCLUDE (_sml_hash), _sml_hash || ':' || {number} AS {KEY} FROM ({hashed})"


def _count_rows(rows: Iterable[tuple[Value, ...]]) -> Counter[tuple[Value, ...]]:
    return Counter(tuple(_comparable_value(value) for value in row) for row in rows)


def _comparable_value(value: Value) -> Value:
    """A value that is hashable and equal to itself, unlike lists, structs and NaN; floats of `_DIGITS` digits."""
    if isinstance(value, dict):
        return tuple((name, _comparable_value(field)) for name, field in value.items())
    if isinstance(value, list):
        return tuple(_comparable_value(element) for element in value)
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.{_DIGITS}g}")
    return value
