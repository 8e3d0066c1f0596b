"""Connections to DuckDB. Owns what they may access: no other module opens one.

Untrusted text (a model in a pull request, a fixture, a unit test) runs in a `sandbox`: no files, no other
database, no Python variables, no extensions, bounded memory, and a configuration that no statement can change.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from threading import Timer
from uuid import uuid4

import duckdb

from sqlmesh_like.errors import NodeError
from sqlmesh_like.sql_text import standard_literal

_PLAIN: dict[str, str] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    # In DuckDB 2.0.0, of two equal subqueries without rows one keeps the statistics of the other: a sum of 1 was
    # compared with 0 as if it were 0 (`tests/unit/duckdb/test_connections.py`).
    "disabled_optimizers": "common_subplan",
}
_MEMORY = "1GB"
SECONDS = 60.0
"""Time limit of an untrusted query, in seconds: ample for the handwritten rows that it reads."""
ANSWERS = ["SET GLOBAL TimeZone = 'UTC'", "SET GLOBAL ieee_floating_point_ops = false"]
"""What a sandbox begins with: its zone, and no infinity for x / 0, which is NULL in Spark without ANSI."""


def sandbox(threads: int = 1, memory_limit: str = _MEMORY) -> duckdb.DuckDBPyConnection:
    """A database in memory for untrusted text."""
    return _connect_locked({"threads": str(threads), "memory_limit": memory_limit, "temp_directory": ""}, ())


@contextmanager
def workspace(threads: int = 1) -> Iterator[duckdb.DuckDBPyConnection]:
    """An empty sandbox that is gone afterwards: a database of its own in an instance that the process keeps.

    To start an instance takes twenty times as long as to add a database to it. What runs in it says `schema.table`, and
    finds its own; the memory is the instance's.
    """
    process, name = os.getpid(), f"workspace_{uuid4().hex}"
    try:
        connection = _attach_database(name, threads, process)
    except duckdb.Error:  # after an internal error an instance refuses all that follows
        _instance.cache_clear()
        connection = _attach_database(name, threads, process)
    try:
        yield connection
    finally:
        connection.close()
        with suppress(duckdb.Error):
            _instance(threads, process).cursor().execute(f"DETACH {name}")


def _attach_database(name: str, threads: int, process: int) -> duckdb.DuckDBPyConnection:
    connection = _instance(threads, process).cursor()
    connection.execute(f"ATTACH ':memory:' AS {name}; USE {name}")
    return connection


@cache
def _instance(threads: int, process: int) -> duckdb.DuckDBPyConnection:  # noqa: ARG001
    """By process: one that was forked can neither use its parent's instance nor end it."""
    return sandbox(threads)


def reader(files: Sequence[str]) -> duckdb.DuckDBPyConnection:
    """A database in memory for a user's query over these files and no others."""
    return _connect_locked({"threads": "1"}, files)


def _connect_locked(config: dict[str, str], files: Sequence[str]) -> duckdb.DuckDBPyConnection:
    db = duckdb.connect(":memory:", config={**_PLAIN, **config})
    db.execute("; ".join(ANSWERS))
    if files:
        _show_stores(db)
        listed = ", ".join(standard_literal(str(file)) for file in files)
        db.execute(f"SET allowed_paths = [{listed}]")
    db.execute("SET enable_external_access = false; SET lock_configuration = true")
    return db


def file_worker(
    memory_limit: str | None = None, scratch: str | None = None, *, keeps_order: bool = True
) -> duckdb.DuckDBPyConnection:
    """A database in memory that reads and writes files, for our own SQL only, which contains no text of a user."""
    config = {"memory_limit": memory_limit, "temp_directory": scratch}
    db = duckdb.connect(":memory:", config={**_PLAIN, **{name: v for name, v in config.items() if v is not None}})
    _show_stores(db)
    db.execute(f"SET GLOBAL TimeZone = 'UTC'; SET preserve_insertion_order = {str(keeps_order).lower()}")
    db.execute("SET lock_configuration = true")
    return db


@contextmanager
def failing_reads(what: str) -> Iterator[None]:
    """Raise NodeError where DuckDB cannot read the files of a table, e.g. because another process cleaned them."""
    try:
        yield
    except duckdb.Error as error:
        raise NodeError(f"{what} cannot be read: {error}", hint="run the same command again") from error


def _show_stores(db: duckdb.DuckDBPyConnection) -> None:
    """Let a database read files of stores, where a warehouse of this process is on one."""
    from sqlmesh_like.hudi.storage import range_files  # a sandbox reads no files, and imports nothing that does

    if (files := range_files()) is not None:
        db.register_filesystem(files)


def database(path: str) -> duckdb.DuckDBPyConnection:
    """The database in a file, for our own SQL."""
    db = duckdb.connect(path, config=dict(_PLAIN))
    db.execute("SET GLOBAL TimeZone = 'UTC'; SET lock_configuration = true")
    return db


@contextmanager
def time_limit(db: duckdb.DuckDBPyConnection, seconds: float = SECONDS) -> Iterator[None]:
    """Interrupt what runs on a connection after so many seconds and raise NodeError."""
    timer = Timer(seconds, db.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    except duckdb.InterruptException:
        hint = "a target of type spark has no such limit"
        raise NodeError(f"DuckDB: this takes longer than {seconds:g} s", hint=hint) from None
    finally:
        timer.cancel()
        timer.join()  # a thread that is still running when Python exits would crash the process
