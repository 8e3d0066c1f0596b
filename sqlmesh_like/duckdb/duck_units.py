"""Unit tests on DuckDB. Owns running a case by the shipped plan, and reporting where DuckDB's result may differ from
Spark's.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC

import duckdb
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlmesh_like.dialects import SPARK
from sqlmesh_like.duckdb.allow_list import first_unproven, guard_in, guarded
from sqlmesh_like.duckdb.dialect import duck_text
from sqlmesh_like.duckdb.duck_connection import sandbox, time_limit
from sqlmesh_like.duckdb.duck_types import spark_name
from sqlmesh_like.duckdb.plan_simulator import PlanSimulator
from sqlmesh_like.errors import NodeError
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
            text = duck_text(sqlglot.parse_one(sql, dialect=SPARK))
        except SqlglotError as error:
            raise NodeError(f"invalid SQL: {str(error).splitlines()[0]}") from None
        with sandbox() as connection, time_limit(connection):
            try:
                cursor = connection.execute(text)
                names = [column[0] for column in cursor.description or ()]
                return Rows(tuple(map(Column, names)), tuple(cursor.fetchall()))
            except duckdb.InterruptException:
                raise
            except duckdb.Error as error:
                raise NodeError(f"this query fails: {_first_line(error)}") from None

    def run(self, case: UnitCase) -> Outcome:
        """Build the table from the given rows and apply the changes by the shipped program."""
        unproven = first_unproven(case.compiled.facts.tree)
        if unproven is None:
            outcome = _attempted(case, guarded(case.compiled.facts.tree))
            if not (self._is_lenient and outcome.is_by_value):
                return outcome
            unproven = outcome.unknown
        if not self._is_lenient:
            return Outcome(_NO_ROWS, unknown=unproven)
        return replace(_attempted(case, None), unproven=unproven)


def _attempted(case: UnitCase, checked: exp.Expr | None) -> Outcome:
    now = case.now.astimezone(UTC).replace(tzinfo=None) if case.now.tzinfo else case.now
    lake = PlanSimulator(case.schemas, now)
    try:
        with lake.time_limit():
            return _run(case, lake, checked)
    except duckdb.Error as error:
        reason = guard_in(str(error))
        return Outcome(_NO_ROWS, unknown=reason or f"DuckDB: {_first_line(error)}", is_by_value=reason is not None)
    finally:
        lake.close()


def _run(case: UnitCase, lake: PlanSimulator, checked: exp.Expr | None) -> Outcome:
    """Build and update the table; `checked` is the query with guards, None to skip checking values."""
    lake.build(case.compiled, case.before)
    if checked is not None:
        lake.check(case.compiled, checked)
    if case.after is None:
        return Outcome(_rows(case, lake), _recomputed(case, lake))
    lake.apply(case.compiled, case.before, case.after)
    if checked is not None:
        lake.check(case.compiled, checked)
    return Outcome(_rows(case, lake), _recomputed(case, lake), case.compiled.classification.strategy)


def _rows(case: UnitCase, lake: PlanSimulator) -> Rows:
    return Rows(_schema(case, lake), tuple(lake.rows()))


def _recomputed(case: UnitCase, lake: PlanSimulator) -> Rows:
    return Rows(_schema(case, lake), tuple(lake.recomputed(case.compiled)))


def _schema(case: UnitCase, lake: PlanSimulator) -> Schema:
    """The model's columns with their proven types, else with Spark's names for DuckDB's types."""
    proven = {column.name.lower(): column.type for column in case.compiled.facts.schema or ()}
    pairs = zip(lake.columns(), lake.types(), strict=True)
    return tuple(Column(name, proven.get(name.lower()) or spark_name(type_)) for name, type_ in pairs)


def _first_line(error: Exception) -> str:
    return re.sub(r"\s+", " ", str(error).strip().splitlines()[0])
