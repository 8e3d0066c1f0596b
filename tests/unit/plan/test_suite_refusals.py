"""Spark's own suite, checked without Spark: what it refuses is refused at compile, and what it answers is not.

The columns of its tables are known as far as the types of the queries that make them are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress

import pytest
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlmesh_like.compiler import Compiler
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import SqlError
from sqlmesh_like.names import Column, NodeId, Schema, TableName
from sqlmesh_like.plan.checks.check import check_models
from sqlmesh_like.plan.checks.written_types import WrittenTypes
from sqlmesh_like.project.nodes import ModelConfig
from sqlmesh_like.render.rendered import InputRef, RenderedModel, SourceMap
from tests.services.spark_suite import Statement, suite_files, suite_jar
from tests.services.wanted import need

pytestmark = pytest.mark.release
_LEGACY = re.compile(r"cte-(non)?legacy|datetime-legacy|timestampNTZ/|charvarchar|ansi")
"""Files under settings that no session of this project has."""
_NO_MODEL = re.compile(
    r"two columns are named|no name|is neither in GROUP BY|transform takes|TRANSFORM|unknown function|is not a ref"
    r"|is a parameter|this is VALUES|'t4' in mydb1.t4.c2|grouping__id|depends on the clock"
)
"""Refusals of what no model may hold: other commands' text, columns without a name or with the same,
`date 'today'`. And two that are left: a correlated column that its table's schema qualifies, and Hive's name for
`grouping_id()`."""
MOST_LENIENT = 41
LEAST_FOLLOWED = 0.95
_BY_CHANCE = re.compile(r"^FUN002|TRANSFORM\(|LIMIT without ORDER BY")


def test_what_sparks_analysis_refuses_is_refused_and_nothing_that_it_answers() -> None:
    need(suite_jar)
    lenient, strict, asked = [], [], 0
    for file, statements in suite_files():
        tables: dict[str, Schema] = {}
        for number, statement in enumerate(statements):
            if statement.sql.lower().startswith("set ") or _LEGACY.search(file):
                break
            if not statement.is_query:
                _prepare(statement.sql, tables)
            elif statement.is_answered or statement.is_refused:
                error = _error_of(statement, tables)
                asked += 1
                if statement.is_refused and error is None:
                    lenient.append(f"{file} {number}: {statement.sql}")
                elif statement.is_answered and error is not None and not _NO_MODEL.search(error):
                    strict.append(f"{file} {number}: {error}: {statement.sql}")
    assert asked > 4_000
    assert not strict, "\n".join(strict)
    assert len(lenient) <= MOST_LENIENT, "\n".join(lenient)


def test_most_queries_of_a_table_are_followed() -> None:
    """Of those that Spark answers with the same rows each time: not by chance, by a program, or by what comes first."""
    need(suite_jar)
    followed, rebuilt = 0, []
    for file, statements in suite_files():
        tables: dict[str, Schema] = {}
        for number, statement in enumerate(statements):
            if statement.sql.lower().startswith("set ") or _LEGACY.search(file):
                break
            if not statement.is_query:
                _prepare(statement.sql, tables)
            elif statement.is_answered and (reason := _reason_to_rebuild(statement.sql, tables)) is not None:
                followed += not reason
                rebuilt += [f"{file} {number}: {reason}: {statement.sql}"] if reason else []
    assert followed >= LEAST_FOLLOWED * (followed + len(rebuilt)), "\n".join(rebuilt)
    assert followed > 3_000


def _reason_to_rebuild(sql: str, tables: Mapping[str, Schema]) -> str | None:
    """Why a query is a full refresh, empty if it is none; None if it is no model, or no table decides its rows."""
    with suppress(SqlglotError, SqlError):
        model = _model(sql, tables)
        plan = Compiler(_schemas(tables)).compile(model).classification
        first = plan.reasons[0]
        if not model.inputs or (plan.strategy == "full_refresh" and _BY_CHANCE.search(f"{first.rule} {first.message}")):
            return None
        return f"{first.rule} {first.message}" if plan.strategy == "full_refresh" else ""
    return None


def _prepare(sql: str, tables: dict[str, Schema]) -> None:
    """Remember the columns of a view or table that a statement creates."""
    with suppress(SqlglotError, SqlError, ValueError):  # ValueError: as many names as columns
        create = sqlglot.parse_one(sql, dialect=SPARK)
        if not isinstance(create, exp.Create):
            return
        table = create.this.this if isinstance(create.this, exp.Schema) else create.this
        named = create.this.expressions if isinstance(create.this, exp.Schema) else []
        tables.pop(table.name.lower(), None)
        if isinstance(create.expression, exp.Query):
            columns = _columns_of(create.expression.sql(SPARK), tables)
            names = [column.name for column in named] or [column.name for column in columns]
            columns = tuple(Column(name, column.type) for name, column in zip(names, columns, strict=True))
        else:
            kinds = [(column.name, column.args.get("kind")) for column in named]
            columns = tuple(Column(name, kind.sql(SPARK).lower().replace(", ", ",")) for name, kind in kinds if kind)
        if columns and all(column.type for column in columns):
            tables[table.name.lower()] = columns


def _columns_of(sql: str, tables: Mapping[str, Schema]) -> Schema:
    model = _model(sql, tables)
    compiler = Compiler(_schemas(tables))
    facts = compiler.compile(model).facts
    written = WrittenTypes.of(facts, compiler.columns) if facts.schema is None else None
    outputs = (written.outputs() if written is not None else None) or []
    return facts.schema or tuple(Column(name, type_) for name, type_ in outputs)


def _error_of(statement: Statement, tables: Mapping[str, Schema]) -> str | None:
    try:
        model = _model(statement.sql, tables)
    except SqlglotError as error:
        return f"is not a ref or does not parse: {error}"
    error_of_model = check_models([model], _schemas(tables)).errors.get(model.unique_id)
    return None if error_of_model is None else error_of_model.message


def _model(sql: str, tables: Mapping[str, Schema]) -> RenderedModel:
    """A query as `sml sql` asks it: columns need no names. Tables are those that it names."""
    trees = [tree for tree in sqlglot.parse(sql, dialect=SPARK) if tree is not None]
    named = {(t.db, t.name) for tree in trees for t in tree.find_all(exp.Table) if t.name.lower() in tables}
    refs = tuple(InputRef(_id(name), TableName(db, name), "model") for db, name in sorted(named))
    own = NodeId("question", "suite", "asked")
    config, place = ModelConfig(), TableName("", "asked")
    return RenderedModel(own, "asked", "asked.sql", sql, sql, config, place, refs, SourceMap(sql, sql))


def _schemas(tables: Mapping[str, Schema]) -> dict[str, Schema | None]:
    return {_id(name): columns for name, columns in tables.items()}


def _id(table: str) -> NodeId:
    return NodeId("model", "suite", table.lower())
