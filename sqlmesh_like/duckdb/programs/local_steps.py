"""The steps of a run as temporary tables of DuckDB, over Parquet files. Owns binding relations to files.

A query runs here if each of its forms is proven (`exact_sql`) and its tables are local files; for merge-on-read tables,
`merge_on_read_files` decides. Otherwise Unproven is raised, and Spark does all of the work.
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
from sqlmesh_like.delta.program import TARGET, Prune, split_relation
from sqlmesh_like.duckdb.dialect import duck_text
from sqlmesh_like.duckdb.duck_types import duck_quoted
from sqlmesh_like.duckdb.exact_sql import ExactQuery, exact
from sqlmesh_like.duckdb.local_files import LocalTable
from sqlmesh_like.duckdb.merge_on_read_files import local_table
from sqlmesh_like.duckdb.merged_slices import MergedSlices
from sqlmesh_like.duckdb.programs.read_limit import ReadLimit
from sqlmesh_like.duckdb.programs.shared_lookups import LookupTable, lookup_pairs, shared_columns
from sqlmesh_like.duckdb.programs.shared_rows import SharedRows
from sqlmesh_like.names import IS_DELETED, WEIGHT, Column, Schema
from sqlmesh_like.plan.model_plan import SMALL_INPUT, InputVersion, PlannedModel
from sqlmesh_like.run.ports import NamedColumns

_OWN_TYPES = {WEIGHT: "bigint", IS_DELETED: "boolean"}


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

    def empty_relations(self) -> Iterable[str]:
        for item in self.planned.inputs:
            if self.planned.strategy == "full_refresh" or self.planned.reconciles:
                return  # all rows are read, and no changes
            if item.start == item.end or self._change_of(item)[1] == 0:
                yield f"changes.{item.ref.unique_id}"

    def create_step(self, step: ReadyStep) -> bool:
        if step.is_proven:
            types = {c.name: c.type for name in reversed(tables_of(step.query)) for c in self._schema_of(name)}
            count = self._create(step.name, self._bind_query(step.query))
            names = self.db.execute(f"DESCRIBE {duck_quoted(step.name)}").fetchall()
            self.schemas[step.name] = tuple(Column(name, types.get(name) or _OWN_TYPES.get(name)) for name, *_ in names)
            return count == 0
        query = self._exact(step.query, step.prunes)
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
        return self._view(role, relation)[1] if relation else self.schemas[name]

    def _bind_query(self, query: exp.Query) -> str:
        """The text of a proven query, over views."""
        bound = query.copy()
        for table in list(bound.find_all(exp.Table)):
            if outside := split_relation(table):
                table.replace(exp.table_(self._view(*outside)[0], alias=table.alias or None))
        return duck_text(bound, is_exact=True)

    def _exact(self, query: exp.Query, prunes: Sequence[Prune] = ()) -> ExactQuery:
        """The query for DuckDB, over views; `prunes` bound the rows that it reads from its input if it has only one."""
        holder = exp.Subquery(this=query.copy())
        tables = [(table, outside) for table in holder.find_all(exp.Table) if (outside := split_relation(table))]
        for table, outside in tables:
            is_lookup = outside[0] == "current" and len(tables) == 1
            view = (is_lookup and self._look_up(outside[1], prunes, query)) or self._view(*outside)[0]
            table.replace(exp.table_(view, alias=table.alias or None))
        return exact(holder.this, self._columns_of)

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
        executors = self.limit.executors(f"current.{name}", table, item.end)
        select = "" if executors else f"SELECT * FROM {self._view('current', name)[0]}"
        wanted = LookupTable((table.uri, item.end), select, frozenset(needed), columns, executors)
        rows = self.shared.lookups.rows(self.db, wanted, *pairs)
        if rows is None:
            return None
        view, schema = f"_sml_relation_{len(self._views)}", tuple(c for c in table.proven if c.name in columns)
        self.db.execute(f"CREATE TEMP VIEW {view} AS SELECT * FROM {rows}")
        self._views[rows, view] = (view, schema)
        return view

    def _columns_of(self, table: exp.Table) -> Schema:
        known = dict(self._views.values())
        return known[table.name] if table.name in known else self.schemas[table.name]

    def bound_relation(self, role: str, name: str) -> str:
        """The view of an outside relation, for SQL over it and steps."""
        return self._view(role, name)[0]

    def _view(self, role: str, name: str) -> tuple[str, Schema]:
        """The view of an outside relation, and its columns."""
        if (role, name) not in self._views:
            view = f"_sml_relation_{len(self._views)}"
            table = self.tables[name]
            if role == "changes":
                text = f"SELECT * FROM {self._change_of(self._input(name))[0]}"
                schema: Schema = (*table.proven, Column(WEIGHT, "bigint"))
            else:
                frontier = self.planned.target.frontier if role == "target" else self._input(name).end
                assert frontier is not None
                self.limit.count_table(f"{role}.{name}", table, frontier)
                text, schema = self.shared.rows(self.db, table, frontier), table.proven
            self.db.execute(f"CREATE TEMP VIEW {view} AS {text}")
            self._views[role, name] = (view, schema)
        return self._views[role, name]

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


def _is_large(item: InputVersion) -> bool:
    return item.volume is not None and item.volume.bytes > SMALL_INPUT
