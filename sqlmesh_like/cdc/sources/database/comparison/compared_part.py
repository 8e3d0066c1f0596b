"""One table of the database beside its rows in the lake. Owns only what belongs to such a pair."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlmesh_like.cdc.sources.database.comparison.columns import ComparedColumns
from sqlmesh_like.cdc.sources.database.comparison.lake_rows import LakeRows
from sqlmesh_like.cdc.sources.database.comparison.side import Fetch, Key, Side
from sqlmesh_like.cdc.sources.database.server import Table


@dataclass(frozen=True)
class ComparedPart:
    """A table of the database with its rows in the lake, and the columns of both.

    `read`: the segments of the spool that the lake's table had read before.
    """

    origin: Table
    lake: LakeRows
    columns: ComparedColumns
    database: Side
    read: frozenset[int]

    def database_asked_by(self, fetch: Fetch) -> Side:
        """The database's side on another connection."""
        return replace(self.database, fetch=fetch)


@dataclass(frozen=True)
class DifferentKeys:
    """The keys of a part whose rows differ, for which the log has no change that the table has not read."""

    part: ComparedPart
    keys: tuple[Key, ...]
