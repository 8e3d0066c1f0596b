"""Rows of Python with the methods of a Spark frame that the ingestion uses, in Spark SQL. Owns only these methods.

Names and arguments are PySpark's, so that the same code runs over both. Nothing is lazy. Where the code needs another
of PySpark's methods, the batch is Spark's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from sqlmesh_like.cdc.in_process.expressions import Scope, compile_expression
from sqlmesh_like.cdc.in_process.parser import parsed_item
from sqlmesh_like.cdc.in_process.queries import Columns, project
from sqlmesh_like.cdc.in_process.syntax import Item, Path
from sqlmesh_like.cdc.in_process.values import NotProvenError, Row, Value, group_of, order_of, places


class RowFrame:
    """Columns and rows (grain: what the frame says). No column of a name that another has, whatever its case."""

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[Value]]) -> None:
        self.columns, self.rows = tuple(columns), rows

    @property
    def _own(self) -> Columns:
        return [(None, name) for name in self.columns]

    def selectExpr(self, *texts: str) -> RowFrame:
        """Raises NotProvenError, as the other methods do."""
        return RowFrame(*project([parsed_item(text) for text in texts], self._own, self.rows))

    def select(self, *names: str) -> RowFrame:
        """Columns by name, or members of a struct by a path (`a.b`)."""
        items = [Item(None, ()) if name == "*" else _item(name) for name in names]
        return RowFrame(*project(items, self._own, self.rows))

    def where(self, condition: str) -> RowFrame:
        scope = Scope(self._own)
        tree = parsed_item(condition).expression
        if tree is None:
            raise NotProvenError("a condition of `*`")
        test = compile_expression(tree, scope)
        more = [None] * (scope.size - len(self.columns))
        return RowFrame(self.columns, [row for row in self.rows if test([*row, *more])])

    def unionByName(self, other: RowFrame) -> RowFrame:
        known = places(other.columns)
        if set(known) != {name.lower() for name in self.columns}:
            raise NotProvenError("a union of other columns")
        order = [known[name.lower()] for name in self.columns]
        return RowFrame(self.columns, [*self.rows, *([row[place] for place in order] for row in other.rows)])

    def distinct(self) -> RowFrame:
        return RowFrame(self.columns, list({group_of(tuple(row)): row for row in self.rows}.values()))

    def orderBy(self, *names: str) -> RowFrame:
        at = [places(self.columns)[name.lower()] for name in names]
        return RowFrame(self.columns, sorted(self.rows, key=lambda row: [order_of(row[place]) for place in at]))

    def limit(self, count: int) -> RowFrame:
        return RowFrame(self.columns, self.rows[:count])

    def coalesce(self, partitions: int) -> RowFrame:  # noqa: ARG002 - there are none
        return self

    def collect(self) -> list[Row]:
        return [Row.of(self.columns, row) for row in self.rows]

    def first(self) -> Row | None:
        return Row.of(self.columns, self.rows[0]) if self.rows else None

    def count(self) -> int:
        return len(self.rows)

    def isEmpty(self) -> bool:
        return not self.rows

    def __getattr__(self, name: str) -> NoReturn:
        raise NotProvenError(f"{name}, a step that only Spark does")


def _item(name: str) -> Item:
    path = tuple(part.strip("`") for part in name.split(".")) if "`" not in name else (name.strip("`"),)
    return Item(Path(path), (path[-1],))
