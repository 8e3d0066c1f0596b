"""Hudi tables as DuckDB's SQL over their Parquet files. Owns the SQL; `hudi.reading` says which files, and why.

Tables on this machine and on stores: the timeline names their files. `merge_on_read_files` has the SQL of log files and
change logs that replace rows of base files.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlmesh_like.analyze.spark_types.nested_types import element_of, typed_fields_of
from sqlmesh_like.duckdb.duck_types import duck_quoted, duck_type
from sqlmesh_like.duckdb.exact_sql import Unproven
from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.commits import Slice
from sqlmesh_like.hudi.file_schemas import paths_by_schema
from sqlmesh_like.hudi.reading.change_plan import RECORD, ROW, Comparison, LoggedChange, plan_change
from sqlmesh_like.hudi.reading.foreign_files import foreign_reason
from sqlmesh_like.hudi.reading.rows_plan import BaseFiles, LogRows, RowKey, RowsPlan, Source, plan_rows
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import COMMIT_TIME, KEY, PARTITION_PATH, RECORD_KEY, SEQUENCE, WEIGHT, Column, Schema
from sqlmesh_like.sql_text import standard_literal

_LOG = logging.getLogger(__name__)
FILE, FILE_ROW = "_sml_file", "_sml_row"
"""Where a row is stored: its file, and its number in it."""
_WIDER = {
    "tinyint": ("smallint", "int", "bigint"), "smallint": ("int", "bigint"), "int": ("bigint", "double"),
}  # fmt: skip
"""Types in older files whose values a cast to these newer types preserves."""
PLAIN = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "string", "date", "timestamp")
_META = (COMMIT_TIME, SEQUENCE, RECORD_KEY, PARTITION_PATH)


@dataclass(frozen=True)
class LocalTable:
    """One copy-on-write table. `schema` holds the columns that a program reads, including `_sml_key`.

    `keeps_negative_zero`: its bits are read as they are stored; else it is zero, as Spark compares it.
    """

    uri: str
    timeline: Timeline
    schema: Schema
    keeps_negative_zero: bool = field(default=False, kw_only=True)

    @property
    def change_schema(self) -> Schema:
        return (*self.schema, Column(WEIGHT, "bigint"))

    @property
    def proven(self) -> Schema:
        """The columns with the types of which values are read as Spark reads them; None for others."""
        return self.schema

    def rows(self, frontier: str) -> str:
        """SELECT of the rows as of a frontier. Raises Unproven if it or files are gone, or types do not fit."""
        return self.select_rows(self.rows_plan(frontier))

    def shared_rows(self, frontier: str, keep: Callable[[str], str]) -> str:  # noqa: ARG002 (see `LocalMergedTable`)
        """As `rows`, for several readers. `keep` creates a table from a SELECT and returns its name."""
        return self.rows(frontier)

    def change(self, start: str, end: str) -> str:
        """SELECT of the signed rows between two frontiers; a row rewritten without a change has both signs."""
        with _unproven_if_not_planned():
            plan = plan_change(self.timeline, start, end, self._names)
        return self.select_change(plan)

    def rows_plan(self, frontier: str) -> RowsPlan:
        """What `rows` reads. Raises Unproven if the frontier or files of it are gone."""
        with _unproven_if_not_planned():
            return plan_rows(self.timeline, frontier, self._names)

    def select_rows(self, plan: RowsPlan) -> str:
        """SELECT of the rows of a plan for this table's columns. Raises Unproven."""
        return self._select_source(plan.source, plan.key)

    def select_change(self, plan: LoggedChange | Comparison) -> str:
        """SELECT of the signed rows of a plan for this table's columns. Raises Unproven."""
        if isinstance(plan, LoggedChange):
            return self._select_logs(plan.logs)
        _LOG.info("%s: file slices are compared: %s", self.uri, plan.why)
        return self._select_difference(plan)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.schema)

    def _select_source(self, source: Source, key: RowKey) -> str:
        assert isinstance(source, BaseFiles), "the table is copy-on-write"
        return self._select(source.slices, key)

    def _select_logs(self, logs: Iterable[LogRows]) -> str:
        parts = []
        for log in logs:
            types = _types_of(log.schema)
            items = [self._item(column, types, RowKey(is_stored=True)) for column in self.change_schema]
            parts.append(self._select_from_files(items, log.paths))
        return " UNION ALL ".join(parts) if parts else _no_rows(self.change_schema)

    def _select_difference(self, plan: Comparison) -> str:
        assert isinstance(plan.old, BaseFiles) and isinstance(plan.new, BaseFiles), "the table is copy-on-write"
        shown = ", ".join(map(duck_quoted, self._names))
        new = self._select(plan.new.slices, plan.key, meta=True)
        added = f"SELECT * FROM ({new}) WHERE {COMMIT_TIME} > '{plan.since}'"
        superseded = [each for each in plan.old.slices if each.group in plan.superseded]
        rest = [each for each in plan.old.slices if each.group not in plan.superseded]
        parts = [f"SELECT {shown}, CAST(1 AS BIGINT) AS {WEIGHT} FROM added"]
        for slices, join in (
            (superseded, f"SEMI JOIN added AS n ON {same(*RECORD)}"),
            (rest, f"ANTI JOIN kept AS n ON {same(*ROW)}"),
        ):
            if slices:
                old = self._select(slices, plan.key, meta=True)
                parts.append(f"SELECT {shown}, CAST(-1 AS BIGINT) FROM ({old}) AS o {join}")
        kept = f"SELECT {', '.join(ROW)} FROM ({new})"
        return f"WITH added AS MATERIALIZED ({added}), kept AS ({kept}) {' UNION ALL '.join(parts)}"

    def _select(self, slices: Iterable[Slice], key: RowKey, *, meta: bool = False, positions: bool = False) -> str:
        """Rows of base files; files with different writer schemas are read separately and cast.

        `meta`: with Hudi's columns that comparisons use. `positions`: with the file of each row and its number in it.
        """
        extra = _META if meta else ()
        at = (FILE, f"file_row_number AS {FILE_ROW}") if positions else ()
        options = f", filename = '{FILE}', file_row_number = true" if positions else ""
        parts = []
        slices = list(slices)
        if reason := foreign_reason(self.timeline, slices, self.schema):
            raise Unproven(reason)
        for written, paths in paths_by_schema(self.timeline, slices).items():
            types = _types_of(written)
            items = [self._item(column, types, key) for column in self.schema]
            parts.append(self._select_from_files([*items, *extra, *at], paths, options))
        if parts:
            return " UNION ALL ".join(parts)
        added = (
            *(Column(name, "string") for name in extra),
            *((Column(FILE, "string"), Column(FILE_ROW, "bigint")) * positions),
        )
        return _no_rows((*self.schema, *added))

    def _select_from_files(self, items: Collection[str], paths: Collection[str], options: str = "") -> str:
        # A merged slice has an absolute path. DuckDB estimates the size of all files from the first: if that were a
        # small one, a join would build its hash table from the whole table, not from the few keys that are looked up.
        named = sorted(paths)
        sizes = dict(zip(named, self.timeline.folder.data_sizes(named), strict=True))
        whole = [self.timeline.folder.data_path(path) for path in sorted(named, key=lambda p: sizes[p], reverse=True)]
        listed = ", ".join(map(standard_literal, whole))
        return f"SELECT {', '.join(items)} FROM read_parquet([{listed}], hive_partitioning = false{options})"

    def _item(self, column: Column, written: dict[str, str], key: RowKey) -> str:
        """SELECT item of a column over files with these columns: types by name, in lower case as Spark matches them."""
        name, type_ = duck_quoted(column.name), column.type or ""
        if column.name == KEY and KEY not in written:
            return f"{_row_key_sql(key)} AS {name}"
        written_type = written.get(column.name.lower())
        if written_type is None:
            return f"CAST(NULL AS {_duck(type_)}) AS {name}"
        if not _keeps_value(written_type, type_):
            raise Unproven(f"a column of {written_type} that became {type_}")
        return stored_value(column, keeps_negative_zero=self.keeps_negative_zero)


def is_plain(type_: str | None) -> bool:
    """Whether values of a type have no parts."""
    return type_ in PLAIN or (type_ or "").startswith("decimal")


def is_exact(type_: str | None) -> bool:
    """Whether values of a type are read and written here as Spark does: those without parts, structs and arrays."""
    if element := element_of(type_):
        return is_exact(element)
    fields = typed_fields_of(type_)
    return is_plain(type_) or (bool(fields) and all(is_exact(part) for _, part in fields))


def stored_value(column: Column, *, keeps_negative_zero: bool = False) -> str:
    """SELECT item of a column, from files or from rows that Spark has read there; see `exact_sql` on negative zero."""
    name, type_ = duck_quoted(column.name), column.type or ""
    if not is_exact(type_):
        return name
    value = f"CAST({name} AS {duck_type(type_)})"
    return f"{value if keeps_negative_zero else _without_negative_zero(value, type_)} AS {name}"


def _without_negative_zero(value: str, type_: str, depth: int = 0) -> str:
    if type_ == "double":
        return f"{value} + 0"
    if not re.search(r"[:<]double\b", type_):
        return value
    if element := element_of(type_):
        variable = f"_sml_e{depth}"
        return f"list_transform({value}, LAMBDA {variable} : {_without_negative_zero(variable, element, depth + 1)})"
    parts = ((name, f"struct_extract({value}, '{name}')", part) for name, part in typed_fields_of(type_))
    fields = ", ".join(f"'{name}': {_without_negative_zero(field, part, depth)}" for name, field, part in parts)
    return f"CASE WHEN {value} IS NOT NULL THEN {{{fields}}} END"


@contextmanager
def _unproven_if_not_planned() -> Iterator[None]:
    """Raise Unproven where a read cannot be planned: Spark, which then reads, reports why."""
    try:
        yield
    except NodeError as error:
        raise Unproven(str(error)) from error


def _types_of(schema: Schema) -> dict[str, str]:
    return {column.name.lower(): column.type or "" for column in schema}


def _row_key_sql(key: RowKey) -> str:
    """SQL of a row key. The length distinguishes partition `a` with key `b/c` from partition `a/b` with key `c`."""
    path = f"coalesce({PARTITION_PATH}, '')"
    number = f" || '/' || {SEQUENCE}" if key.has_number else ""
    return f"CAST(length({path}) AS VARCHAR) || '/' || {path} || '/' || {RECORD_KEY}{number}"


def _no_rows(schema: Schema) -> str:
    items = [f"CAST(NULL AS {duck_type(c.type or 'string')}) AS {duck_quoted(c.name)}" for c in schema]
    return f"SELECT {', '.join(items)} WHERE false"


def _keeps_value(written: str, wanted: str) -> bool:
    return written == wanted or wanted in _WIDER.get(written, ())


def _duck(type_: str) -> str:
    if not is_exact(type_):
        raise Unproven(f"a column of {type_} that older files lack")
    return duck_type(type_)


def same(*names: str) -> str:
    return " AND ".join(f"o.{name} = n.{name}" for name in names)
