"""What publishing needs of a destination. Owns the port that databases, DuckDB files and Parquet folders implement.

A published table has the model's columns and, last, `_sml_key`: 32 hexadecimal digits that stand for one row, so that
duplicate rows keep their number. The published frontier is stored beside the rows and changes with them,
in one transaction: a store that was killed half-way has the old rows and says so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol

from sqlmesh_like.errors import NodeError, RetryableError
from sqlmesh_like.run.ports import Export

STATE = "_sml_published"
"""Table of a database that says which commit of which model each of its tables shows."""


@dataclass(frozen=True)
class Published:
    """What a published table shows: a commit (`frontier`) of the table at `uri`, which is the model's.

    `frontier` None: nothing yet, or not for sure. `columns` are names and types as Arrow spells them.
    """

    model: str
    uri: str
    frontier: str | None
    columns: tuple[tuple[str, str], ...] = ()

    @property
    def columns_json(self) -> str:
        return json.dumps(self.columns)


def columns_from(text: str | None) -> tuple[tuple[str, str], ...]:
    """Columns of `Published.columns_json`."""
    return tuple((str(name), str(type_)) for name, type_ in json.loads(text or "[]"))


def published_columns(schema: Any) -> tuple[tuple[str, str], ...]:
    """Names and types of a published table's own columns, out of the Arrow schema of an export."""
    return tuple((field.name, str(field.type)) for field in schema if field.name not in (DELETED_COLUMN, KEY_COLUMN))


KEY_COLUMN = "_sml_key"
DELETED_COLUMN = "_sml_deleted"
"""Column of an export that says whether the row of this key is gone."""


class Store(Protocol):
    """One destination. Methods raise NodeError, having changed nothing that readers see."""

    def published(self, table: str) -> Published | None:
        """What a table shows. None: there is none. Raises NodeError for a table that no publication made."""
        ...

    def write(self, table: str, export: Export, old: Published | None, new: Published) -> None:
        """Make the table show `new`, in one step for its readers.

        A whole export replaces the table, columns too. Another one follows `old`, whose columns it has: raises
        RetryableError where the table no longer shows that.
        """
        ...

    def close(self) -> None: ...


def overtaken(table: str) -> RetryableError:
    """The error of a publication that another one came before."""
    return RetryableError(f"{table} was published by another process meanwhile", hint="publish again: sml publish")


def foreign(table: str, place: str) -> NodeError:
    """The error of a table that is there and is not ours."""
    hint = "drop it, or publish under another name: config(publish={'to': …, 'table': …})"
    return NodeError(f"{place} has a table {table} that no publication made", hint=hint)
