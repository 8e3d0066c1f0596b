"""Two tables compared row by row, by key, without a JVM. Owns the SQL, and which cells count as changed.

A cell is changed where its values are distinct: as numbers if both types are, else if types differ as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import duckdb

from sqlmesh_like.duckdb.duck_connection import failing_reads, file_worker
from sqlmesh_like.duckdb.duck_types import duck_quoted
from sqlmesh_like.duckdb.exact_sql import Unproven
from sqlmesh_like.duckdb.merge_on_read_files import local_table
from sqlmesh_like.duckdb.merged_slices import MergedSlices
from sqlmesh_like.names import KEY, Column, Schema, visible
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.run.ports import Row

_OLD, _NEW = "_sml_old", "_sml_new"
_MEMORY_SHARE = "25%"
_NUMBERS = frozenset(("tinyint", "smallint", "int", "bigint", "float", "double", "decimal"))


@dataclass(frozen=True)
class ChangedCell:
    """A cell of a row that both tables have. `key`: the values that identify the row."""

    key: Row
    column: str
    before: object
    after: object


@dataclass(frozen=True)
class RowsByKey:
    """How two tables differ: numbers of rows, and samples. `key`: the columns by which rows were matched.

    `cells`: numbers of changed cells by column, of columns that both tables have. `columns`: differences of columns,
    in words.
    """

    key: tuple[str, ...]
    columns: tuple[str, ...]
    before: int
    after: int
    added: int
    removed: int
    changed: int
    cells: dict[str, int]
    added_rows: tuple[Row, ...]
    removed_rows: tuple[Row, ...]
    changed_cells: tuple[ChangedCell, ...]


def rows_by_key(old: TableState, new: TableState, unique_key: Sequence[str], limit: int) -> RowsByKey | None:
    """Compare two tables, with up to `limit` samples of each kind; None where DuckDB cannot read one of them.

    Rows are matched by `unique_key`, where both tables have its columns, else by the hidden key of their rows.
    """
    merged = MergedSlices()
    try:
        with (
            TemporaryDirectory(prefix="sml-") as scratch,
            closing(file_worker(_MEMORY_SHARE, scratch, keeps_order=False)) as db,
            failing_reads(f"{old.uri} or {new.uri}"),
        ):
            return _Comparison(db, old, new, unique_key, limit).result(merged)
    except Unproven:
        return None
    finally:
        merged.forget()


class _Comparison:
    def __init__(
        self, db: duckdb.DuckDBPyConnection, old: TableState, new: TableState, unique_key: Sequence[str], limit: int
    ) -> None:
        self._db, self._old, self._new, self._limit = db, old, new, limit
        self._before, self._after = visible(old.schema or ()), visible(new.schema or ())
        self._types = {column.name: column.type or "" for column in self._after}
        common = [column for column in self._before if column.name in self._types]
        comparable = {column.name for column in common if _are_alike(column.type or "", self._types[column.name])}
        self._key = tuple(unique_key) if unique_key and comparable.issuperset(unique_key) else (KEY,)
        self._common = [column for column in common if column.name not in self._key]

    def result(self, merged: MergedSlices) -> RowsByKey:
        for view, state, schema in ((_OLD, self._old, self._before), (_NEW, self._new, self._after)):
            self._create(view, state, schema, merged)
        on = " AND ".join(f"o.{name} IS NOT DISTINCT FROM n.{name}" for name in map(duck_quoted, self._key))
        changed = {column.name: self._is_changed(column) for column in self._common}
        flags = ", ".join(f"count(*) FILTER (WHERE {each})" for each in changed.values())
        any_changed = " OR ".join(changed.values()) or "false"
        both = f"FROM {_OLD} AS o JOIN {_NEW} AS n ON {on}"
        counted = self._fetch(f"SELECT count(*) FILTER (WHERE {any_changed}){', ' if flags else ''}{flags} {both}")[0]
        counts = dict(zip(changed, map(_number, counted[1:]), strict=True))
        added, removed = (
            f"FROM {mine} AS {one} ANTI JOIN {other} AS {two} ON {on}"
            for mine, one, other, two in ((_NEW, "n", _OLD, "o"), (_OLD, "o", _NEW, "n"))
        )
        return RowsByKey(
            () if self._key == (KEY,) else self._key, tuple(self._column_changes()),
            self._count(f"FROM {_OLD}"), self._count(f"FROM {_NEW}"), self._count(added), self._count(removed),
            _number(counted[0]), {name: count for name, count in counts.items() if count},
            self._rows(added, "n", self._after), self._rows(removed, "o", self._before),
            tuple(self._cells(both, {name: changed[name] for name, count in counts.items() if count})),
        )  # fmt: skip

    def _create(self, view: str, state: TableState, schema: Schema, merged: MergedSlices) -> None:
        table = local_table(state, merged, hidden=False)
        if table is None or state.frontier is None:
            raise Unproven(f"the table {state.uri}")
        names = ", ".join(duck_quoted(name) for name in (*(column.name for column in schema), KEY))
        self._db.execute(f"CREATE TEMP TABLE {view} AS SELECT {names} FROM ({table.rows(state.frontier)})")

    def _is_changed(self, column: Column) -> str:
        name, before, after = duck_quoted(column.name), column.type or "", self._types[column.name]
        if _are_alike(before, after):
            return f"o.{name} IS DISTINCT FROM n.{name}"
        return f"CAST(o.{name} AS VARCHAR) IS DISTINCT FROM CAST(n.{name} AS VARCHAR)"

    def _column_changes(self) -> list[str]:
        old = {column.name: column.type for column in self._before}
        new = {column.name: column.type for column in self._after}
        gone, added = [f"−{name}" for name in old if name not in new], [f"+{name}" for name in new if name not in old]
        retyped = [f"{name}: {old[name]} → {new[name]}" for name in old if name in new and old[name] != new[name]]
        return [*gone, *added, *retyped]

    def _rows(self, source: str, side: str, schema: Schema) -> tuple[Row, ...]:
        names = [column.name for column in schema]
        items = ", ".join(f"{side}.{duck_quoted(name)}" for name in names)
        query = f"SELECT {items} {source} ORDER BY {self._order(side)} LIMIT {self._limit}"
        return tuple(dict(zip(names, row, strict=True)) for row in self._fetch(query))

    def _cells(self, both: str, changed: dict[str, str]) -> list[ChangedCell]:
        """Changed cells of the first rows by key, as many of each column as of any other."""
        shown = self._key if self._key != (KEY,) else tuple(c.name for c in self._common if c.name not in changed)
        keys = ", ".join(f"n.{duck_quoted(name)}" for name in shown)
        cells: list[ChangedCell] = []
        for name, condition in changed.items():
            values = f"o.{duck_quoted(name)}, n.{duck_quoted(name)}{', ' if keys else ''}{keys}"
            query = f"SELECT {values} {both} WHERE {condition} ORDER BY {self._order('n')} LIMIT {self._limit}"
            for before, after, *key in self._fetch(query):
                cells.append(ChangedCell(dict(zip(shown, key, strict=True)), name, before, after))
        return cells

    def _order(self, side: str) -> str:
        return ", ".join(f"{side}.{duck_quoted(name)}" for name in self._key)

    def _count(self, source: str) -> int:
        return _number(self._fetch(f"SELECT count(*) {source}")[0][0])

    def _fetch(self, query: str) -> list[tuple[object, ...]]:
        return self._db.execute(query).fetchall()


def _are_alike(before: str, after: str) -> bool:
    """Whether values of two types are compared as they are.

    >>> _are_alike("int", "decimal(12,2)"), _are_alike("string", "int")
    (True, False)
    """
    return before == after or {before.partition("(")[0], after.partition("(")[0]} <= _NUMBERS


def _number(value: object) -> int:
    return int(str(value))
