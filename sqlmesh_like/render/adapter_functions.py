"""What templates ask a lake: columns of a table, rows of a query. Owns dbt's functions for it and what they return.

While a project is read nobody answers: `execute` is false, answers are empty, and that the template asked is noted.
Such a template is rendered again when its node is run, with a `LakeQueries` that answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from sqlmesh_like.names import Schema, TableName
from sqlmesh_like.project.reading.bounds import unbounded
from sqlmesh_like.render.relations import TemplateRelation
from sqlmesh_like.render.results.result_table import ResultTable
from sqlmesh_like.render.templates import TemplateFault
from sqlmesh_like.sql_text import spark_identifier

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


@dataclass(frozen=True)
class QueryResult:
    """Rows of a query in the columns' order."""

    names: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


class LakeQueries(Protocol):
    """Answers from tables as they are when it is asked. Every method may raise NodeError."""

    def columns(self, table: TableName) -> Schema | None:
        """Visible columns of a table or view, None where there is none."""
        ...

    def query(self, sql: str) -> QueryResult:
        """Rows of a SELECT; no rows of any other statement, which is done."""
        ...

    def drop(self, table: TableName) -> None:
        """Drop a table that is none of the project's nodes, if it exists."""
        ...


class ColumnOf:
    """A column as dbt's `api.Column` shows it. Sizes are those that the caller gives, else the type's own."""

    def __init__(
        self,
        column: str,
        dtype: str,
        char_size: int | None = None,
        numeric_precision: int | None = None,
        numeric_scale: int | None = None,
    ) -> None:
        self.name = self.column = column
        self.dtype = dtype.partition("(")[0]
        self.data_type = dtype
        self.char_size, self.numeric_precision, self.numeric_scale = char_size, numeric_precision, numeric_scale

    @classmethod
    def create(cls, name: str, label_or_dtype: str) -> ColumnOf:
        return cls(name, cls.translate_type(label_or_dtype))

    @staticmethod
    def translate_type(name: str) -> str:
        """Spark's name of a type by dbt's."""
        return {"text": "string", "integer": "int", "numeric": "decimal(28,6)"}.get(name.lower(), name.lower())

    @staticmethod
    def string_type(size: int) -> str:
        return f"varchar({size})"

    @staticmethod
    def numeric_type(dtype: str, precision: int | None, scale: int | None) -> str:
        return dtype if precision is None or scale is None else f"{dtype}({precision},{scale})"

    @property
    def quoted(self) -> str:
        return spark_identifier(self.name)

    def is_string(self) -> bool:
        return self.dtype.lower() in ("string", "varchar", "char", "text")

    def is_numeric(self) -> bool:
        return self.dtype.lower() in ("decimal", "numeric")

    def is_number(self) -> bool:
        return self.dtype.lower() in _NUMBERS

    def is_integer(self) -> bool:
        return self.dtype.lower() in _NUMBERS[:4]

    def is_float(self) -> bool:
        return self.dtype.lower() in ("float", "double")

    def string_size(self) -> int:
        """Text has no size on Spark; this is what dbt says then."""
        return 256

    def can_expand_to(self, _other: object) -> bool:
        return False

    def __str__(self) -> str:
        return f"<Column {self.name} ({self.data_type})>"


class Response:
    """How a statement ended: `response` of its result."""

    def __init__(self, message: str = "OK", code: str | None = None, rows_affected: object = None) -> None:
        self.code, self.rows_affected, self.query_id = code, rows_affected, None
        self._message = message

    def __str__(self) -> str:
        return self._message


class Execute:
    """`execute` of templates: whether somebody answers. To look at it is to ask."""

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


class ProjectGraph(Mapping[str, object]):
    """`graph` of templates, `nodes`, `sources` and so on as in manifest.json. To look at it is to ask.

    As in dbt it is empty while the project is read: not all nodes are known by then.
    """

    __slots__ = ("_entries", "_note")

    def __init__(self, entries: Callable[[], Mapping[str, object]] | None, note: Callable[[], None]) -> None:
        self._entries = entries
        self._note = note

    def __getitem__(self, key: str) -> object:
        if key not in _OF_GRAPH:
            raise KeyError(key)
        self._note()
        return {} if self._entries is None else self._entries()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(_OF_GRAPH)

    def __len__(self) -> int:
        return len(_OF_GRAPH)


_OF_GRAPH = ("nodes", "sources", "exposures", "groups", "metrics", "semantic_models", "saved_queries")


class _Waiting:
    """A lake that takes its time: what it needs is none of the template's."""

    __slots__ = ("_lake",)

    def __init__(self, lake: LakeQueries) -> None:
        self._lake = lake

    def columns(self, table: TableName) -> Schema | None:
        with unbounded():
            return self._lake.columns(table)

    def query(self, sql: str) -> QueryResult:
        with unbounded():
            return self._lake.query(sql)

    def drop(self, table: TableName) -> None:
        with unbounded():
            self._lake.drop(table)


class AdapterFunctions:
    """The questions of one node's template. `note` is called whenever there is one.

    Nothing but the questions is public: the sandbox gives templates every attribute without an underscore, and the way
    from a lake leads to its engine and to Spark.
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
        }

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
        """Keep a result for `load_result`, as macros of packages do that run statements."""
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

    def load_relation(self, relation: TemplateRelation) -> TemplateRelation | None:
        return self.get_relation(None, relation.schema, relation.identifier)

    def get_relation(self, database: object = None, schema: str = "", identifier: str = "") -> TemplateRelation | None:
        del database
        self._note()
        table = TableName(str(schema), str(identifier))
        return TemplateRelation(table) if self._lake is not None and self._lake.columns(table) is not None else None

    def get_columns_in_relation(self, relation: object) -> list[ColumnOf]:
        self._note()
        if self._lake is None:
            return []
        if not isinstance(relation, TemplateRelation):
            raise TemplateFault(
                "get_columns_in_relation takes a ref(), a source() or this", r"\bget_columns_in_relation\b"
            )
        columns = self._lake.columns(TableName(relation.schema, relation.identifier))
        return [ColumnOf(column.name, column.type or "string") for column in columns or ()]

    def drop_relation(self, relation: object) -> str:
        """Nothing while the project is read; where a lake answers it decides."""
        self._note()
        if not isinstance(relation, TemplateRelation):
            raise TemplateFault("drop_relation takes a ref(), a source(), this or a relation", r"\bdrop_relation\b")
        if self._lake is not None:
            self._lake.drop(TableName(relation.schema, relation.identifier))
        return ""

    def check_schema_exists(self, *_args: object, **_options: object) -> bool:
        self._note()
        return True

    def create_schema(self, *_args: object, **_options: object) -> str:
        """Schemas are folders: they are there when a table is."""
        return ""

    drop_schema = create_schema

    def verify_database(self, *_args: object, **_options: object) -> str:
        return ""


def _table(answer: QueryResult) -> ResultTable:
    return ResultTable(answer.names, answer.rows)


def _whole(sql: object) -> str:
    return str(sql).strip().rstrip(";")
