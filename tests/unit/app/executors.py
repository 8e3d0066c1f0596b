"""Executors without a JVM: what a driver asks of them is answered by DuckDB over the same files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa
from sqlglot import exp

from sqlmesh_like.delta.program import TARGET, split_relation
from sqlmesh_like.duckdb.duck_types import cast_item, duck_quoted, spark_name
from sqlmesh_like.duckdb.exact_sql import SETUP, exact
from sqlmesh_like.duckdb.merge_on_read_files import local_table
from sqlmesh_like.duckdb.merged_slices import MergedSlices
from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import Column, Schema
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.run.remote_reader import KeyedRows, RemoteQuery, RemoteRows

Question = KeyedRows | RemoteQuery


@dataclass
class Executors:
    """They answer, as `spark.change_feed.keyed_rows` and `spark.program.remote_query` do, and do nothing else.

    `answers`: whether a question is answered, or there are too many rows.
    """

    answers: Callable[[Question], bool] = lambda _: True
    asked: list[Question] = field(default_factory=list)

    @property
    def lookups(self) -> list[KeyedRows]:
        return [each for each in self.asked if isinstance(each, KeyedRows)]

    @property
    def queries(self) -> list[RemoteQuery]:
        return [each for each in self.asked if isinstance(each, RemoteQuery)]

    def look_up(self, wanted: KeyedRows) -> RemoteRows:
        self.asked.append(wanted)
        table = local_table(table_state(Timeline(wanted.uri)), MergedSlices(), hidden=False)
        assert table is not None
        with duckdb.connect() as db:
            db.register("keys", wanted.keys)
            on = " AND ".join(f't."{name}" IS NOT DISTINCT FROM k."{name}"' for name in wanted.keys.column_names)
            shown = ", ".join(f't."{column.name}"' for column in wanted.columns)
            query = f"SELECT {shown} FROM ({table.rows(wanted.frontier)}) AS t SEMI JOIN keys AS k ON {on}"
            return RemoteRows(db.sql(query).to_arrow_table() if self.answers(wanted) else None, wanted.columns)

    def run_query(self, wanted: RemoteQuery) -> RemoteRows:
        self.asked.append(wanted)
        holder, known = exp.Subquery(this=wanted.query.copy()), dict[str, Schema]()
        with duckdb.connect() as db:
            for statement in SETUP:
                db.execute(statement)
            for name, rows in wanted.steps.items():
                db.register(f"sent_{name}", _without_zones(rows))
                db.execute(f"CREATE TABLE {duck_quoted(name)} AS FROM {duck_quoted(f'sent_{name}')}")
                described = db.execute(f"DESCRIBE {duck_quoted(name)}").fetchall()
                known[name] = tuple(Column(column, spark_name(type_)) for column, type_, *_ in described)
            for table in list(holder.find_all(exp.Table)):
                if outside := split_relation(table):
                    view = f"relation_{len(known)}"
                    rows, known[view] = _relation(wanted.planned, *outside)
                    db.execute(f"CREATE VIEW {view} AS {rows}")
                    table.replace(exp.table_(view, alias=table.alias or None))
            query = exact(holder.this, lambda table: known[table.name])
            items = ", ".join(cast_item(column.name, column.type) for column in query.columns)
            result = db.sql(f"SELECT {items} FROM ({query.sql})").to_arrow_table()
        is_small = result.num_rows <= wanted.most_rows and result.nbytes <= wanted.most_bytes
        return RemoteRows(result if is_small and self.answers(wanted) else None, query.columns)

    def release(self) -> None: ...

    def stop(self) -> None: ...


def _relation(planned: PlannedModel, role: str, name: str) -> tuple[str, Schema]:
    """SELECT of a relation's rows, and its columns."""
    if role == "target":
        assert name == TARGET and planned.target.frontier is not None
        state, frontier = planned.target, planned.target.frontier
    else:
        item = next(each for each in planned.inputs if each.ref.unique_id == name)
        assert role == "current" and item.end is not None
        state, frontier = item.state, item.end
    table = local_table(state, MergedSlices(), hidden=role == "target")
    assert table is not None
    return table.rows(frontier), table.schema


def _without_zones(rows: pa.Table) -> pa.Table:
    """Times as DuckDB reads them without the time zones that only a further package knows."""
    for number, column in enumerate(rows.schema):
        if pa.types.is_timestamp(column.type):
            rows = rows.set_column(number, column.name, rows.column(number).cast(pa.timestamp("us")))
    return rows
