"""Queries that templates send to a lake: columns of a table, rows of a query. Owns dbt's functions for them.

While a project is read, `execute` is false and results are empty, and the template's query is recorded. Such a
template is rendered again when its node is run, with a real `LakeQueries`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from sqlmesh_like.names import Schema, TableName
from sqlmesh_like.project.reading.bounds import pause_limits
from sqlmesh_like.render.jinja.template_errors import TemplateFault
from sqlmesh_like.render.relations import TemplateRelation
from sqlmesh_like.render.results.column import ColumnOf
from sqlmesh_like.render.results.result_table import ResultTable


@dataclass(frozen=True)
class QueryResult:
    """Rows of a query in the columns' order."""

    names: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


class LakeQueries(Protocol):
    """Queries over tables as they are at each call. Every method may raise NodeError."""

    def columns(self, table: TableName) -> Schema | None:
        """Visible columns of a table or view, None if it does not exist."""
        ...

    def query(self, sql: str) -> QueryResult:
        """Rows of a SELECT; any other statement is executed and returns no rows."""
        ...

    def relations(self, *, there: bool = False) -> Mapping[TableName, str]:
        """Tables and views that the project may have, or those that exist now (`there`), each as `table` or `view`."""
        ...

    def drop(self, table: TableName) -> None:
        """Drop a table that is not a node of the project, if it exists."""
        ...


class Response:
    """The outcome of a statement: `response` of its result."""

    def __init__(self, message: str = "OK", code: str | None = None, rows_affected: object = None) -> None:
        self.code, self.rows_affected, self.query_id = code, rows_affected, None
        self._message = message

    def __str__(self) -> str:
        return self._message


class Execute:
    """`execute` of templates: whether a lake answers queries. Reading its value counts as a query."""

    __slots__ = ("_is_answered",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, is_answered: Callable[[], bool]) -> None:
        self._is_answered = is_answered

    def __bool__(self) -> bool:
        return self._is_answered()

    def __eq__(self, other: object) -> bool:
        return bool(self) == other

    def __str__(self) -> str:
        return str(bool(self))


class _Waiting:
    """A lake whose time to answer does not count towards the time limit of a template."""

    __slots__ = ("_lake",)

    def __init__(self, lake: LakeQueries) -> None:
        self._lake = lake

    def columns(self, table: TableName) -> Schema | None:
        with pause_limits():
            return self._lake.columns(table)

    def query(self, sql: str) -> QueryResult:
        with pause_limits():
            return self._lake.query(sql)

    def relations(self, *, there: bool = False) -> Mapping[TableName, str]:
        with pause_limits():
            return self._lake.relations(there=there)

    def drop(self, table: TableName) -> None:
        with pause_limits():
            self._lake.drop(table)


class AdapterFunctions:
    """The queries of one node's template. `note` is called at each.

    Only the queries are public: the sandbox gives templates every attribute without an underscore, and the attributes
    of a lake lead to its engine and to Spark.
    """

    __slots__ = ("_lake", "_note", "_results")

    def __init__(self, lake: LakeQueries | None, note: Callable[[], None]) -> None:
        self._lake = None if lake is None else _Waiting(lake)
        self._note = note
        self._results: dict[str, dict[str, object]] = {}

    def functions(self) -> dict[str, object]:
        """The names that templates call."""
        return {
            "execute": Execute(self._is_answered),
            "run_query": self.run_query,
            "statement": self.statement,
            "load_result": self.load_result,
            "store_result": self.store_result,
            "store_raw_result": self.store_raw_result,
            "load_relation": self.load_relation,
            "load_cached_relation": self.load_relation,
        }

    def _kinds(self) -> dict[str, str]:
        return {} if self._lake is None else {str(name).lower(): kind for name, kind in self._lake.relations().items()}

    def _is_answered(self) -> bool:
        self._note()
        return self._lake is not None

    def run_query(self, sql: object = "") -> ResultTable | None:
        self._note()
        return None if self._lake is None else _table(self._lake.query(_whole(sql)))

    def statement(
        self,
        name: str | None = None,
        fetch_result: bool = False,
        auto_begin: bool = True,
        language: str = "sql",
        caller: Callable[[], object] | None = None,
    ) -> str:
        del auto_begin, language
        self._note()
        sql = caller() if caller is not None else ""
        if self._lake is not None and str(sql).strip():
            answer = self._lake.query(_whole(sql))
            if name is not None:
                self.store_result(name, Response(), _table(answer) if fetch_result else None)
        return ""

    def load_result(self, name: str) -> Mapping[str, object] | None:
        self._note()
        return self._results.get(name)

    def store_result(self, name: str, response: object, agate_table: ResultTable | None = None) -> str:
        """Store a result for `load_result`, as macros of packages that run statements do."""
        table = ResultTable() if agate_table is None else agate_table
        self._results[name] = {"response": response, "data": [row.values() for row in table], "table": table}
        return ""

    def store_raw_result(
        self,
        name: str,
        message: str = "OK",
        code: str | None = None,
        rows_affected: object = None,
        agate_table: ResultTable | None = None,
    ) -> str:
        return self.store_result(name, Response(message, code, rows_affected), agate_table)

    def load_relation(self, relation: object) -> TemplateRelation | None:
        """The relation as it exists in the lake, else None, as for an ephemeral model."""
        self._note()
        table = _table_name(relation, "load_relation")
        if self._lake is None or self._lake.columns(table) is None:
            return None
        kind = self._kinds().get(str(table).lower())
        return None if kind is None else TemplateRelation(table, kind)

    def get_relation(self, database: object = None, schema: str = "", identifier: str = "") -> TemplateRelation | None:
        del database
        return self.load_relation(TemplateRelation(TableName(str(schema), str(identifier))))

    def list_relations(self, database: object = None, schema: object = "") -> list[TemplateRelation]:
        """Existing tables and views of a schema."""
        del database
        self._note()
        if self._lake is None:
            return []
        there = sorted(self._lake.relations(there=True).items())
        return [TemplateRelation(table, kind) for table, kind in there if table.schema.lower() == str(schema).lower()]

    def list_relations_without_caching(self, schema_relation: TemplateRelation) -> list[TemplateRelation]:
        return self.list_relations(None, schema_relation.schema)

    def list_schemas(self, database: object = None) -> list[str]:
        """Schemas that the project writes or reads; they count as existing, since dbt creates them before a run."""
        del database
        self._note()
        return [] if self._lake is None else sorted({table.schema for table in self._lake.relations()})

    def check_schema_exists(self, database: object = None, schema: object = "") -> bool:
        """Whether a schema exists; while the project is read, every schema does, as in dbt."""
        self._note()
        return self._lake is None or str(schema).lower() in map(str.lower, self.list_schemas(database))

    def get_columns_in_relation(self, relation: object) -> list[ColumnOf]:
        self._note()
        if self._lake is None:
            return []
        columns = self._lake.columns(_table_name(relation, "get_columns_in_relation"))
        return [ColumnOf(column.name, column.type or "string") for column in columns or ()]

    def get_missing_columns(self, from_relation: object, to_relation: object) -> list[ColumnOf]:
        """Columns of the first relation that the second lacks."""
        known = {column.name.lower() for column in self.get_columns_in_relation(to_relation)}
        return [column for column in self.get_columns_in_relation(from_relation) if column.name.lower() not in known]

    def expand_target_column_types(self, *_args: object, **_options: object) -> None:
        """Do nothing: Spark's strings have no size that could grow."""

    def drop_relation(self, relation: object) -> str:
        """Drop a relation; do nothing while the project is read. The lake decides what may be dropped."""
        self._note()
        table = _table_name(relation, "drop_relation")
        if self._lake is not None:
            self._lake.drop(table)
        return ""

    def create_schema(self, *_args: object, **_options: object) -> str:
        """Do nothing: schemas are folders, which exist once a table does."""
        return ""

    drop_schema = create_schema

    def verify_database(self, *_args: object, **_options: object) -> str:
        return ""


def _table_name(relation: object, function: str) -> TableName:
    if not isinstance(relation, TemplateRelation):
        raise TemplateFault(f"{function} takes a ref(), a source(), this or a relation", rf"\b{function}\b")
    return TableName(relation.schema, relation.identifier or "")


def _table(answer: QueryResult) -> ResultTable:
    return ResultTable(answer.names, answer.rows)


def _whole(sql: object) -> str:
    return str(sql).strip().rstrip(";")
