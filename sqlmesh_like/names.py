"""Frozen values for names. Owns how a table or column is spelt in SQL and on disk; knows nothing of engines."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlmesh_like.sql_text import spark_identifier

_SAFE_PATH_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")

HIDDEN_PREFIXES = ("_sml_", "_hoodie_")
KEY = "_sml_key"
"""Record key of a derived table, and the row key that every input relation of a delta program carries."""
WEIGHT = "_sml_weight"
"""Sign of a row in a change: -1 as it was, +1 as it is."""
PARTITION = "_sml_partition"
"""Path-safe partition value of a derived table."""
ROWS = "_sml_rows"
"""Hidden count of the input rows behind a group."""


def is_hidden(column: str) -> bool:
    """Whether a column is bookkeeping that no `ref()`, `show` or catalog view shows.

    >>> is_hidden("_sml_key"), is_hidden("_hoodie_commit_time"), is_hidden("id")
    (True, True, False)
    """
    return column.lower().startswith(HIDDEN_PREFIXES)


@dataclass(frozen=True, order=True)
class TableName:
    """Schema and identifier of a table in the warehouse; its path is `<warehouse>/<schema>/<identifier>`."""

    schema: str
    identifier: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.identifier}"

    def sql(self) -> str:
        """Spark SQL spelling, always quoted (`user` is a reserved word in several dialects).

        >>> TableName("ods", "user").sql()
        '`ods`.`user`'
        """
        return ".".join(map(spark_identifier, (self.schema, self.identifier)))

    def is_path_safe(self) -> bool:
        """Whether both parts can be folder names on every file system and object store."""
        return all(_SAFE_PATH_PART.fullmatch(part) for part in (self.schema, self.identifier))


@dataclass(frozen=True)
class Column:
    """A column with its Spark type in Spark's own short spelling, e.g. `decimal(10,2)`; None where it is not known."""

    name: str
    type: str | None = None


Schema = tuple[Column, ...]


def visible(schema: Schema) -> Schema:
    """The columns a reader sees.

    >>> [c.name for c in visible((Column("id"), Column("_sml_key")))]
    ['id']
    """
    return tuple(column for column in schema if not is_hidden(column.name))
