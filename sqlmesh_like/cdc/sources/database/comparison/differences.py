"""What a comparison results in. Owns the shape of results; `table_comparison` makes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from sqlmesh_like.cdc.sources.database.comparison.columns import ComparedColumns, UncomparedColumn
from sqlmesh_like.cdc.sources.database.comparison.compared_part import DifferentKeys
from sqlmesh_like.cdc.sources.database.comparison.side import Key, Values
from sqlmesh_like.cdc.sources.database.comparison.value_kinds import display_text
from sqlmesh_like.project.nodes import SourceTable


@dataclass(frozen=True)
class DifferentColumn:
    """A column of a row, as both sides show it."""

    name: str
    database: str
    lake: str


@dataclass(frozen=True)
class DifferentRow:
    """A row that differs. `only`: the side that has it, if the other lacks it; `copies`: how many the lake has.

    Without columns, one of the values is too long for the database to hash, or has changed since the comparison.
    """

    key: str
    only: Literal["database", "lake"] | None = None
    columns: tuple[DifferentColumn, ...] = ()
    copies: int = 1


@dataclass(frozen=True)
class TableComparison:
    """One table of the lake, compared. `rows`: of the database, in all that was compared, or in a sample of it.

    `different`: rows that differ, of which `examples` has some; `left`: rows of chunks that differ and were not
    narrowed; `unread`: rows of which the log has changes that the table has not read yet. `error`: why it could not be
    compared. `keys`: all that differ, for a repair.
    """

    table: SourceTable
    seconds: float
    rows: int = 0
    different: int = 0
    left: int = 0
    unread: int = 0
    sampled: bool = False
    examples: tuple[DifferentRow, ...] = ()
    uncompared: tuple[UncomparedColumn, ...] = ()
    error: str | None = None
    keys: tuple[DifferentKeys, ...] = field(default=(), repr=False)

    @property
    def status(self) -> Literal["pass", "fail", "warn", "error"]:
        """`warn`: nothing differs, but a column was not compared that could be, were it the same on both sides."""
        if self.different or self.left:
            return "fail"
        if self.error is not None:
            return "error"
        return "pass" if all(each.by_nature for each in self.uncompared) else "warn"


def different_row(
    columns: ComparedColumns, key: Key, database: Sequence[Values], lake: Sequence[Values]
) -> DifferentRow:
    """Say how the rows of a key differ."""
    named = (
        f"{columns.names[index]}={display_text(columns.kinds[index], text)}"
        for index, text in zip(columns.key, key, strict=True)
    )
    own = ", ".join(named)
    if not database or not lake:
        return DifferentRow(own, "lake" if lake else "database" if database else None, copies=len(lake))
    differing = tuple(
        DifferentColumn(name, display_text(kind, there), display_text(kind, here))
        for name, kind, there, here in zip(columns.names, columns.kinds, database[0], lake[0], strict=True)
        if there != here
    )
    return DifferentRow(own, None, differing, len(lake))
