"""Results of queries that templates send to a lake during a run. Owns parsing the SQL; an engine finds the rows."""

from __future__ import annotations

from dataclasses import dataclass

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from sqlmesh_like.analyze.nesting import parse_text
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import NodeError
from sqlmesh_like.names import NodeId, Schema, TableName
from sqlmesh_like.plan.planner import Planner
from sqlmesh_like.project.nodes import ModelConfig
from sqlmesh_like.render.adapter_functions import QueryResult
from sqlmesh_like.render.rendered import InputRef, RenderedModel, SourceMap
from sqlmesh_like.render.rerender import AsksItself, is_rendering
from sqlmesh_like.run.information_schema import is_asked, with_relations
from sqlmesh_like.run.ports import QueryEngine, StatementEngine

_ASKED = NodeId("question", "asked", "question")  # of kind `question`: columns without an alias are named by their text
_STATEMENTS = "statements are for hooks and run-operation; while a model is rendered only a SELECT may run"


@dataclass(frozen=True)
class LakeQuery:
    """The `Lake` of templates: reads tables as they are at each query, and views through their SQL.

    `statements` runs what is not a SELECT; without it only a SELECT may run.
    """

    planner: Planner
    engine: QueryEngine
    statements: StatementEngine | None = None

    def execute(self, sql: str) -> None:
        """Run one or more statements of any kind. Raises NodeError."""
        if self.statements is None:
            raise NodeError("a statement may not run here", hint=_STATEMENTS)
        for statement in _statements(sql):
            named = named_tables(statement)
            places = self.planner.catalog.places.values()
            states = {
                place.table: self.planner.catalog.state(place.unique_id)
                for place in places
                if (place.table.schema.lower(), place.table.identifier.lower()) in named
            }
            self.statements.execute(statement, states)

    def columns(self, table: TableName) -> Schema | None:
        """Visible columns of a table or view, None if it does not exist."""
        catalog = self.planner.catalog
        for unique_id, place in catalog.places.items():
            if _same(place.table, table):
                return catalog.state(unique_id).schema
        if any(_same(model.table, table) for model in self.planner.rendered.models):
            model = self._view(f"select * from {table.sql()}")
            states = catalog.states(self.planner.inputs(model))
            try:
                facts = self.planner.compile(model, states).facts
                return facts.schema or self._rows(model, 0)[0]
            except AsksItself:
                return None
        return None

    def query(self, sql: str) -> QueryResult:
        """Rows of one SELECT over tables and views of the project; with `statements`, other SQL is executed instead.

        Raises NodeError.
        """
        try:
            tree = parse_text(sql)
        except SqlglotError as error:
            raise NodeError(f"run_query: invalid SQL: {str(error).splitlines()[0]}") from None
        if not only_reads(tree) and self.statements is not None:
            self.execute(sql)
            return QueryResult((), ())
        if not only_reads(tree):
            raise NodeError(f"run_query takes a SELECT here, not {tree.key.upper()}", hint=_STATEMENTS)
        if is_asked(tree):
            sql = with_relations(tree, self.relations(there=True), self.columns).sql(SPARK)
        schema, rows = self._rows(self._view(sql), -1)
        return QueryResult(tuple(column.name for column in schema), rows)

    def relations(self, *, there: bool = False) -> dict[TableName, str]:
        """Tables and views of the project; with `there`, only tables that exist. A view being rendered is left out."""
        catalog = self.planner.catalog
        tables = {
            place.table: "table"
            for unique_id, place in catalog.places.items()
            if not there or catalog.state(unique_id).exists
        }
        views = (model for model in self.planner.rendered.models if model.config.materialized == "view")
        return tables | {view.table: "view" for view in views if not is_rendering(view.unique_id)}

    def drop(self, table: TableName) -> None:
        """Drop a table that a statement created, if it exists; a view of the project has nothing to drop.

        Raises NodeError for a table of the project, whose commits hold the record of runs, and while a model is
        rendered.
        """
        if self.statements is None:
            raise NodeError("adapter.drop_relation drops nothing here", hint=_STATEMENTS)
        if any(_same(place.table, table) for place in self.planner.catalog.places.values()):
            hint = f"to build it anew: sml run --full-refresh -s {table.identifier}"
            raise NodeError(f"adapter.drop_relation: {table} is a table of this project, it is not dropped", hint=hint)
        if not any(_same(model.table, table) for model in self.planner.rendered.models):
            self.execute(f"drop table if exists {table.sql()}")

    def _view(self, sql: str) -> RenderedModel:
        named = named_tables(sql)
        inputs = [ref for ref in self._refs() if (ref.table.schema.lower(), ref.table.identifier.lower()) in named]
        config = ModelConfig(materialized="view")
        return RenderedModel(
            _ASKED, "question", "<run_query>", sql, sql, config, TableName("", "question"), tuple(inputs),
            SourceMap(sql, sql),
        )  # fmt: skip

    def _refs(self) -> list[InputRef]:
        views = (m for m in self.planner.rendered.models if m.unique_id not in self.planner.catalog.places)
        places = self.planner.catalog.places.values()
        return [
            *(InputRef(place.unique_id, place.table, "model") for place in places),
            *(InputRef(view.unique_id, view.table, "model") for view in views),
        ]

    def _rows(self, model: RenderedModel, limit: int) -> tuple[Schema, tuple[tuple[object, ...], ...]]:
        states = self.planner.catalog.states(self.planner.inputs(model))
        facts = self.planner.compile(model, states).facts
        rows = self.engine.query(facts.tree, self.planner.tables(facts, states), limit)
        return rows.schema, rows.rows


def only_reads(tree: exp.Expr) -> bool:
    """Whether a statement is a SELECT of which no part writes anything."""
    return isinstance(tree, exp.Query) and tree.find(exp.DML, exp.DDL, exp.Into, exp.Command) is None


def _same(one: TableName, other: TableName) -> bool:
    return str(one).lower() == str(other).lower()


def _statements(sql: str) -> list[str]:
    """Split a text into statements, at semicolons outside of quotes and comments."""
    try:
        tokens = sqlglot.tokenize(sql, dialect="spark")
    except SqlglotError as error:
        raise NodeError(f"invalid SQL: {str(error).splitlines()[0]}") from None
    ends = [token.start for token in tokens if token.token_type == TokenType.SEMICOLON]
    parts = [sql[start:end] for start, end in zip([0, *(end + 1 for end in ends)], [*ends, len(sql)], strict=True)]
    return [part.strip() for part in parts if part.strip()]


def named_tables(sql: str) -> set[tuple[str, str]]:
    """Schema and name of all tables that a statement may refer to: pairs of names with a dot between them."""
    tokens = sqlglot.tokenize(sql, dialect="spark")
    return {
        (left.text.lower(), right.text.lower())
        for left, dot, right in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if dot.token_type == TokenType.DOT
    }
