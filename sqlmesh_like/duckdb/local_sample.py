"""A sample of a table compared with its recompute, without a JVM. Owns when DuckDB can do it, and the SQL.

The query is run as it is written if each of its forms is proven (`exact_sql`), else as the plan that builds the table,
which has fewer forms. In all other cases, and if anything fails on the way, there is no result, and Spark does it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from tempfile import TemporaryDirectory

import duckdb
from sqlglot import exp

from sqlmesh_like.analyze.expressions.clock import frozen
from sqlmesh_like.analyze.spark_types.type_names import stored_type
from sqlmesh_like.classify.rules import TIED
from sqlmesh_like.delta.clock_boundary import at_clocks
from sqlmesh_like.delta.program import split_relation
from sqlmesh_like.duckdb.dialect import duck_text
from sqlmesh_like.duckdb.duck_connection import file_worker
from sqlmesh_like.duckdb.duck_types import cast_item, duck_quoted
from sqlmesh_like.duckdb.exact_sql import SETUP, ExactQuery, Unproven, exact
from sqlmesh_like.duckdb.local_files import is_exact
from sqlmesh_like.duckdb.merge_on_read_files import local_table
from sqlmesh_like.duckdb.merged_slices import MergedSlices
from sqlmesh_like.names import KEY, Column, Schema, visible
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.plan.sample_columns import inexact_columns, sample_columns
from sqlmesh_like.run.close_rows import close_difference, relative_tolerance
from sqlmesh_like.run.ports import ComparedKeys, LargestHash, Row, RowDifference, Sample

_LOG = logging.getLogger(__name__)
_MEMORY_SHARE = "25%"
_ENGINE = "duckdb"
_STORED, _EXPECTED, _UNEQUAL, _COPIES = "_sml_stored", "_sml_expected", "_sml_unequal", "_sml_copies"


def local_difference(recorded: PlannedModel, limit: int, sample: Sample) -> RowDifference | None:
    """Compare a sample of a table; None if Spark has to. `recorded`: see `PlannedModel.as_recorded`."""
    merged = MergedSlices()
    try:
        with (
            TemporaryDirectory(prefix="sml-") as scratch,
            closing(file_worker(_MEMORY_SHARE, scratch, keeps_order=False)) as db,
        ):
            for statement in SETUP:
                db.execute(statement)
            return _Comparison(db, recorded, merged).difference(limit, sample)
    except (Unproven, duckdb.Error, OSError) as error:
        # It may fail in Spark as well, which then reports the reason.
        _LOG.debug("%s is verified by Spark: %s", recorded.compiled.model.unique_id, error)
        return None
    finally:
        merged.forget()


@dataclass
class _Comparison:
    db: duckdb.DuckDBPyConnection
    planned: PlannedModel
    merged: MergedSlices
    views: dict[str, Schema] = field(default_factory=dict)

    def difference(self, limit: int, sample: Sample) -> RowDifference:
        shown = visible(self.planned.target.schema or ())
        self._create_view(_STORED, self.planned.target, shown, self._live())
        self._create_expected(shown)
        keys, condition = self._sample_keys(sample_columns(self.planned.compiled, shown), sample)
        names = ", ".join(duck_quoted(column.name) for column in shown)
        sides = " UNION ALL ".join(
            f"SELECT {names}, CAST({sign} AS BIGINT) AS {_COPIES} FROM {side} {condition}"
            for side, sign in ((_STORED, -1), (_EXPECTED, 1))
        )
        unequal = (
            f"SELECT {names}, sum({_COPIES}) AS {_COPIES} FROM ({sides}) GROUP BY {names} HAVING sum({_COPIES}) <> 0"
        )
        self.db.execute(f"CREATE TEMP TABLE {_UNEQUAL} AS {unequal}")
        total = self._fetch(f"SELECT coalesce(sum(abs({_COPIES})), 0) FROM {_UNEQUAL}")[0][0]
        floats = inexact_columns(self.planned.compiled, shown)

        def rows_of(sign: int, most: int | None) -> list[Row]:
            copies = f"CAST({_COPIES} * {sign} AS BIGINT)"
            repeated = f"SELECT *, unnest(range({copies})) FROM {_UNEQUAL} WHERE {copies} > 0"
            rows = self._fetch(f"SELECT {names} FROM ({repeated}) {'' if most is None else f'LIMIT {most}'}")
            return [dict(zip((column.name for column in shown), row, strict=True)) for row in rows]

        tolerance = relative_tolerance(self.planned.compiled.model.config.floating)
        return replace(close_difference(int(str(total)), rows_of, floats, limit, tolerance), keys=keys)

    def _sample_keys(self, names: Sequence[str], sample: Sample) -> tuple[ComparedKeys, str]:
        """The keys to compare, and the condition for their rows: a hash among the smallest of the table."""
        if not names:
            return ComparedKeys((), 0, is_all=True, up_to=LargestHash(_ENGINE, None)), ""
        hashed = f"hash({sample.seed}, {', '.join(map(duck_quoted, names))})"
        if sample.up_to is None:
            hashes = self._fetch(f"SELECT DISTINCT {hashed} AS h FROM {_STORED} ORDER BY h LIMIT {sample.keys + 1}")
            count = min(len(hashes), sample.keys)
            largest = int(str(hashes[sample.keys - 1][0])) if len(hashes) > sample.keys else None
            condition = _up_to(hashed, largest)
        else:
            largest = sample.up_to.of(_ENGINE)
            condition = _up_to(hashed, largest)
            count = int(str(self._fetch(f"SELECT count(DISTINCT {hashed}) FROM {_STORED} {condition}")[0][0]))
        keys = ComparedKeys(tuple(names), count, is_all=largest is None, up_to=LargestHash(_ENGINE, largest))
        return keys, condition

    def _create_expected(self, shown: Schema) -> None:
        """Create the view of the rows that the table must have, with the types of its columns."""
        query = self._recompute()
        types = {column.name.lower(): column.type for column in visible(query.columns)}
        if types.keys() != {column.name.lower() for column in shown}:
            raise Unproven("other columns than the stored ones")
        for column in self.views[_STORED]:
            if not is_exact(column.type):
                raise Unproven(f"a column {column.name} that is not read as Spark reads it")
            if stored_type(types[column.name.lower()]) != column.type:
                raise Unproven(f"a {types[column.name.lower()]} that is stored as {column.type}")
        items = ", ".join(cast_item(column.name, column.type) for column in shown)
        rows = f"SELECT {items} FROM ({query.sql})"
        self.db.execute(f"CREATE TEMP VIEW {_EXPECTED} AS SELECT * FROM ({rows}){self._live()}")

    def _live(self) -> str:
        """The condition for rows that are compared: those of frozen partitions may be other rows than the query's."""
        frozen = self.planned.frozen
        return f" WHERE {duck_text(frozen.is_live(), is_exact=True)}" if frozen is not None else ""

    def _recompute(self) -> ExactQuery:
        compiled = self.planned.compiled
        if not any(reason.rule in TIED for reason in compiled.classification.reasons):
            try:
                return self._as_written()
            except Unproven as error:
                _LOG.debug("%s is verified by its plan: %s", compiled.model.unique_id, error)
        if compiled.table.build is None:
            raise Unproven("a query that is run as it is written")
        return self._rebuild_query(compiled.table.build)

    def _as_written(self) -> ExactQuery:
        facts = self.planned.compiled.facts
        if facts.relation is None:  # its names are not all bound, and DuckDB might bind one of them otherwise
            raise Unproven("a query that is not in the algebra")
        by_name = {
            (item.ref.table.schema.lower(), item.ref.table.identifier.lower()): item.ref.unique_id
            for item in self.planned.inputs
        }
        holder = exp.Subquery(this=frozen(facts.tree, self.planned.now))
        for table in list(holder.find_all(exp.Table)):
            unique_id = by_name.get((table.db.lower(), table.name.lower()))
            if unique_id is None:
                raise Unproven(f"the table {table.name}")
            view = self._input_view(unique_id, with_key=False)
            table.replace(exp.table_(view, alias=exp.to_identifier(table.alias_or_name, quoted=True)))
        return exact(holder.this, lambda table: self.views[table.name])

    def _rebuild_query(self, build: exp.Query) -> ExactQuery:
        record = self.planned.target.record
        assert record is not None
        holder = exp.Subquery(this=at_clocks(build, self.planned.now, self.planned.now))
        for table in list(holder.find_all(exp.Table)):
            role, unique_id = split_relation(table) or ("", "")
            if role != "current":
                raise Unproven(f"the relation {table.name}")
            view = self._input_view(unique_id, with_key=True)
            table.replace(exp.table_(view, alias=table.alias or None))
        return exact(holder.this, lambda table: self.views[table.name])

    def _input_view(self, unique_id: str, *, with_key: bool) -> str:
        number, item = next(
            (number, item) for number, item in enumerate(self.planned.inputs) if item.ref.unique_id == unique_id
        )
        view = f"_sml_input_{number}{'_keyed' if with_key else ''}"
        if view not in self.views:
            state = replace(item.state, frontier=item.end)
            shown = visible(state.schema or ())
            self._create_view(view, state, (*shown, Column(KEY, "string")) if with_key else shown)
        return view

    def _create_view(self, view: str, state: TableState, shown: Schema, where: str = "") -> None:
        """Create the view of the rows of a table as of its frontier, with these columns."""
        table = local_table(state, self.merged, hidden=False)
        if table is None or state.frontier is None:
            raise Unproven(f"the table {state.uri}")
        names = ", ".join(duck_quoted(column.name) for column in shown)
        self.db.execute(f"CREATE TEMP VIEW {view} AS SELECT {names} FROM ({table.rows(state.frontier)}){where}")
        proven = {column.name: column for column in table.proven}
        self.views[view] = tuple(proven[column.name] for column in shown)

    def _fetch(self, query: str) -> list[tuple[object, ...]]:
        return self.db.execute(query).fetchall()


def _up_to(hashed: str, largest: int | None) -> str:
    return "" if largest is None else f"WHERE {hashed} <= {largest}"
