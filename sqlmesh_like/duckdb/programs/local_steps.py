"""The steps of a run as temporary tables of DuckDB, over Parquet files. Owns binding relations to files.

A query runs here if each of its forms is proven (`exact_sql`) and its tables are local files; for merge-on-read tables,
`merge_on_read_files` decides. Where these are too large, executors look rows up in them or run the query
(`remote_steps`). Otherwise Unproven is raised, and Spark does all of the work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import duckdb
from sqlglot import exp

from sqlmesh_like.delta.actions import key_conflicts
from sqlmesh_like.delta.keys import column
from sqlmesh_like.delta.machine import ReadyStep, tables_of
from sqlmesh_like.delta.program import TARGET, Prune, RelationRole, split_relation
from sqlmesh_like.duckdb.dialect import duck_text
from sqlmesh_like.duckdb.duck_types import duck_quoted
from sqlmesh_like.duckdb.exact_sql import ExactQuery, exact
from sqlmesh_like.duckdb.local_files import LocalTable
from sqlmesh_like.duckdb.merge_on_read_files import local_table
from sqlmesh_like.duckdb.merged_slices import MergedSlices
from sqlmesh_like.duckdb.programs.key_origins import key_origins
from sqlmesh_like.duckdb.programs.read_limit import ReadLimit, TableRead
from sqlmesh_like.duckdb.programs.remote_steps import RemoteSteps
from sqlmesh_like.duckdb.programs.shared_lookups import LookupTable, shared_columns
from sqlmesh_like.duckdb.programs.shared_rows import SharedRows
from sqlmesh_like.names import IS_DELETED, WEIGHT, Column, Schema
from sqlmesh_like.plan.cluster.lookup_columns import lookup_pairs
from sqlmesh_like.plan.model_plan import SMALL_INPUT, InputVersion, PlannedModel
from sqlmesh_like.run.ports import NamedColumns

_OWN_TYPES = {WEIGHT: "bigint", IS_DELETED: "boolean"}
Outside = tuple[RelationRole, str]
"""Role and name of an outside relation."""


@dataclass
class LocalSteps:
    """Steps of one run on a connection of its own. `tables`: the inputs by unique id, and the target as `this`."""

    shared: SharedRows
    db: duckdb.DuckDBPyConnection
    planned: PlannedModel
    tables: Mapping[str, LocalTable]
    named: NamedColumns
    limit: ReadLimit = field(default_factory=ReadLimit)
    nets_by: Literal["group", "join"] = "join"
    schemas: dict[str, Schema] = field(default_factory=dict)
    _views: dict[tuple[str, str], tuple[str, Schema]] = field(default_factory=dict)
    _queries: dict[str, exp.Query] = field(default_factory=dict)

    def empty_relations(self) -> Iterable[str]:
        for item in self.planned.inputs:
            if self.planned.strategy in ("full_refresh", "recompute_merge") or self.planned.reconciles:
                return  # all rows are read, and no changes
            if item.start == item.end or self._change_of(item)[1] == 0:
                yield f"changes.{item.ref.unique_id}"

    def create_step(self, step: ReadyStep) -> bool:
        self._queries[step.name] = step.query
        if step.is_proven:
            types = {c.name: c.type for name in reversed(tables_of(step.query)) for c in self._schema_of(name)}
            count = self._create(step.name, self._bind_query(step.query))
            names = self.db.execute(f"DESCRIBE {duck_quoted(step.name)}").fetchall()
            self.schemas[step.name] = tuple(Column(name, types.get(name) or _OWN_TYPES.get(name)) for name, *_ in names)
            return count == 0
        query = self._exact(step)
        count = self._create(step.name, f"SELECT * FROM ({query.sql}) LIMIT 0" if step.is_empty else query.sql)
        self.schemas[step.name] = query.columns
        return count == 0

    def columns(self, name: str) -> Sequence[str]:
        return [column.name for column in self._schema_of(name)]

    def first_row(self, query: exp.Query) -> tuple[object, ...]:
        row: tuple[object, ...] = self.db.execute(self._bind_query(query)).fetchall()[0]
        return row

    def conflicts(self, step: str, names: Sequence[str]) -> tuple[int, int]:
        """The most rows of a step that share a value of these columns, and how many values have a NULL."""
        entering = exp.select(*map(column, names)).from_(exp.table_(step, quoted=True))
        row = self.first_row(key_conflicts(entering, entering.where("false"), names))
        return int(str(row[0] or 0)), int(str(row[1] or 0))

    def _create(self, name: str, query: str) -> int:
        """Create the table of a step and return how many rows it has."""
        return int(self.db.execute(f"CREATE TEMP TABLE {duck_quoted(name)} AS {query}").fetchall()[0][0])

    def _schema_of(self, name: str) -> Schema:
        role, _, relation = name.partition(".")
        if not relation:
            return self.schemas[name]
        table = self.tables[relation]
        return (*table.proven, Column(WEIGHT, "bigint")) if role == "changes" else table.proven

    def _bind_query(self, query: exp.Query) -> str:
        """The text of a proven query, over views."""
        bound = query.copy()
        for table in list(bound.find_all(exp.Table)):
            if outside := split_relation(table):
                table.replace(exp.table_(self.bound_relation(*outside), alias=table.alias or None))
        return duck_text(bound, is_exact=True)

    def _exact(self, step: ReadyStep) -> ExactQuery:
        """The query of a step for DuckDB: over views, and over rows that executors return. Raises Unproven."""
        holder = exp.Subquery(this=step.query.copy())
        tables = _outside_tables(holder)
        is_lookup = len(tables) == 1 and tables[0][1][0] == "current" and not step.is_empty
        looked_up = self._look_up(tables[0][1][1], step.prunes, step.query) if is_lookup else None
        if looked_up is None and not step.is_empty and self._is_too_large(holder):
            self._remote.bind_groups(holder, self._is_too_large)
            if self._is_too_large(holder):
                return self._remote.computed(step)
            tables = _outside_tables(holder)
        for table, outside in tables:
            view = looked_up or self.bound_relation(*outside, is_counted=not step.is_empty)
            table.replace(exp.table_(view, alias=table.alias or None))
        return exact(holder.this, self._columns_of)

    def _is_too_large(self, query: exp.Expr) -> bool:
        """Whether executors have to read the tables of a query."""
        outside = dict.fromkeys(relation for _, relation in _outside_tables(query))
        return self.limit.is_exceeded_by(self._read(*relation) for relation in outside if relation[0] != "changes")

    def _read(self, role: str, name: str) -> TableRead:
        frontier = self.planned.target.frontier if role == "target" else self._input(name).end
        assert frontier is not None
        return TableRead(f"{role}.{name}", self.tables[name], frontier)

    @cached_property
    def _remote(self) -> RemoteSteps:
        return RemoteSteps(self.db, self.planned, self.limit, self.schemas, self._schema_of)

    @cached_property
    def _names(self) -> frozenset[str]:
        """Columns (lower case) that the model's own programs name."""
        queries = self.planned.compiled.table.queries
        return frozenset(column.name.lower() for query in queries for column in query.find_all(exp.Column))

    def _look_up(self, name: str, prunes: Sequence[Prune], query: exp.Query) -> str | None:
        """The view of an input's rows that a step may need, shared by all steps; None if the whole input is read."""
        item, table = self._input(name), self.tables[name]
        pairs = lookup_pairs(prunes, name, table.schema, self.schemas) if _is_large(item) else None
        if pairs is None or item.end is None or query.find(exp.Star):
            return None
        named = {column.name.lower() for column in query.find_all(exp.Column)}
        needed = [column.name for column in table.schema if column.name.lower() in named]
        columns = shared_columns(table.schema, {*(self.named.get(name) or ()), *self._names})
        executors = self.limit.executors(self._read("current", name))
        select = "" if executors else f"SELECT * FROM {self.bound_relation('current', name)}"
        foreseen = self._foreseen_keys(*pairs) if executors else None
        wanted = LookupTable((table.uri, item.end), select, frozenset(needed), columns, executors, foreseen)
        rows = self.shared.lookups.rows(self.db, wanted, *pairs)
        if rows is None:
            return None
        view, schema = f"_sml_relation_{len(self._views)}", tuple(c for c in table.proven if c.name in columns)
        self.db.execute(f"CREATE TEMP VIEW {view} AS SELECT * FROM {rows}")
        self._views[rows, view] = (view, schema)
        return view

    def _foreseen_keys(self, pairs: Sequence[tuple[str, str]], step: str) -> str | None:
        """SELECT of the keys that other models may take from the same changes; None if there are none."""
        origins = dict.fromkeys(key_origins(step, [theirs for _, theirs in pairs], self._queries))
        selects = []
        for name, columns in origins:
            items = ", ".join(f"{duck_quoted(own)} AS k{number}" for number, own in enumerate(columns))
            selects.append(f"SELECT {items} FROM {self._view('changes', name)}")
        return " UNION ".join(selects) or None

    def _columns_of(self, table: exp.Table) -> Schema:
        known = dict(self._views.values())
        return known[table.name] if table.name in known else self.schemas[table.name]

    def bound_relation(self, role: RelationRole, name: str, *, is_counted: bool = True) -> str:
        """The view of an outside relation, for SQL over it and steps. Raises Unproven if it is too large to be read.

        Without `is_counted` only its columns matter.
        """
        if role != "changes" and (is_counted or not self.tables[name].timeline.is_cow):
            self.limit.count_table(self._read(role, name))
        return self._view(role, name)

    def _view(self, role: RelationRole, name: str) -> str:
        if (role, name) not in self._views:
            view = f"_sml_relation_{len(self._views)}"
            if role == "changes":
                text = f"SELECT * FROM {self._change_of(self._input(name))[0]}"
            else:
                text = self.shared.rows(self.db, self.tables[name], self._read(role, name).frontier)
            self.db.execute(f"CREATE TEMP VIEW {view} AS {text}")
            self._views[role, name] = (view, self._schema_of(f"{role}.{name}"))
        return self._views[role, name][0]

    def _change_of(self, item: InputVersion) -> tuple[str, int]:
        assert item.start is not None and item.end is not None
        self.limit.count(f"changes.{item.ref.unique_id}", item.change.read)
        return self.shared.change(self.db, self.tables[item.ref.unique_id], item.start, item.end)

    def _input(self, unique_id: str) -> InputVersion:
        return next(item for item in self.planned.inputs if item.ref.unique_id == unique_id)


def tables_read(planned: PlannedModel, merged: MergedSlices, *, target: bool) -> Mapping[str, LocalTable] | None:
    """The inputs by unique id, with `target` the table as `this`; None if one of them cannot be read here."""
    entries = {TARGET: local_table(planned.target, merged, hidden=True)} if target else {}
    for item in planned.inputs:
        entries[item.ref.unique_id] = local_table(item.state, merged, hidden=False) if item.end is not None else None
    readable = {name: table for name, table in entries.items() if table is not None}
    return readable if len(readable) == len(entries) else None


def _outside_tables(query: exp.Expr) -> list[tuple[exp.Table, Outside]]:
    return [(table, outside) for table in query.find_all(exp.Table) if (outside := split_relation(table))]


def _is_large(item: InputVersion) -> bool:
    return item.volume is not None and item.volume.bytes > SMALL_INPUT
