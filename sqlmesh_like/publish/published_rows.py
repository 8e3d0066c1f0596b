"""Rows of some keys, and texts, in published tables on this machine. Owns reading each kind of destination."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from sqlmesh_like.duckdb.duck_connection import database
from sqlmesh_like.hudi.erasure.byte_search import Needles, Piece, find_rows
from sqlmesh_like.hudi.erasure.row_match import RowMatch
from sqlmesh_like.hudi.erasure.searched_files import Finding
from sqlmesh_like.project.publishing import Destination
from sqlmesh_like.publish.freed_space import local_file
from sqlmesh_like.sql_text import standard_identifier as quoted


def published_rows(destination: Destination, table: str, match: RowMatch) -> Iterator[Finding]:
    """Where a table of a destination has a row of these values; nothing for a destination on another machine."""
    path = local_file(destination)
    if path is None or not path.exists():
        return
    if destination.kind == "parquet":
        file = path / (destination.schema or "") / f"{table}.parquet"
        yield from find_rows([file] if file.exists() else [], match)
        return
    find = _in_duckdb if destination.kind == "duckdb" else _in_sqlite
    for values in find(path, destination.schema, table, match):
        yield Finding(path, ", ".join(f"{name}={value}" for name, value in zip(match.columns, values, strict=True)))


def texts_in_database(destination: Destination, needles: Needles) -> Iterator[Finding]:
    """The texts that a row of a database on this machine has, each once.

    DuckDB compresses its pages, so bytes do not show them; SQLite has values side by side, so bytes do not show where
    one ends.
    """
    path = local_file(destination)
    if destination.kind == "parquet" or path is None or not path.is_file():
        return
    values = _duckdb_values if destination.kind == "duckdb" else _sqlite_values
    texts = {
        text for value in values(path, needles) for text in needles.texts_in(Piece(value.encode(errors="replace")))
    }
    yield from (Finding(path, text) for text in sorted(texts))


def _duckdb_values(path: Path, needles: Needles) -> Iterator[str]:
    with database(str(path)) as db:
        columns = db.execute(
            "SELECT table_schema, table_name, column_name FROM information_schema.columns"
            " WHERE table_catalog = current_database()"
        ).fetchall()
        for schema, table, column in columns:
            value = f"CAST({quoted(column)} AS VARCHAR)"
            query = f"SELECT DISTINCT {value} FROM {quoted(schema)}.{quoted(table)} WHERE contains({value}, ?)"
            for spelt in needles.spelt:
                yield from (row[0] for row in db.execute(query, [spelt.decode()]).fetchall())


def _sqlite_values(path: Path, needles: Needles) -> Iterator[str]:
    with closing(sqlite3.connect(path)) as db:
        db.text_factory = lambda data: data.decode(errors="replace")
        columns = db.execute(
            "SELECT t.name, c.name FROM sqlite_master AS t, pragma_table_info(t.name) AS c WHERE t.type = 'table'"
        ).fetchall()
        for table, column in columns:
            value = f"CAST({quoted(column)} AS TEXT)"
            query = f"SELECT DISTINCT {value} FROM {quoted(table)} WHERE instr({value}, ?)"
            for spelt in needles.spelt:
                yield from (row[0] for row in db.execute(query, [spelt.decode()]))


def _in_duckdb(path: Path, schema: str | None, table: str, match: RowMatch) -> Iterator[tuple[str, ...]]:
    with database(str(path)) as db:
        types = {
            name.lower(): type_
            for name, type_ in db.execute(
                "SELECT column_name, data_type FROM information_schema.columns"
                " WHERE table_catalog = current_database() AND table_schema = ? AND table_name = ?",
                [schema or "main", table],
            ).fetchall()
        }
        if not all(name.lower() in types for name in match.columns):
            return
        where = " AND ".join(f"{quoted(name)} = TRY_CAST(? AS {types[name.lower()]})" for name in match.columns)
        query = f"SELECT 1 FROM {quoted(schema or 'main')}.{quoted(table)} WHERE {where} LIMIT 1"
        yield from (values for values in match.values if db.execute(query, list(values)).fetchone())


def _in_sqlite(path: Path, schema: str | None, table: str, match: RowMatch) -> Iterator[tuple[str, ...]]:
    """SQLite itself gives a text the type of the column that it is compared with."""
    name = f"{quoted(schema or 'main')}.{quoted(table)}"
    with closing(sqlite3.connect(path)) as db:
        known = {row[1].lower() for row in db.execute(f"PRAGMA {quoted(schema or 'main')}.table_info({quoted(table)})")}
        if not all(column.lower() in known for column in match.columns):
            return
        query = (
            f"SELECT 1 FROM {name} WHERE {' AND '.join(f'{quoted(column)} = ?' for column in match.columns)} LIMIT 1"
        )
        yield from (values for values in match.values if db.execute(query, values).fetchone())
