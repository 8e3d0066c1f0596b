"""The interface of a destination. Owns the port that databases, DuckDB files and Parquet folders implement.

A published table has the model's columns and, last, `_sml_key`: 32 hexadecimal digits that identify one row, so that
the number of duplicate rows is kept. The published frontier is stored beside the rows and changes with them in one
transaction: after a crash a destination has the old rows and the old frontier.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from sqlmesh_like.errors import NodeError, RetryableError
from sqlmesh_like.run.ports import Export

STATE = "_sml_published"
"""Table of a database that stores which commit of which model each of its tables has."""


@dataclass(frozen=True)
class Published:
    """The content of a published table: a commit (`frontier`) of the model's table at `uri`.

    `frontier` None: nothing is published yet, or it is not known what. `columns` are names and types as Arrow spells
    them.
    """

    model: str
    uri: str
    frontier: str | None
    columns: tuple[tuple[str, str], ...] = ()

    @property
    def columns_json(self) -> str:
        return json.dumps(self.columns)


def columns_from(text: str | None) -> tuple[tuple[str, str], ...]:
    """Return the columns of a `Published.columns_json`."""
    return tuple((str(name), str(type_)) for name, type_ in json.loads(text or "[]"))


def published_columns(schema: Any) -> tuple[tuple[str, str], ...]:
    """Return names and types of the model's columns, from the Arrow schema of an export."""
    return tuple((field.name, str(field.type)) for field in schema if field.name not in (DELETED_COLUMN, KEY_COLUMN))


KEY_COLUMN = "_sml_key"
DELETED_COLUMN = "_sml_deleted"
"""Column of an export that is true where the row of this key is deleted."""


class Store(Protocol):
    """One destination. Where a method raises NodeError, it has changed nothing that readers see."""

    def read_published(self, table: str) -> Published | None:
        """Return the content of a table, None where there is none. Raises NodeError for one that is not published."""
        ...

    def write(self, table: str, export: Export, old: Published | None, new: Published) -> None:
        """Bring a table to `new`, atomically for its readers.

        A whole export replaces the table and its columns. Another one is the change since `old`, with the same columns:
        raises RetryableError where the table no longer has the content `old`.
        """
        ...

    def together(self) -> AbstractContextManager[None]:
        """While it is open, writes are one transaction: readers see all of them at its end, or none where it raises.

        A write that a destination cannot do within one is on its own: in MySQL and MariaDB a table whose columns have
        changed.
        """
        ...

    def close(self) -> None: ...


def overtaken(table: str) -> RetryableError:
    """Return the error of a publication that another process has overtaken."""
    return RetryableError(f"{table} was published by another process meanwhile", hint="publish again: sml publish")


def foreign(table: str, place: str) -> NodeError:
    """Return the error of an existing table that was not published."""
    hint = "drop it, or publish under another name: config(publish={'to': …, 'table': …})"
    return NodeError(f"{place} has a table {table} that no publication made", hint=hint)
