"""Steps that executors compute, as they read what is too large for this process. Owns what is sent and what arrives.

A step is one query of Spark's: over the tables that it reads, and over earlier steps, whose rows are sent along. Groups
of a table that several steps read alike, such as the sums of all its rows by a column, are computed once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import duckdb
import pyarrow as pa
from sqlglot import exp

from sqlmesh_like.analyze.spark_types.one_zero import FLOATING
from sqlmesh_like.delta.clock_boundary import at_clocks
from sqlmesh_like.delta.machine import ReadyStep, tables_of, work_of
from sqlmesh_like.delta.program import DeltaProgram, Prune, name_of, split_relation
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.duckdb.duck_types import cast_item, duck_quoted
from sqlmesh_like.duckdb.exact_sql import ExactQuery, Unproven, exact
from sqlmesh_like.duckdb.local_files import is_plain
from sqlmesh_like.duckdb.programs.executor_rows import arrived_rows
from sqlmesh_like.duckdb.programs.read_limit import MOST_ROWS, ReadLimit
from sqlmesh_like.names import Schema
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.run.remote_reader import RemoteQuery

_MOST_SENT = 64_000_000
"""Bytes of the steps that are sent along with a query, which the driver of Spark holds as well."""


@dataclass
class RemoteSteps:
    """The steps of one run that executors compute. `schemas`: of the steps so far, to which groups are added.

    `schema_of`: the columns of a step or of an outside relation.
    """

    db: duckdb.DuckDBPyConnection
    planned: PlannedModel
    limit: ReadLimit
    schemas: dict[str, Schema]
    schema_of: Callable[[str], Schema]
    _groups: dict[str, str | None] = field(default_factory=dict)

    def computed(self, step: ReadyStep) -> ExactQuery:
        """SELECT of the rows of a step, until others arrive. Raises Unproven where executors do not return them."""
        rows = self._rows(step.query, step.prunes)
        if rows is None:
            raise Unproven(f"the step {step.name} reads too large tables, and executors do not return its rows")
        return rows

    def bind_groups(self, holder: exp.Expr, is_too_large: Callable[[exp.Expr], bool]) -> None:
        """Replace the groups of too large inputs that several steps read by a table that has them."""
        for subquery in grouped_subqueries(holder):
            text = subquery.this.sql(SPARK)
            if self._uses[text] < 2 or not is_too_large(subquery):
                continue
            if text not in self._groups:
                self._groups[text] = self._read_groups(subquery.this)
            if (name := self._groups[text]) is not None:
                subquery.replace(exp.table_(name, alias=subquery.alias))

    def _read_groups(self, query: exp.Query) -> str | None:
        """The table with the rows of a query over inputs; None where they are too many."""
        rows, name = self._rows(query, ()), f"_sml_groups_{len(self._groups)}"
        if rows is not None:
            self.db.execute(f"CREATE TEMP TABLE {name} AS {rows.sql}")
            self.schemas[name] = rows.columns
        return None if rows is None else name

    @cached_property
    def _uses(self) -> Counter[str]:
        """How many steps of the program read these groups, by the text of their query."""
        work = work_of(self.planned.table, self.planned.strategy, self.planned.moves)
        steps = work.steps if isinstance(work, DeltaProgram) else ()
        queries = [at_clocks(step.query, self.planned.now, self.planned.then) for step in steps]
        return Counter(text for query in queries for text in {s.this.sql(SPARK) for s in grouped_subqueries(query)})

    def _rows(self, query: exp.Query, prunes: Sequence[Prune]) -> ExactQuery | None:
        known = tuple(prune for prune in prunes if prune.step in self.schemas)
        names = {name for name in tables_of(query) if name in self.schemas} | {prune.step for prune in known}
        self._require_same_zeros(query, names)
        sent = {name: self._sent(name) for name in sorted(names)}
        if sum(rows.nbytes for rows in sent.values()) > _MOST_SENT or self.limit.most_bytes is None:
            return None
        wanted = RemoteQuery(self.planned, query, known, sent, MOST_ROWS, self.limit.most_bytes)
        result = self.limit.run_query(wanted)
        if result.rows is None or not all(is_plain(column.type) for column in result.columns):
            return None
        return ExactQuery(arrived_rows(self.db, result.rows, result.columns), result.columns)

    def _require_same_zeros(self, query: exp.Query, steps: Iterable[str]) -> None:
        """Raise Unproven where a query may show the sign of a zero: steps of this process have lost it."""
        if any(column.type in FLOATING for name in steps for column in self.schemas[name]):
            made = exact(query.copy(), lambda table: self.schema_of(name_of(table)))
            if made.shows_sign_of_zero:
                raise Unproven("the text of a zero, whose sign is lost")

    def _sent(self, name: str) -> pa.Table:
        columns = self.schemas[name]
        if unknown := [column for column in columns if not is_plain(column.type)]:
            raise Unproven(f"a column of {unknown[0].type} that executors have to read")
        items = ", ".join(cast_item(column.name, column.type) for column in columns)
        return self.db.sql(f"SELECT {items} FROM {duck_quoted(name)}").to_arrow_table()


def grouped_subqueries(query: exp.Expr) -> list[exp.Subquery]:
    """The subqueries in FROM that group rows of inputs alone, and of these the innermost.

    >>> import sqlglot
    >>> text = "select * from (select a, sum(b) as b from `current`.`x` group by a) as g join (select * from keys) as k"
    >>> [each.alias for each in grouped_subqueries(sqlglot.parse_one(text, dialect="spark"))]
    ['g']
    """
    found = [
        each
        for each in query.find_all(exp.Subquery)
        if isinstance(each.parent, exp.From | exp.Join)
        and isinstance(each.this, exp.Select)
        and each.this.args.get("group")
        and all((split_relation(table) or ("",))[0] == "current" for table in each.find_all(exp.Table))
    ]
    outer = {id(node) for each in found for node in _ancestors(each)}
    return [each for each in found if id(each) not in outer]


def _ancestors(node: exp.Expr) -> Iterator[exp.Expr]:
    above = node.parent
    while above is not None:
        yield above
        above = above.parent
