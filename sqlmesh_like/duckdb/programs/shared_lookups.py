"""Rows that several steps of a run look up by the same columns of a table, read once. Owns when they are kept.

Most models of a run process the same change: they look up rows of the same keys in the same large table. Each key is
looked up once, with the columns that any model of the run names; a step then reads these rows instead of the table.
They include at least the rows that the step needs, and it filters them itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from threading import Lock

import duckdb

from sqlmesh_like.duckdb.duck_types import duck_quoted
from sqlmesh_like.duckdb.programs.executor_rows import ExecutorRows
from sqlmesh_like.names import KEY, Schema

MOST_KEYS = 200_000
"""More keys than this are looked up by the step itself, as their rows are a large part of a table."""
_MOST_ROWS = 2_000_000
"""Limit of the rows that are kept of one table for one choice of key columns."""
_MOST_FORESEEN = 20_000
"""More keys than this are not looked up for a step that needs fewer."""


@dataclass
class _Entry:
    """Rows of a table as of one frontier, looked up by some of its columns.

    `rows` and `keys` are the tables that hold them and the keys that were looked up.
    """

    columns: tuple[str, ...]
    rows: str
    keys: str
    is_made: bool = False
    is_full: bool = False
    lock: Lock = field(default_factory=Lock)


class SharedLookups:
    """The shared lookups of one run."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._entries: dict[tuple[object, ...], _Entry] = {}

    def forget(self) -> None:
        """Drop all entries, after the database that holds their rows was closed."""
        self._entries.clear()

    def rows(
        self, db: duckdb.DuckDBPyConnection, wanted: LookupTable, pairs: Sequence[tuple[str, str]], step: str
    ) -> str | None:
        """The table that holds at least the wanted rows whose columns have the values of a row of a step.

        `pairs`: columns of the table and of the step. Returns None if the step has to read the table itself.
        """
        own, theirs = zip(*pairs, strict=True)
        with self._lock:
            number = len(self._entries)
            entry = self._entries.setdefault(
                (wanted.identity, own), _Entry(wanted.shared, f"_sml_rows_{number}", f"_sml_keys_{number}")
            )
        if not wanted.needed <= set(entry.columns):
            return None
        with entry.lock:
            if entry.is_full:
                return None
            return entry.rows if _complete(db, entry, wanted, own, theirs, step) else None


@dataclass(frozen=True)
class LookupTable:
    """A table in which rows are looked up. `select` reads all its rows; `identity` is its uri and frontier.

    `needed`: columns that the step names; `shared`: those that models of the run name, including the row key.
    `executors`: those who look rows up instead, in a table that is too large to be read here. They are asked for the
    keys that `foreseen` selects as well, as other models may need them and each question takes longer than its rows.
    """

    identity: tuple[str, str]
    select: str
    needed: frozenset[str]
    shared: tuple[str, ...]
    executors: ExecutorRows | None = None
    foreseen: str | None = None


def shared_columns(schema: Schema, named: Collection[str]) -> tuple[str, ...]:
    """Columns of a table that are kept: those that models name (`named`, in lower case) and the row key."""
    return tuple(column.name for column in schema if column.name == KEY or column.name.lower() in named)


def _complete(
    db: duckdb.DuckDBPyConnection,
    entry: _Entry,
    wanted: LookupTable,
    own: Sequence[str],
    theirs: Sequence[str],
    step: str,
) -> bool:
    """Read the rows of keys that were not looked up yet; False if these are too many, or cannot be read."""
    named = ", ".join(f"{duck_quoted(name)} AS k{n}" for n, name in enumerate(theirs))
    keys = f"SELECT DISTINCT {named} FROM {duck_quoted(step)}"
    count = _find_new_keys(db, entry, keys)
    if count > MOST_KEYS:
        return False
    if count or not entry.is_made:
        entry.is_full = True  # if reading fails, rows without their keys would be read a second time
        if not _read_foreseen(db, entry, wanted, own, keys, count) and not _read_new_keys(db, entry, wanted, own):
            return False
        entry.is_made, entry.is_full = True, _count(db, entry.rows) > _MOST_ROWS
    return True


def _find_new_keys(db: duckdb.DuckDBPyConnection, entry: _Entry, keys: str) -> int:
    """Make a table of the keys that were not looked up yet, and return their number: above `MOST_KEYS` not of all."""
    new = f"SELECT * FROM ({keys}) EXCEPT SELECT * FROM {entry.keys}" if entry.is_made else keys
    db.execute(f"CREATE OR REPLACE TEMP TABLE _sml_new_keys AS FROM ({new}) LIMIT {MOST_KEYS + 1}")
    return _count(db, "_sml_new_keys")


def _read_foreseen(
    db: duckdb.DuckDBPyConnection, entry: _Entry, wanted: LookupTable, own: Sequence[str], keys: str, needed: int
) -> bool:
    """Read the new keys, of which there are `needed`, and foreseen ones; False if these are none or too many."""
    if wanted.executors is None or wanted.foreseen is None:
        return False
    count = _find_new_keys(db, entry, f"{keys} UNION {wanted.foreseen}")
    if needed < count <= _MOST_FORESEEN and _read_new_keys(db, entry, wanted, own):
        return True
    _find_new_keys(db, entry, keys)
    return False


def _read_new_keys(db: duckdb.DuckDBPyConnection, entry: _Entry, wanted: LookupTable, own: Sequence[str]) -> bool:
    """Add the new keys and their rows; False where executors do not return them."""
    shown = ", ".join(map(duck_quoted, entry.columns))
    if wanted.executors is None:
        rows: str | None = _rows_of_files(db, f"SELECT {shown} FROM ({wanted.select}) AS t", own)
    else:
        rows = wanted.executors.rows(db, "_sml_new_keys", own, entry.columns)
    if rows is None:
        return False
    for table, query in ((entry.rows, rows), (entry.keys, "SELECT * FROM _sml_new_keys")):
        db.execute(f"INSERT INTO {table} {query}" if entry.is_made else f"CREATE TABLE {table} AS {query}")
    return True


def _rows_of_files(db: duckdb.DuckDBPyConnection, select: str, own: Sequence[str]) -> str:
    """SELECT of the rows of new keys.

    DuckDB filters what it scans by the keys of a join, where they are compared by `=` alone.
    """
    counted = ", ".join(f"count(*) - count(k{number})" for number in range(len(own)))
    nulls = db.execute(f"SELECT {counted} FROM _sml_new_keys").fetchall()[0]
    equals = ["IS NOT DISTINCT FROM" if count else "=" for count in nulls]
    on = " AND ".join(f"t.{duck_quoted(name)} {equals[number]} n.k{number}" for number, name in enumerate(own))
    return f"{select} SEMI JOIN _sml_new_keys AS n ON {on}"


def _count(db: duckdb.DuckDBPyConnection, table: str) -> int:
    return int(db.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])
