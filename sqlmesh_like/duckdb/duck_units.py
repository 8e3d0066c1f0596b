"""Unit tests on DuckDB. Owns running a case by the shipped plan, and reporting where DuckDB's result may differ from
Spark's.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC
from typing import Literal

import duckdb
import sqlglot
from sqlglot.errors import SqlglotError

from sqlmesh_like.dialects import SPARK
from sqlmesh_like.duckdb.allow_list import first_unproven
from sqlmesh_like.duckdb.dialect import duck_text
from sqlmesh_like.duckdb.duck_connection import time_limit, workspace
from sqlmesh_like.duckdb.duck_types import spark_name, without_zone
from sqlmesh_like.duckdb.exact_sql import Unproven
from sqlmesh_like.duckdb.guards import add_guards, add_type_checks, guard_in
from sqlmesh_like.duckdb.programs.memory_lake import MemoryLake
from sqlmesh_like.errors import NodeError, first_line
from sqlmesh_like.names import Column, Schema
from sqlmesh_like.run.ports import Rows
from sqlmesh_like.run.unit_cases import UnitCase
from sqlmesh_like.run.unit_tests import Outcome

_NO_ROWS = Rows((), ())


class DuckUnits:
    """The port's engine for unit tests; each case has its own database, so cases may run in parallel.

    `is_lenient`: a case on which DuckDB is not known to agree with Spark runs all the same, with a warning.
    """

    def __init__(self, is_lenient: bool = False) -> None:
        self._is_lenient = is_lenient

    def query(self, sql: str) -> Rows:
        """Rows of a query without tables, in Spark's SQL. Raises NodeError."""
        try:
            tree = sqlglot.parse_one(sql, dialect=SPARK)
            text, checked = (duck_text(made.transform(without_zone)) for made in (tree.copy(), add_guards(tree)))
            typed = duck_text(add_type_checks(tree).transform(without_zone))
        except SqlglotError as error:
            raise NodeError(f"invalid SQL: {str(error).splitlines()[0]}") from None
        with workspace() as connection, time_limit(connection):
            try:
                if not self._is_lenient:
                    connection.execute(f"DESCRIBE {typed}")
                    connection.execute(checked).fetchall()
                cursor = connection.execute(text)
                names = [column[0] for column in cursor.description or ()]
                return Rows(tuple(map(Column, names)), tuple(cursor.fetchall()))
            except duckdb.InterruptException:
                raise
            except duckdb.Error as error:
                if reason := guard_in(str(error)):
                    raise NodeError(f"not checkable here: {reason}") from None
                raise NodeError(f"this query fails: {first_line(error)}") from None

    def run(self, case: UnitCase) -> Outcome:
        """Build the table from the given rows and apply the changes by the shipped program."""
        unproven = first_unproven(case.compiled.facts.tree)
        if unproven is None:
            outcome = _try_case(case, "guards")
            if outcome.is_by_value:
                # The guards know no types of Spark: of decimals, say, the proof of the whole query knows more.
                proven = _try_case(case, "proof")
                outcome = outcome if proven.unknown else proven
            if not (self._is_lenient and outcome.is_by_value):
                return outcome
            unproven = outcome.unknown
        if not self._is_lenient:
            return Outcome(_NO_ROWS, unknown=unproven)
        return replace(_try_case(case, "nothing"), unproven=unproven)


_Basis = Literal["guards", "proof", "nothing"]
"""Why DuckDB's rows are those of Spark: guards on each type and value, or `exact_sql`'s proof of the query."""


def _try_case(case: UnitCase, basis: _Basis) -> Outcome:
    now = case.now.astimezone(UTC).replace(tzinfo=None) if case.now.tzinfo else case.now
    lake = MemoryLake(case.schemas, now)
    try:
        with lake.time_limit():
            return _run_case(case, lake, basis)
    except Unproven as error:
        return Outcome(_NO_ROWS, unknown=str(error), is_by_value=True)
    except duckdb.Error as error:
        reason = guard_in(str(error))
        return Outcome(_NO_ROWS, unknown=reason or f"DuckDB: {first_line(error)}", is_by_value=reason is not None)
    finally:
        lake.close()


def _run_case(case: UnitCase, lake: MemoryLake, basis: _Basis) -> Outcome:
    """Build and update the table. Raises Unproven and duckdb.Error where the rows may not be those of Spark."""
    if basis == "guards":
        lake.bind(case.compiled, add_type_checks(case.compiled.facts.tree))
    lake.build(case.compiled, case.before)
    if basis == "proof" and case.after is None:
        columns, rows = lake.exact_rows(case.compiled)
        return Outcome(Rows(columns, tuple(rows)), Rows(columns, tuple(rows)))
    _check(case, lake, basis)
    if case.after is None:
        return Outcome(_rows(case, lake), _recomputed_rows(case, lake))
    lake.apply(case.compiled, case.before, case.after)
    _check(case, lake, basis)
    return Outcome(_rows(case, lake), _recomputed_rows(case, lake), case.compiled.classification.strategy)


def _check(case: UnitCase, lake: MemoryLake, basis: _Basis) -> None:
    if basis == "guards":
        lake.check(case.compiled, add_guards(case.compiled.facts.tree))
    elif basis == "proof" and not lake.agrees_exactly(case.compiled):
        raise Unproven("rows that differ from those of the proven query")


def _rows(case: UnitCase, lake: MemoryLake) -> Rows:
    return Rows(_schema(case, lake), tuple(lake.rows()))


def _recomputed_rows(case: UnitCase, lake: MemoryLake) -> Rows:
    return Rows(_schema(case, lake), tuple(lake.recomputed_rows(case.compiled)))


def _schema(case: UnitCase, lake: MemoryLake) -> Schema:
    """The model's columns with their proven types, else with Spark's names for DuckDB's types."""
    proven = {column.name.lower(): column.type for column in case.compiled.facts.schema or ()}
    pairs = zip(lake.columns(), lake.types(), strict=True)
    return tuple(Column(name, proven.get(name.lower()) or spark_name(type_)) for name, type_ in pairs)
