"""What templates ask a lake: columns of a table, rows of a query. Owns dbt's functions for it and what they return.

While a project is read nobody answers: `execute` is false, answers are empty, and that the template asked is noted.
Such a template is rendered again when its node is run, with a `LakeQueries` that answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlmesh_like.names import Schema, TableName
from sqlmesh_like.project.reading.bounds import unbounded
from sqlmesh_like.render.relations import TemplateRelation
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


class ResultColumn:
    """One column of a result: `.name`, `.values()`, and its values in order."""

    def __init__(self, name: str, values: tuple[object, ...]) -> None:
        self.name = name
        self._values = values

    def values(self) -> tuple[object, ...]:
        return self._values

    def __iter__(self) -> Iterator[object]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, position: int) -> object:
        return self._values[position]


class ResultRow(Mapping[str, object]):
    """One row: by position, by name and, in templates, by attribute. Going through it gives its values."""

    def __init__(self, names: Sequence[str], values: tuple[object, ...]) -> None:
        self._names = tuple(names)
        self._row = values

    def __getitem__(self, key: str | int) -> object:
        if isinstance(key, int):
            return self._row[key]
        wanted = [name.lower() for name in self._names]
        if key.lower() not in wanted:
            raise KeyError(key)
        return self._row[wanted.index(key.lower())]

    def __iter__(self) -> Iterator[object]:  # type: ignore[override]  # as agate's rows do
        return iter(self._row)

    def __len__(self) -> int:
        return len(self._row)

    def keys(self) -> tuple[str, ...]:  # type: ignore[override]
        return self._names

    def values(self) -> tuple[object, ...]:  # type: ignore[override]
        return self._row

    def dict(self) -> dict[str, object]:
        return dict(zip(self._names, self._row, strict=True))


class _Columns(tuple[ResultColumn, ...]):
    """Columns by position and, in templates, by name; `items()` and the like as agate's, a mapping by name."""

    def __getitem__(self, key: object) -> ResultColumn:  # type: ignore[override]
        if isinstance(key, int):
            return tuple.__getitem__(self, key)
        for column in self:
            if column.name.lower() == str(key).lower():
                return column
        raise KeyError(key)

    def keys(self) -> tuple[str, ...]:
        return tuple(column.name for column in self)

    def values(self) -> tuple[ResultColumn, ...]:
        return tuple(self)

    def items(self) -> tuple[tuple[str, ResultColumn], ...]:
        return tuple((column.name, column) for column in self)

    def get(self, key: object, default: object = None) -> object:
        try:
            return self[key]
        except (KeyError, IndexError):
            return default

    def dict(self) -> dict[str, ResultColumn]:
        return dict(self.items())


class ResultTable:
    """What `run_query` returns, with what templates use of agate's tables."""

    def __init__(self, answer: QueryResult) -> None:
        self.column_names = answer.names
        self.rows = tuple(ResultRow(answer.names, row) for row in answer.rows)
        self.columns = _Columns(
            ResultColumn(name, tuple(row[position] for row in answer.rows))
            for position, name in enumerate(answer.names)
        )

    def __iter__(self) -> Iterator[ResultRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def print_table(self, *_args: object, **_options: object) -> str:
        return ""


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

    __slots__ = ("_entries", "_note", "_own")

    def __init__(self, entries: Callable[[], Mapping[str, object]] | None, note: Callable[[], None]) -> None:
        self._entries = entries
        self._note = note
        self._own: dict[str, object] = {}

    def setdefault(self, key: str, default: object = None) -> object:
        """A value that a package keeps beside the graph, as elementary does: here one of this node's templates."""
        return self[key] if key in _OF_GRAPH else self._own.setdefault(key, default)

    def __getitem__(self, key: str) -> object:
        if key in self._own:
            return self._own[key]
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
            "store_result": self._store_nothing,
            "load_relation": self.load_relation,
        }

    def _is_answered(self) -> bool:
        self._note()
        return self._lake is not None

    def run_query(self, sql: object = "") -> ResultTable | None:
        self._note()
        return None if self._lake is None else ResultTable(self._lake.query(_whole(sql)))

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
                table = ResultTable(answer if fetch_result else QueryResult((), ()))
                self._results[name] = {"response": "OK", "data": [list(row) for row in answer.rows], "table": table}
        return ""

    def load_result(self, name: str) -> Mapping[str, object] | None:
        self._note()
        return self._results.get(name)

    def _store_nothing(self, *_args: object, **_options: object) -> str:
        return ""

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


def _whole(sql: object) -> str:
    return str(sql).strip().rstrip(";")
